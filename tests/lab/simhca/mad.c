// SPDX-License-Identifier: GPL-2.0
/*
 * The subnet management agent, and which MADs go to whom. The core does the
 * directed-route hops of a channel adapter (IBA 14.2.2) before it asks here.
 */
#include "simhca.h"

#define ATTR_MLNX_EXT_PORT_INFO	cpu_to_be16(0xff90)

static u8 ext_supported(void)
{
	return sim_speed == IB_SPEED_NDR ? 0xf : 0x7;
}

static void get_node_info(struct sim_hca *h, struct ib_smp *smp)
{
	struct ib_node_info *ni = (void *)smp->data;

	memset(smp->data, 0, sizeof(smp->data));
	ni->base_version = 1;
	ni->class_version = 1;
	ni->node_type = 1;
	ni->num_ports = 1;
	ni->sys_guid = cpu_to_be64(h->guid);
	ni->node_guid = cpu_to_be64(h->guid);
	ni->port_guid = cpu_to_be64(h->guid);
	ni->partition_cap = cpu_to_be16(SIM_NPKEYS);
	ni->device_id = cpu_to_be16(h->rdi.dparms.props.vendor_part_id);
	ni->local_port_num = 1;
	ni->vendor_id[1] = 0x02;
	ni->vendor_id[2] = 0xc9;
}

static void get_port_info(struct sim_hca *h, struct ib_smp *smp)
{
	struct ib_port_info *pi = (void *)smp->data;
	struct rvt_ibport *r = &h->rvp;
	struct sim_port *p = &h->port;
	u8 base;

	memset(smp->data, 0, sizeof(smp->data));
	/* protection 1 hides the key from those who do not know it */
	if (!r->mkeyprot || smp->mkey == r->mkey)
		pi->mkey = r->mkey;
	pi->gid_prefix = r->gid_prefix;
	pi->lid = cpu_to_be16(p->lid);
	pi->sm_lid = cpu_to_be16(r->sm_lid);
	pi->cap_mask = cpu_to_be32(r->port_cap_flags);
	pi->mkey_lease_period = cpu_to_be16(r->mkey_lease_period);
	pi->local_port_num = 1;
	pi->link_width_enabled = p->width_enabled;
	pi->link_width_supported = IB_WIDTH_1X | IB_WIDTH_4X;
	pi->link_width_active = p->width_active;
	pi->linkspeed_portstate = 7 << 4 | p->state;
	pi->portphysstate_linkdown = p->phys << 4 | p->link_down_default;
	pi->mkeyprot_resv_lmc = r->mkeyprot << 6 | p->lmc;
	base = min_t(u16, p->speed_active, IB_SPEED_QDR);
	pi->linkspeedactive_enabled = base << 4 | p->speed_enabled;
	pi->neighbormtu_mastersmsl = p->mtu << 4 | r->sm_sl;
	pi->vlcap_inittype = 3 << 4;		/* VL 0 to 3 */
	pi->vl_high_limit = r->vl_high_limit;
	pi->vl_arb_high_cap = 8;
	pi->vl_arb_low_cap = 8;
	pi->inittypereply_mtucap = SIM_MTU;
	pi->vlstallcnt_hoqlife = 0;
	pi->operationalvl_pei_peo_fpi_fpo = p->op_vls << 4 | p->enforce;
	pi->mkey_violations = cpu_to_be16(r->mkey_violations);
	pi->pkey_violations = cpu_to_be16(r->pkey_violations);
	pi->qkey_violations = cpu_to_be16(r->qkey_violations);
	pi->guid_cap = SIM_NGUIDS;
	pi->clientrereg_resv_subnetto = r->subnet_timeout;
	pi->resv_resptimevalue = 16;
	pi->localphyerrors_overrunerrors = p->phy_overrun;
	/* beyond the kernel's struct: CapabilityMask2, the extended speeds */
	smp->data[60] = (IB_PORT_LINK_SPEED_HDR_SUP |
			 IB_PORT_LINK_SPEED_NDR_SUP) >> 8;
	smp->data[61] = (IB_PORT_LINK_SPEED_HDR_SUP |
			 IB_PORT_LINK_SPEED_NDR_SUP) & 0xff;
	smp->data[62] = (p->speed_active >= IB_SPEED_FDR ?
			 p->speed_active >> 4 : 0) << 4 | ext_supported();
	smp->data[63] = p->ext_enabled & ext_supported();
}

