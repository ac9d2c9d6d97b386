// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: what UD QPs, QP 0 and QP 1 send and receive.
 */
#include "simhca.h"

/* Copy out of a scatter list, moving along it; references stay. */
void sim_gather(struct rvt_sge_state *ss, void *to, u32 len)
{
	while (len) {
		u32 n = rvt_get_sge_length(&ss->sge, len);

		if (WARN_ON_ONCE(!n))
			return;
		memcpy(to, ss->sge.vaddr, n);
		rvt_update_sge(ss, n, false);
		to += n;
		len -= n;
	}
}

void sim_wqe_ss(struct rvt_swqe *wqe, struct rvt_sge_state *ss)
{
	ss->sge = wqe->sg_list[0];
	ss->sg_list = wqe->sg_list + 1;
	ss->num_sge = wqe->wr.num_sge;
	ss->total_len = wqe->length;
}

void sim_make_grh(struct sim_hca *h, struct rdma_ah_attr *ah, u32 len,
		  struct ib_grh *grh)
{
	const struct ib_global_route *r = rdma_ah_read_grh(ah);

	grh->version_tclass_flow = cpu_to_be32(((u32)IB_GRH_VERSION << 28) |
					       (r->traffic_class << 20) |
					       (r->flow_label & 0xfffff));
	/* BTH and DETH in front, the checksum behind */
	grh->paylen = cpu_to_be16(12 + 8 + ALIGN(len, 4) + 4);
	grh->next_hdr = IB_GRH_NEXT_HDR;
	grh->hop_limit = r->hop_limit;
	grh->sgid.global.subnet_prefix = h->rvp.gid_prefix;
	grh->sgid.global.interface_id =
		h->port.guids[r->sgid_index < SIM_NGUIDS ? r->sgid_index : 0];
	grh->dgid = r->dgid;
}

void sim_ud_send(struct sim_hca *h, struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	struct rdma_ah_attr *ah = rvt_get_swqe_ah_attr(wqe);
	u16 dlid = rdma_ah_get_dlid(ah);
	u8 sl = rdma_ah_get_sl(ah);
	u32 qkey = rvt_get_swqe_remote_qkey(wqe);
	bool smi = qp->ibqp.qp_type == IB_QPT_SMI;
	struct rvt_sge_state ss;
	struct sim_hdr *hdr;
	struct sk_buff *skb;
	void *data;
	u16 index;

	/* QP 0 works as soon as the link does, all else when it is active */
	if (!smi && h->port.state != IB_PORT_ACTIVE &&
	    !sim_lid_is_mine(h, dlid))
		return;
	skb = sim_frame(h, wqe->length, &hdr, &data);
	if (!skb)
		return;
	index = qp->ibqp.qp_type == IB_QPT_GSI ?
		rvt_get_swqe_pkey_index(wqe) : qp->s_pkey_index;
	hdr->op = SIM_UD;
	hdr->slid = cpu_to_be16(h->port.lid ?
		h->port.lid | (rdma_ah_get_path_bits(ah) &
			       ((1 << h->port.lmc) - 1)) :
		SIM_LID_PERMISSIVE);
	hdr->dlid = cpu_to_be16(dlid);
	hdr->sl_vl = (sl << 4) | (smi ? 15 : 0);
	hdr->pkey = cpu_to_be16(smi ? IB_DEFAULT_PKEY_FULL :
				rvt_get_pkey(&h->rdi, 0, index));
	hdr->sqpn = cpu_to_be32(qp->ibqp.qp_num);
	hdr->dqpn = cpu_to_be32(rvt_get_swqe_remote_qpn(wqe));
	/* a Q_Key with the top bit set stands for the QP's own */
	hdr->qkey = cpu_to_be32((s32)qkey < 0 ? qp->qkey : qkey);
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		hdr->qkey = cpu_to_be32(IB_QP1_QKEY);
	if (wqe->wr.opcode == IB_WR_SEND_WITH_IMM) {
		hdr->flags |= SIM_F_IMM;
		hdr->imm = wqe->wr.ex.imm_data;
	}
	if (wqe->wr.send_flags & IB_SEND_SOLICITED)
		hdr->flags |= SIM_F_SOLICITED;
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH) {
		hdr->flags |= SIM_F_GRH;
		sim_make_grh(h, ah, wqe->length, (struct ib_grh *)hdr->grh);
	}
	if (wqe->length) {
		sim_wqe_ss(wqe, &ss);
		sim_gather(&ss, data, wqe->length);
	}
	if (sim_lid_is_mine(h, dlid)) {
		sim_ud_receive(h, hdr, data);
		kfree_skb(skb);
		return;
	}
	/* other QPs of this port in the group hear it too */
	if (sim_lid_is_mcast(dlid))
		sim_ud_receive(h, hdr, data);
	sim_count_xmit(h, hdr);
	sim_xmit(h, skb);
}

static bool pkey_match(u16 a, u16 b)
{
	/* the same partition, and at least one side a full member */
	return (a & 0x7fff) && ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000);
}

static int pkey_find(struct sim_hca *h, u16 pkey)
{
	int i;

	for (i = 0; i < SIM_NPKEYS; i++)
		if (pkey_match(h->port.pkeys[i], pkey))
			return i;
	return -1;
}

