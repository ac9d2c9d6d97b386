// SPDX-License-Identifier: GPL-2.0
/*
 * The port's counters, and the performance management agent that tells them.
 * The data counters count what a real port would: the payload and the IB
 * headers of packets of the path MTU, in four-byte words on the wire format.
 */
#include "simhca.h"

const char *const sim_err_names[SIM_NERRS] = {
	[SIM_ERR_SYMBOL] = "symbol_error",
	[SIM_ERR_RECOVERY] = "link_error_recovery",
	[SIM_ERR_DOWNED] = "link_downed",
	[SIM_ERR_RCV] = "port_rcv_errors",
	[SIM_ERR_REMPHYS] = "port_rcv_remote_physical_errors",
	[SIM_ERR_RELAY] = "port_rcv_switch_relay_errors",
	[SIM_ERR_DISCARDS] = "port_xmit_discards",
	[SIM_ERR_XMIT_CONSTRAINT] = "port_xmit_constraint_errors",
	[SIM_ERR_RCV_CONSTRAINT] = "port_rcv_constraint_errors",
	[SIM_ERR_INTEGRITY] = "local_link_integrity_errors",
	[SIM_ERR_OVERRUN] = "excessive_buffer_overrun_errors",
	[SIM_ERR_VL15] = "VL15_dropped",
	[SIM_ERR_XMIT_WAIT] = "port_xmit_wait",
};

/* How many packets a frame stands for, and how many bytes with headers. */
static u32 ib_packets(struct sim_hca *h, const struct sim_hdr *hdr, u64 *bytes)
{
	u32 len = be32_to_cpu(hdr->len), mtu, n;

	mtu = ib_mtu_enum_to_int(h->port.mtu);
	n = len > mtu ? DIV_ROUND_UP(len, mtu) : 1;
	/* LRH, BTH, ICRC */
	*bytes = ALIGN(len, 4) + n * (8 + 12 + 4);
	if (hdr->op == SIM_UD)
		*bytes += 8;			/* DETH */
	else if (hdr->op == SIM_READ ||
		 (hdr->op == SIM_WRITE && !hdr->off))
		*bytes += 16;			/* RETH */
	if (hdr->flags & SIM_F_GRH)
		*bytes += n * 40;
	return n;
}

void sim_count_xmit(struct sim_hca *h, const struct sim_hdr *hdr)
{
	u64 bytes;
	u32 n = ib_packets(h, hdr, &bytes);

	atomic64_add(bytes, &h->cnt.xmit_bytes);
	atomic64_add(n, &h->cnt.xmit_pkts);
	atomic64_add(n, sim_lid_is_mcast(be16_to_cpu(hdr->dlid)) ?
		     &h->cnt.multi_xmit : &h->cnt.uni_xmit);
}

void sim_count_rcv(struct sim_hca *h, const struct sim_hdr *hdr)
{
	u64 bytes;
	u32 n = ib_packets(h, hdr, &bytes);

	atomic64_add(bytes, &h->cnt.rcv_bytes);
	atomic64_add(n, &h->cnt.rcv_pkts);
	atomic64_add(n, sim_lid_is_mcast(be16_to_cpu(hdr->dlid)) ?
		     &h->cnt.multi_rcv : &h->cnt.uni_rcv);
}

/* The counters stop at their top and do not wrap. */
static u32 capped(atomic64_t *c, unsigned int bits)
{
	return min_t(u64, atomic64_read(c), (1ULL << bits) - 1);
}

static u32 capped_words(atomic64_t *c)
{
	return min_t(u64, atomic64_read(c) / 4, U32_MAX);
}

static void get_counters(struct sim_hca *h, struct ib_pma_portcounters *p)
{
	struct sim_counters *c = &h->cnt;

	p->symbol_error_counter =
		cpu_to_be16(capped(&c->err[SIM_ERR_SYMBOL], 16));
	p->link_error_recovery_counter = capped(&c->err[SIM_ERR_RECOVERY], 8);
	p->link_downed_counter = capped(&c->err[SIM_ERR_DOWNED], 8);
	p->port_rcv_errors = cpu_to_be16(capped(&c->err[SIM_ERR_RCV], 16));
	p->port_rcv_remphys_errors =
		cpu_to_be16(capped(&c->err[SIM_ERR_REMPHYS], 16));
	p->port_rcv_switch_relay_errors =
		cpu_to_be16(capped(&c->err[SIM_ERR_RELAY], 16));
	p->port_xmit_discards =
		cpu_to_be16(capped(&c->err[SIM_ERR_DISCARDS], 16));
	p->port_xmit_constraint_errors =
		capped(&c->err[SIM_ERR_XMIT_CONSTRAINT], 8);
	p->port_rcv_constraint_errors =
		capped(&c->err[SIM_ERR_RCV_CONSTRAINT], 8);
	p->link_overrun_errors = capped(&c->err[SIM_ERR_INTEGRITY], 4) << 4 |
				 capped(&c->err[SIM_ERR_OVERRUN], 4);
	p->vl15_dropped = cpu_to_be16(capped(&c->err[SIM_ERR_VL15], 16));
	p->port_xmit_data = cpu_to_be32(capped_words(&c->xmit_bytes));
	p->port_rcv_data = cpu_to_be32(capped_words(&c->rcv_bytes));
	p->port_xmit_packets = cpu_to_be32(capped(&c->xmit_pkts, 32));
	p->port_rcv_packets = cpu_to_be32(capped(&c->rcv_pkts, 32));
	p->port_xmit_wait = cpu_to_be32(capped(&c->err[SIM_ERR_XMIT_WAIT], 32));
}