/* 0 keeps what is enabled, all ones enables what is supported. */
static u8 enabled(u8 now, u8 want, u8 ones, u8 supported)
{
	if (!want)
		return now;
	return want == ones ? supported : want & supported;
}

static bool set_port_info(struct sim_hca *h, struct ib_smp *smp)
{
	const struct ib_port_info *pi = (const void *)smp->data;
	u8 state = pi->linkspeed_portstate & 0xf;
	u8 phys = pi->portphysstate_linkdown >> 4;
	u16 lid = be16_to_cpu(pi->lid), sm_lid = be16_to_cpu(pi->sm_lid);
	bool new_lid, new_sm, new_prefix, rereg;
	struct rvt_ibport *r = &h->rvp;
	struct sim_port *p = &h->port;
	u8 lmc = pi->mkeyprot_resv_lmc & 7;

	if (lid >= SIM_LID_MCAST || sm_lid >= SIM_LID_MCAST || state > 4 ||
	    phys > 3)
		return false;
	new_lid = lid && (lid != p->lid || lmc != p->lmc);
	new_sm = sm_lid && (sm_lid != r->sm_lid ||
			    (pi->neighbormtu_mastersmsl & 0xf) != r->sm_sl);
	new_prefix = pi->gid_prefix && pi->gid_prefix != r->gid_prefix;
	rereg = pi->clientrereg_resv_subnetto & 0x80;

	r->mkey = pi->mkey;
	r->mkeyprot = pi->mkeyprot_resv_lmc >> 6;
	r->mkey_lease_period = be16_to_cpu(pi->mkey_lease_period);
	if (new_prefix)
		r->gid_prefix = pi->gid_prefix;
	if (lid) {
		p->lid = lid;
		p->lmc = lmc;
	}
	if (sm_lid) {
		r->sm_lid = sm_lid;
		r->sm_sl = pi->neighbormtu_mastersmsl & 0xf;
	}
	p->width_enabled = enabled(p->width_enabled, pi->link_width_enabled,
				   0xff, IB_WIDTH_1X | IB_WIDTH_4X);
	p->speed_enabled = enabled(p->speed_enabled,
				   pi->linkspeedactive_enabled & 0xf, 0xf, 7);
	if ((smp->data[63] & 0x1f) == 30)
		p->ext_enabled = 0;
	else
		p->ext_enabled = enabled(p->ext_enabled, smp->data[63] & 0x1f,
					 0x1f, ext_supported());
	if (pi->portphysstate_linkdown & 0xf)
		p->link_down_default = pi->portphysstate_linkdown & 0xf;
	if (pi->neighbormtu_mastersmsl >> 4)
		p->mtu = min_t(u8, pi->neighbormtu_mastersmsl >> 4, SIM_MTU);
	r->vl_high_limit = pi->vl_high_limit;
	if (pi->operationalvl_pei_peo_fpi_fpo >> 4)
		p->op_vls = pi->operationalvl_pei_peo_fpi_fpo >> 4;
	p->enforce = pi->operationalvl_pei_peo_fpi_fpo & 0xf;
	p->phy_overrun = pi->localphyerrors_overrunerrors;
	/* these can only be cleared */
	if (!pi->mkey_violations)
		r->mkey_violations = 0;
	if (!pi->pkey_violations)
		r->pkey_violations = 0;
	if (!pi->qkey_violations)
		r->qkey_violations = 0;
	r->subnet_timeout = pi->clientrereg_resv_subnetto & 0x1f;

	if (new_prefix)
		sim_dispatch(h, IB_EVENT_GID_CHANGE);
	if (new_lid)
		sim_dispatch(h, IB_EVENT_LID_CHANGE);
	if (new_sm)
		sim_dispatch(h, IB_EVENT_SM_CHANGE);

	if (phys == SIM_PHYS_DISABLED) {
		p->disable_next = 1;
		sim_link_bounce(h);
	} else if (phys == SIM_PHYS_POLLING || state == IB_PORT_DOWN) {
		p->disable_next = 0;
		p->disabled = 0;
		sim_link_bounce(h);
	} else if (state) {
		sim_set_port_state(h, state);
	}
	if (rereg)
		sim_dispatch(h, IB_EVENT_CLIENT_REREGISTER);
	get_port_info(h, smp);
	/* the answer repeats the bit, so that the SM knows it was heard */
	if (rereg)
		((struct ib_port_info *)smp->data)->clientrereg_resv_subnetto |=
			0x80;
	return true;
}