static void deliver(struct sim_hca *h, struct rvt_qp *qp,
		    const struct sim_hdr *hdr, const void *data)
{
	u32 len = be32_to_cpu(hdr->len), qpn = qp->ibqp.qp_num;
	u16 pkey = be16_to_cpu(hdr->pkey), dlid = be16_to_cpu(hdr->dlid);
	struct ib_wc wc = { .port_num = 1 };
	unsigned long flags;
	int index = 0, ret;

	if (qp->ibqp.qp_type != IB_QPT_UD && qpn > 1)
		return;
	if (qpn == 1) {
		index = pkey_find(h, pkey);
		if (index < 0) {
			h->rvp.pkey_violations++;
			return;
		}
		if (be32_to_cpu(hdr->qkey) != IB_QP1_QKEY)
			return;
	} else if (qpn > 1) {
		index = qp->s_pkey_index;
		if (!pkey_match(rvt_get_pkey(&h->rdi, 0, index), pkey)) {
			h->rvp.pkey_violations++;
			return;
		}
		if (be32_to_cpu(hdr->qkey) != qp->qkey) {
			h->rvp.qkey_violations++;
			return;
		}
	}

	spin_lock_irqsave(&qp->r_lock, flags);
	if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_RECV_OK))
		goto out;
	if (qp->r_flags & RVT_R_REUSE_SGE) {
		qp->r_flags &= ~RVT_R_REUSE_SGE;
	} else {
		ret = rvt_get_rwqe(qp, false);
		if (ret < 0)
			rvt_rc_error(qp, IB_WC_LOC_QP_OP_ERR);
		if (ret <= 0) {
			if (!qpn)
				atomic64_inc(&h->cnt.err[SIM_ERR_VL15]);
			goto out;
		}
	}
	if (len + sizeof(struct ib_grh) > qp->r_len) {
		/* keep the buffer for the next one */
		qp->r_flags |= RVT_R_REUSE_SGE;
		goto out;
	}
	if (hdr->flags & SIM_F_GRH) {
		rvt_copy_sge(qp, &qp->r_sge, (void *)hdr->grh, 40, true, false);
		wc.wc_flags |= IB_WC_GRH;
	} else {
		rvt_skip_sge(&qp->r_sge, 40, true);
	}
	if (len)
		rvt_copy_sge(qp, &qp->r_sge, (void *)data, len, true, false);
	rvt_put_ss(&qp->r_sge);
	if (!test_and_clear_bit(RVT_R_WRID_VALID, &qp->r_aflags))
		goto out;
	if (hdr->flags & SIM_F_IMM) {
		wc.ex.imm_data = hdr->imm;
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	wc.wr_id = qp->r_wr_id;
	wc.status = IB_WC_SUCCESS;
	wc.opcode = IB_WC_RECV;
	wc.byte_len = len + sizeof(struct ib_grh);
	wc.qp = &qp->ibqp;
	wc.src_qp = be32_to_cpu(hdr->sqpn);
	wc.slid = be16_to_cpu(hdr->slid);
	wc.sl = hdr->sl_vl >> 4;
	wc.pkey_index = index;
	wc.dlid_path_bits = sim_lid_is_mine(h, dlid) ?
		dlid & ((1 << h->port.lmc) - 1) : 0;
	rvt_recv_cq(qp, &wc, hdr->flags & SIM_F_SOLICITED);
out:
	spin_unlock_irqrestore(&qp->r_lock, flags);
}

static void deliver_mcast(struct sim_hca *h, const struct sim_hdr *hdr,
			  const void *data)
{
	struct ib_grh *grh = (struct ib_grh *)hdr->grh;
	u16 dlid = be16_to_cpu(hdr->dlid);
	struct rvt_mcast_qp *mqp;
	struct rvt_mcast *mc;

	/* a group is its GID: without a GRH there is none */
	if (!(hdr->flags & SIM_F_GRH))
		return;
	mc = rvt_mcast_find(&h->rvp, &grh->dgid, dlid);
	if (!mc)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(mqp, &mc->qp_list, list) {
		/* never back to the QP that sent it */
		if (be16_to_cpu(hdr->slid) == h->port.lid &&
		    be32_to_cpu(hdr->sqpn) == mqp->qp->ibqp.qp_num)
			continue;
		deliver(h, mqp->qp, hdr, data);
	}
	rcu_read_unlock();
	/* whoever leaves the group waits for this */
	if (atomic_dec_return(&mc->refcount) <= 1)
		wake_up(&mc->wait);
}

/* A datagram for this port, from the wire or from itself. */
void sim_ud_receive(struct sim_hca *h, const struct sim_hdr *hdr,
		    const void *data)
{
	u16 dlid = be16_to_cpu(hdr->dlid);
	u32 dqpn = be32_to_cpu(hdr->dqpn);
	struct rvt_qp *qp;

	if (sim_lid_is_mcast(dlid)) {
		deliver_mcast(h, hdr, data);
		return;
	}
	if (!sim_lid_is_mine(h, dlid) &&
	    !(dlid == SIM_LID_PERMISSIVE && dqpn == 0))
		return;
	rcu_read_lock();
	qp = rvt_lookup_qpn(&h->rdi, &h->rvp, dqpn);
	if (qp)
		deliver(h, qp, hdr, data);
	rcu_read_unlock();
}