static void clear(atomic64_t *c, bool yes)
{
	if (yes)
		atomic64_set(c, 0);
}

static void set_counters(struct sim_hca *h, const struct ib_pma_portcounters *p,
			 u8 select2)
{
	/* bit n of CounterSelect: the n-th counter of the attribute */
	static const u8 order[] = {
		SIM_ERR_SYMBOL, SIM_ERR_RECOVERY, SIM_ERR_DOWNED, SIM_ERR_RCV,
		SIM_ERR_REMPHYS, SIM_ERR_RELAY, SIM_ERR_DISCARDS,
		SIM_ERR_XMIT_CONSTRAINT, SIM_ERR_RCV_CONSTRAINT,
		SIM_ERR_INTEGRITY, SIM_ERR_OVERRUN, SIM_ERR_VL15,
	};
	u16 sel = be16_to_cpu(p->counter_select);
	struct sim_counters *c = &h->cnt;
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		clear(&c->err[order[i]], sel & (1 << i));
	clear(&c->xmit_bytes, sel & 0x1000);
	clear(&c->rcv_bytes, sel & 0x2000);
	clear(&c->xmit_pkts, sel & 0x4000);
	clear(&c->rcv_pkts, sel & 0x8000);
	clear(&c->err[SIM_ERR_XMIT_WAIT], select2 & 1);
}

static void get_counters_ext(struct sim_hca *h,
			     struct ib_pma_portcounters_ext *p)
{
	struct sim_counters *c = &h->cnt;

	p->port_xmit_data = cpu_to_be64(atomic64_read(&c->xmit_bytes) / 4);
	p->port_rcv_data = cpu_to_be64(atomic64_read(&c->rcv_bytes) / 4);
	p->port_xmit_packets = cpu_to_be64(atomic64_read(&c->xmit_pkts));
	p->port_rcv_packets = cpu_to_be64(atomic64_read(&c->rcv_pkts));
	p->port_unicast_xmit_packets = cpu_to_be64(atomic64_read(&c->uni_xmit));
	p->port_unicast_rcv_packets = cpu_to_be64(atomic64_read(&c->uni_rcv));
	p->port_multicast_xmit_packets =
		cpu_to_be64(atomic64_read(&c->multi_xmit));
	p->port_multicast_rcv_packets =
		cpu_to_be64(atomic64_read(&c->multi_rcv));
}

static void set_counters_ext(struct sim_hca *h,
			     const struct ib_pma_portcounters_ext *p)
{
	u16 sel = be16_to_cpu(p->counter_select);
	struct sim_counters *c = &h->cnt;

	clear(&c->xmit_bytes, sel & 0x01);
	clear(&c->rcv_bytes, sel & 0x02);
	clear(&c->xmit_pkts, sel & 0x04);
	clear(&c->rcv_pkts, sel & 0x08);
	clear(&c->uni_xmit, sel & 0x10);
	clear(&c->uni_rcv, sel & 0x20);
	clear(&c->multi_xmit, sel & 0x40);
	clear(&c->multi_rcv, sel & 0x80);
}

int sim_process_perf(struct sim_hca *h, const struct ib_mad *in,
		     struct ib_mad *out)
{
	const struct ib_pma_mad *req = (const struct ib_pma_mad *)in;
	struct ib_pma_mad *rsp = (struct ib_pma_mad *)out;
	bool set = in->mad_hdr.method == IB_MGMT_METHOD_SET;
	u8 port = req->data[1];

	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && !set)
		return IB_MAD_RESULT_SUCCESS;	/* a response: for its asker */
	if (sim_mad_drop & SIM_DROP_PMA)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = 0;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO: {
		struct ib_class_port_info *cpi = (void *)rsp->data;

		memset(cpi, 0, sizeof(*cpi));
		cpi->base_version = 1;
		cpi->class_version = 1;
		cpi->capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT |
				       IB_PMA_CLASS_CAP_EXT_WIDTH |
				       IB_PMA_CLASS_CAP_XMIT_WAIT;
		ib_set_cpi_resp_time(cpi, 18);
		break;
	}
	case IB_PMA_PORT_COUNTERS: {
		struct ib_pma_portcounters *p = (void *)rsp->data;

		if (port != 1 && port != 0xff)
			goto bad;
		if (set)
			set_counters(h, (const void *)req->data,
				     req->data[18]);
		memset(rsp->data, 0, sizeof(rsp->data));
		p->port_select = port;
		get_counters(h, p);
		break;
	}
	case IB_PMA_PORT_COUNTERS_EXT: {
		struct ib_pma_portcounters_ext *p = (void *)rsp->data;

		if (port != 1 && port != 0xff)
			goto bad;
		if (set)
			set_counters_ext(h, (const void *)req->data);
		memset(rsp->data, 0, sizeof(rsp->data));
		p->port_select = port;
		get_counters_ext(h, p);
		break;
	}
	default:
		out->mad_hdr.status =
			cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
bad:
	out->mad_hdr.status =
		cpu_to_be16(IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