static bool pkey_table(struct sim_hca *h, struct ib_smp *smp, bool set)
{
	u32 block = be32_to_cpu(smp->attr_mod) & 0xffff;
	u16 *mine = h->port.pkeys + block * 32;
	__be16 *theirs = (__be16 *)smp->data;
	bool changed = false;
	int i;

	if (block >= SIM_NPKEYS / 32)
		return false;
	for (i = 0; i < 32; i++) {
		u16 key = be16_to_cpu(theirs[i]);

		if (set && key != mine[i]) {
			mine[i] = key;
			changed = true;
		}
		theirs[i] = cpu_to_be16(mine[i]);
	}
	if (changed)
		sim_dispatch(h, IB_EVENT_PKEY_CHANGE);
	return true;
}

static bool guid_info(struct sim_hca *h, struct ib_smp *smp, bool set)
{
	__be64 *theirs = (__be64 *)smp->data;
	int i;

	if (smp->attr_mod)
		return false;
	/* entry 0 is the hardware's and cannot be set */
	for (i = 1; set && i < SIM_NGUIDS; i++)
		h->port.guids[i] = theirs[i];
	if (set)
		sim_dispatch(h, IB_EVENT_GID_CHANGE);
	memcpy(smp->data, h->port.guids, sizeof(h->port.guids));
	return true;
}

static bool vl_arb(struct sim_hca *h, struct ib_smp *smp, bool set)
{
	u32 block = be32_to_cpu(smp->attr_mod) >> 16;

	if (block < 1 || block > 4)
		return false;
	if (set)
		memcpy(h->port.vlarb[block - 1], smp->data, 64);
	memcpy(smp->data, h->port.vlarb[block - 1], 64);
	return true;
}

static bool sl2vl(struct sim_hca *h, struct ib_smp *smp, bool set)
{
	if (set)
		memcpy(h->port.sl2vl, smp->data, 8);
	memset(smp->data, 0, sizeof(smp->data));
	memcpy(smp->data, h->port.sl2vl, 8);
	return true;
}

/* Returns the MAD status. */
static u16 attribute(struct sim_hca *h, struct ib_smp *smp, bool set)
{
	u32 port = be32_to_cpu(smp->attr_mod) & 0xff;
	bool ok;

	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		if (set)
			return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
		memcpy(smp->data, h->rdi.ibdev.node_desc, 64);
		ok = !smp->attr_mod;
		break;
	case IB_SMP_ATTR_NODE_INFO:
		if (set)
			return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
		get_node_info(h, smp);
		ok = !smp->attr_mod;
		break;
	case IB_SMP_ATTR_PORT_INFO:
		ok = port <= 1;
		if (ok && set)
			ok = set_port_info(h, smp);
		else if (ok)
			get_port_info(h, smp);
		break;
	case IB_SMP_ATTR_PKEY_TABLE:
		ok = pkey_table(h, smp, set);
		break;
	case IB_SMP_ATTR_GUID_INFO:
		ok = guid_info(h, smp, set);
		break;
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
		ok = sl2vl(h, smp, set);
		break;
	case IB_SMP_ATTR_VL_ARB_TABLE:
		ok = vl_arb(h, smp, set);
		break;
	case ATTR_MLNX_EXT_PORT_INFO:
		/* opensm asks Mellanox devices for it; zeros: nothing extra */
		memset(smp->data, 0, sizeof(smp->data));
		ok = true;
		break;
	default:
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
	return ok ? 0 : IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
}

/* May the one who asks do that, by the M_Key? (IBA 14.2.4) */
static bool mkey_ok(struct sim_hca *h, int flags, const struct ib_smp *smp)
{
	struct rvt_ibport *r = &h->rvp;

	if ((flags & IB_MAD_IGNORE_MKEY) || !r->mkey || smp->mkey == r->mkey)
		return true;
	if (smp->method == IB_MGMT_METHOD_GET && r->mkeyprot < 2)
		return true;
	r->mkey_violations++;
	return false;
}

static int process_subn(struct sim_hca *h, int flags, const struct ib_mad *in,
			struct ib_mad *out)
{
	const struct ib_smp *req = (const struct ib_smp *)in;
	struct ib_smp *smp = (struct ib_smp *)out;
	bool set = req->method == IB_MGMT_METHOD_SET;
	u16 status;

	if (req->method == IB_MGMT_METHOD_TRAP_REPRESS)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	if (req->method != IB_MGMT_METHOD_GET && !set)
		return IB_MAD_RESULT_SUCCESS;	/* answers and traps: for the SM */
	if (req->attr_id == IB_SMP_ATTR_SM_INFO) {
		/* opensm answers it itself, where one runs */
		if (h->rvp.port_cap_flags & IB_PORT_SM)
			return IB_MAD_RESULT_SUCCESS;
	} else if (sim_mad_drop & SIM_DROP_SMA) {
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	}
	if (!mkey_ok(h, flags, req))
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	*out = *in;
	status = attribute(h, smp, set);
	smp->method = IB_MGMT_METHOD_GET_RESP;
	smp->status = cpu_to_be16(status);
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		smp->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

int sim_process_mad(struct ib_device *ibdev, int flags, u32 port_num,
		    const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index)
{
	struct sim_hca *h = sim_from_ib(ibdev);

	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		return process_subn(h, flags, in, out);
	case IB_MGMT_CLASS_PERF_MGMT:
		return sim_process_perf(h, in, out);
	default:
		return IB_MAD_RESULT_SUCCESS;	/* not ours: SA, CM, ... */
	}
}

/* The Notice of trap 144: the capability mask changed. */
struct notice_144 {
	u8 generic_type;
	u8 producer_msb;
	__be16 producer;
	__be16 trap;
	__be16 issuer_lid;
	__be16 toggle_count;
	__be16 pad1;
	__be16 lid;
	u8 pad2;
	u8 local_changes;
	__be32 cap_mask;
} __packed;

/*
 * An SM that starts or stops here sets or clears the IS_SM bit; the master
 * hears of it this way and does not have to wait for its next sweep.
 */
void sim_trap_work(struct work_struct *work)
{
	struct sim_hca *h = container_of(work, struct sim_hca, trap_work);
	struct rvt_ibport *r = &h->rvp;
	struct rdma_ah_attr attr = {};
	struct ib_mad_send_buf *buf;
	struct notice_144 *n;
	struct ib_smp *smp;
	struct ib_ah *ah;

	if (!h->registered || h->closing || !r->send_agent || !r->sm_lid ||
	    h->port.state != IB_PORT_ACTIVE)
		return;
	buf = ib_create_send_mad(r->send_agent, 0, 0, 0, IB_MGMT_MAD_HDR,
				 IB_MGMT_MAD_DATA, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf))
		return;
	attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&attr, r->sm_lid);
	rdma_ah_set_sl(&attr, r->sm_sl);
	rdma_ah_set_port_num(&attr, 1);
	ah = rdma_create_ah(r->send_agent->qp->pd, &attr, 0);
	if (IS_ERR(ah)) {
		ib_free_send_mad(buf);
		return;
	}
	/* rdmavt destroys the last one together with the agent */
	if (r->sm_ah)
		rdma_destroy_ah(&r->sm_ah->ibah, RDMA_DESTROY_AH_SLEEPABLE);
	r->sm_ah = ibah_to_rvtah(ah);
	buf->ah = ah;
	smp = buf->mad;
	smp->base_version = IB_MGMT_BASE_VERSION;
	smp->mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED;
	smp->class_version = 1;
	smp->method = IB_MGMT_METHOD_TRAP;
	smp->tid = cpu_to_be64(++r->tid);
	smp->attr_id = IB_SMP_ATTR_NOTICE;
	n = (struct notice_144 *)smp->data;
	n->generic_type = IB_NOTICE_TYPE_INFO;
	n->producer = IB_NOTICE_PROD_CA;
	n->trap = IB_NOTICE_TRAP_CAP_MASK_CHG;
	n->issuer_lid = cpu_to_be16(h->port.lid);
	n->lid = n->issuer_lid;
	n->cap_mask = cpu_to_be32(r->port_cap_flags);
	if (ib_post_send_mad(buf, NULL))
		ib_free_send_mad(buf);
}
