// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable connections over the wire. Messages are cut into chunks, of which
 * a window may be unacknowledged; a READ or an atomic waits until all before
 * it is done, and what follows waits for it. The responder takes messages and
 * their chunks in order; a repeated one is acknowledged again, a lost one
 * comes again, with all after it, when the requester's timer fires.
 *
 * Locks: the requester's fields are under s_lock, the responder's under
 * r_lock, and r_lock comes first.
 */
#include "simhca.h"

#define WINDOW		(32 * SIM_CHUNK)
#define MAX_OUT		64			/* messages */
#define ACK_EVERY	(8 * SIM_CHUNK)
#define READ_PIECE	(16 * SIM_CHUNK)	/* asked for at a time */
#define RESEND		(HZ)
#define GIVE_UP		(3 * HZ)	/* noticed by the timer: within 4 s */
#define ID_MASK		0xffffff

static bool is_read(struct rvt_swqe *wqe)
{
	return wqe->wr.opcode == IB_WR_RDMA_READ;
}

static bool is_atomic(struct rvt_swqe *wqe)
{
	return wqe->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static u8 qp_sl(struct rvt_qp *qp)
{
	return rdma_ah_get_sl(&qp->remote_ah_attr);
}

/* A frame from this QP to its peer. */
static struct sk_buff *rc_frame(struct sim_hca *h, struct rvt_qp *qp, u8 op,
				u32 id, u32 len, struct sim_hdr **hdr,
				void **data)
{
	struct rdma_ah_attr *ah = &qp->remote_ah_attr;
	struct sk_buff *skb = sim_frame(h, len, hdr, data);

	if (!skb)
		return NULL;
	(*hdr)->op = op;
	(*hdr)->slid = cpu_to_be16(h->port.lid);
	(*hdr)->dlid = cpu_to_be16(rdma_ah_get_dlid(ah));
	(*hdr)->sl_vl = qp_sl(qp) << 4;
	(*hdr)->pkey = cpu_to_be16(rvt_get_pkey(&h->rdi, 0, qp->s_pkey_index));
	(*hdr)->sqpn = cpu_to_be32(qp->ibqp.qp_num);
	(*hdr)->dqpn = cpu_to_be32(qp->remote_qpn);
	(*hdr)->id = cpu_to_be32(id);
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH) {
		(*hdr)->flags |= SIM_F_GRH;
		sim_make_grh(h, ah, len, (struct ib_grh *)(*hdr)->grh);
	}
	return skb;
}

static void rc_xmit(struct sim_hca *h, struct sk_buff *skb,
		    struct sim_hdr *hdr)
{
	if (h->port.state != IB_PORT_ACTIVE) {
		kfree_skb(skb);
		return;
	}
	sim_count_xmit(h, hdr);
	sim_xmit(h, skb);
}

static void answer(struct sim_hca *h, struct rvt_qp *qp, u8 op, u32 id,
		   u32 off, u32 code, u8 flags)
{
	struct sim_hdr *hdr;
	struct sk_buff *skb;
	void *data;

	skb = rc_frame(h, qp, op, id, 0, &hdr, &data);
	if (!skb)
		return;
	hdr->off = cpu_to_be32(off);
	hdr->imm = cpu_to_be32(code);
	hdr->flags |= flags;
	rc_xmit(h, skb, hdr);
}

/* ---- requester ---- */

void sim_rc_reset(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	p->rnr_wait = false;
	p->resend = false;
	p->started = false;
	p->in_msg = false;
	p->cur = 0;	/* rdmavt empties the ring next */
	p->last_id = p->cur_id = p->exp_id = 0;
	p->sent = p->acked = p->asked = 0;
	p->out_bytes = p->done_bytes = 0;
}

static bool busy(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	return p->started || p->resend || p->cur != qp->s_last;
}

static bool is_local(struct rvt_swqe *wqe)
{
	return wqe->wr.opcode == IB_WR_REG_MR ||
	       wqe->wr.opcode == IB_WR_LOCAL_INV;
}

/* The oldest request is done; s_lock is held. */
static void complete_oldest(struct rvt_qp *qp, enum ib_wc_status status)
{
	struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	struct sim_qp *p = qp->priv;
	bool current_one = p->cur == qp->s_last;

	p->done_bytes += wqe->length;
	p->acked = 0;
	p->asked = 0;
	p->last_id = (p->last_id + 1) & ID_MASK;
	p->rnr_left = qp->s_rnr_retry_cnt;
	p->progress = jiffies;
	rvt_send_complete(qp, wqe, status);
	if (current_one) {
		p->cur = qp->s_last;
		p->cur_id = p->last_id;
		p->sent = 0;
		p->started = false;
		p->out_bytes = p->done_bytes;
	}
}

/* Memory registration needs no wire. s_lock is held. */
static enum ib_wc_status local_op(struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	int ret;

	if (wqe->wr.send_flags & RVT_SEND_COMPLETION_ONLY)
		return IB_WC_SUCCESS;
	if (wqe->wr.opcode == IB_WR_REG_MR)
		ret = rvt_fast_reg_mr(qp, wqe->reg_wr.mr, wqe->reg_wr.key,
				      wqe->reg_wr.access);
	else
		ret = rvt_invalidate_rkey(qp, wqe->wr.ex.invalidate_rkey);
	atomic_dec(&qp->local_ops_pending);
	return ret ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

static void fill_chunk(struct sim_qp *p, struct rvt_swqe *wqe,
		       struct sim_hdr *hdr, void *data, u32 len)
{
	bool write = wqe->wr.opcode == IB_WR_RDMA_WRITE ||
		     wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct rvt_sge_state ss;

	hdr->op = write ? SIM_WRITE : SIM_SEND;
	hdr->off = cpu_to_be32(p->sent);
	hdr->total = cpu_to_be32(wqe->length);
	if (write) {
		hdr->vaddr = cpu_to_be64(wqe->rdma_wr.remote_addr);
		hdr->rkey = cpu_to_be32(wqe->rdma_wr.rkey);
	}
	if (wqe->wr.opcode == IB_WR_SEND_WITH_IMM ||
	    wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		hdr->flags |= SIM_F_IMM;
		hdr->imm = wqe->wr.ex.imm_data;
	}
	if (wqe->wr.send_flags & IB_SEND_SOLICITED)
		hdr->flags |= SIM_F_SOLICITED;
	if (len) {
		sim_wqe_ss(wqe, &ss);
		rvt_skip_sge(&ss, p->sent, false);
		sim_gather(&ss, data, len);
	}
	p->sent += len;
	p->out_bytes += len;
	p->started = true;
	if (p->sent < wqe->length)
		return;
	hdr->flags |= SIM_F_LAST;
	p->cur = rvt_qp_swqe_incr(p->qp, p->cur);
	p->cur_id = (p->cur_id + 1) & ID_MASK;
	p->sent = 0;
	p->started = false;
}

static void fill_read(struct sim_qp *p, struct rvt_swqe *wqe,
		      struct sim_hdr *hdr)
{
	u32 len = min_t(u32, wqe->length - p->asked, READ_PIECE);

	hdr->op = SIM_READ;
	hdr->vaddr = cpu_to_be64(wqe->rdma_wr.remote_addr + p->asked);
	hdr->rkey = cpu_to_be32(wqe->rdma_wr.rkey);
	hdr->off = cpu_to_be32(p->asked);
	hdr->total = cpu_to_be32(len);
	p->asked += len;
	p->started = true;
	if (p->asked == wqe->length)
		hdr->flags |= SIM_F_LAST;
}

static void fill_atomic(struct sim_qp *p, struct rvt_swqe *wqe,
			struct sim_hdr *hdr, u64 *data)
{
	hdr->op = SIM_ATOMIC;
	hdr->imm = cpu_to_be32(wqe->wr.opcode);
	hdr->vaddr = cpu_to_be64(wqe->atomic_wr.remote_addr);
	hdr->rkey = cpu_to_be32(wqe->atomic_wr.rkey);
	data[0] = wqe->atomic_wr.compare_add;
	data[1] = wqe->atomic_wr.swap;
	p->asked = sizeof(u64);
	p->started = true;
}

/* Go back to what is acknowledged. */
static void rewind(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	p->resend = false;
	p->started = false;
	p->cur = qp->s_last;
	p->cur_id = p->last_id;
	p->sent = p->acked;
	p->asked = p->acked;
	p->out_bytes = p->done_bytes + p->acked;
}

/*
 * The request that may send a frame now, and the frame's length; s_lock is
 * held. A failed local operation is told by *status.
 */
static struct rvt_swqe *next_frame(struct rvt_qp *qp, u32 *len,
				   enum ib_wc_status *status)
{
	struct sim_qp *p = qp->priv;
	struct rvt_swqe *wqe;

	if (p->rnr_wait ||
	    !(ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK))
		return NULL;
	if (p->resend)
		rewind(qp);
	for (;;) {
		/* pairs with the release in rdmavt's post */
		if (p->cur == smp_load_acquire(&qp->s_head))
			return NULL;
		if (!p->started && !(ib_rvt_state_ops[qp->state] &
				     RVT_PROCESS_NEXT_SEND_OK))
			return NULL;
		wqe = rvt_get_swqe_ptr(qp, p->cur);
		if (!is_local(wqe))
			break;
		if (p->cur != qp->s_last)
			return NULL;
		*status = local_op(qp, wqe);
		if (*status != IB_WC_SUCCESS)
			return NULL;
		complete_oldest(qp, IB_WC_SUCCESS);
	}
	if (is_read(wqe) || is_atomic(wqe)) {
		*len = is_atomic(wqe) ? 2 * sizeof(u64) : 0;
		if (p->cur != qp->s_last)
			return NULL;
		if (!p->started)
			return wqe;
		return is_read(wqe) && p->asked == p->acked &&
		       p->asked < wqe->length ? wqe : NULL;
	}
	if (p->out_bytes - p->done_bytes - p->acked >= WINDOW ||
	    ((p->cur_id - p->last_id) & ID_MASK) >= MAX_OUT)
		return NULL;
	*len = min_t(u32, wqe->length - p->sent, SIM_CHUNK);
	return wqe;
}

/* The request at s_last failed, and with it the QP. r_lock is held. */
static void fail(struct rvt_qp *qp, enum ib_wc_status status)
{
	struct sim_qp *p = qp->priv;

	spin_lock(&qp->s_lock);
	if (qp->s_last != READ_ONCE(qp->s_head) &&
	    (ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK)) {
		rvt_send_complete(qp, rvt_get_swqe_ptr(qp, qp->s_last), status);
		p->cur = qp->s_last;
		p->started = false;
	}
	spin_unlock(&qp->s_lock);
	rvt_rc_error(qp, IB_WC_WR_FLUSH_ERR);
}

/*
 * Send what may be sent. Chunks are filled under s_lock, since an answer can
 * complete a request at any moment and take its memory away.
 */
void sim_rc_push(struct sim_hca *h, struct rvt_qp *qp)
{
	enum ib_wc_status status = IB_WC_SUCCESS;
	struct sim_qp *p = qp->priv;
	struct rvt_swqe *wqe;
	struct sim_hdr *hdr;
	struct sk_buff *skb;
	unsigned long flags;
	u32 len, again;
	void *data;

	for (;;) {
		spin_lock_irqsave(&qp->s_lock, flags);
		wqe = next_frame(qp, &len, &status);
		spin_unlock_irqrestore(&qp->s_lock, flags);
		if (!wqe)
			break;
		skb = rc_frame(h, qp, 0, 0, len, &hdr, &data);
		if (!skb) {
			spin_lock_irqsave(&qp->s_lock, flags);
			p->resend = true;	/* the timer tries again */
			if (!timer_pending(&p->timer))
				mod_timer(&p->timer, jiffies + RESEND);
			spin_unlock_irqrestore(&qp->s_lock, flags);
			break;
		}

		spin_lock_irqsave(&qp->s_lock, flags);
		wqe = next_frame(qp, &again, &status);
		if (!wqe || again != len) {
			spin_unlock_irqrestore(&qp->s_lock, flags);
			kfree_skb(skb);
			if (!wqe)
				break;
			continue;
		}
		hdr->id = cpu_to_be32(p->cur_id);
		if ((is_read(wqe) || is_atomic(wqe)) && !p->acked)
			sim_wqe_ss(wqe, &p->rd_ss);
		if (is_read(wqe))
			fill_read(p, wqe, hdr);
		else if (is_atomic(wqe))
			fill_atomic(p, wqe, hdr, data);
		else
			fill_chunk(p, wqe, hdr, data, len);
		/* it runs as long as something is out: this is the first */
		if (!timer_pending(&p->timer)) {
			p->progress = jiffies;
			mod_timer(&p->timer, jiffies + RESEND);
		}
		spin_unlock_irqrestore(&qp->s_lock, flags);
		rc_xmit(h, skb, hdr);
	}
	if (status != IB_WC_SUCCESS) {
		spin_lock_irqsave(&qp->r_lock, flags);
		fail(qp, status);
		spin_unlock_irqrestore(&qp->r_lock, flags);
	}
}

void sim_rc_timer(struct timer_list *t)
{
	struct sim_qp *p = from_timer(p, t, timer);
	struct rvt_qp *qp = p->qp;
	unsigned long flags;
	bool dead = false;

	spin_lock_irqsave(&qp->r_lock, flags);
	spin_lock(&qp->s_lock);
	if (p->rnr_wait) {
		p->rnr_wait = false;
		p->resend = true;
		p->progress = jiffies;
		sim_schedule_send(qp);
	} else if (busy(qp)) {
		dead = time_after(jiffies, p->progress + GIVE_UP);
		if (!dead && time_after_eq(jiffies, p->progress + RESEND)) {
			p->resend = true;
			sim_schedule_send(qp);
		}
	}
	if (!dead && busy(qp) &&
	    (ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK))
		mod_timer(&p->timer, jiffies + RESEND);
	spin_unlock(&qp->s_lock);
	if (dead)
		fail(qp, IB_WC_RETRY_EXC_ERR);
	spin_unlock_irqrestore(&qp->r_lock, flags);
}

static void got_read_data(struct rvt_qp *qp, const struct sim_hdr *hdr,
			  const void *data)
{
	struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	u32 total = is_atomic(wqe) ? sizeof(u64) : wqe->length;
	u32 len = be32_to_cpu(hdr->len);
	struct sim_qp *p = qp->priv;

	if (!p->started || be32_to_cpu(hdr->off) != p->acked ||
	    len > p->asked - p->acked)
		return;
	if (len)
		rvt_copy_sge(qp, &p->rd_ss, (void *)data, len, false, false);
	p->acked += len;
	p->progress = jiffies;
	if (p->acked == total)
		complete_oldest(qp, IB_WC_SUCCESS);
	sim_schedule_send(qp);
}

/* off bytes of the oldest request are there, or all of it. */
static void got_ack(struct rvt_qp *qp, const struct sim_hdr *hdr)
{
	struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	u32 off = be32_to_cpu(hdr->off);
	struct sim_qp *p = qp->priv;

	p->progress = jiffies;
	if (is_read(wqe) || is_atomic(wqe))
		return;
	if (hdr->flags & SIM_F_LAST) {
		complete_oldest(qp, IB_WC_SUCCESS);
	} else if (off > p->acked && off < wqe->length) {
		p->acked = off;
		/* after a rewind: no need to send that again */
		if (p->cur == qp->s_last && p->sent < off) {
			p->out_bytes += off - p->sent;
			p->sent = off;
		}
	}
	sim_schedule_send(qp);
}

/* Returns a status if it was refused once too often. */
static enum ib_wc_status got_rnr(struct rvt_qp *qp, const struct sim_hdr *hdr)
{
	struct sim_qp *p = qp->priv;

	if (qp->s_rnr_retry_cnt != 7 && !p->rnr_left--)
		return IB_WC_RNR_RETRY_EXC_ERR;
	p->acked = 0;
	rewind(qp);
	p->rnr_wait = true;
	p->progress = jiffies;
	mod_timer(&p->timer, jiffies + 1 + usecs_to_jiffies(
			rvt_rnr_tbl_to_usec(be32_to_cpu(hdr->imm))));
	return IB_WC_SUCCESS;
}

static enum ib_wc_status nak_status(u32 code)
{
	switch (code) {
	case SIM_NAK_ACCESS:
		return IB_WC_REM_ACCESS_ERR;
	case SIM_NAK_INVALID:
		return IB_WC_REM_INV_REQ_ERR;
	default:
		return IB_WC_REM_OP_ERR;
	}
}

/*
 * Is the answer to a request that is out? It then stands for all before it,
 * and these are completed. s_lock is held.
 */
static bool settle_before(struct rvt_qp *qp, u32 id)
{
	struct sim_qp *p = qp->priv;
	u32 n = (id - p->last_id) & ID_MASK;
	u32 out = ((p->cur_id - p->last_id) & ID_MASK) + p->started;

	/*
	 * After a rewind the requests behind cur are out no more, but their
	 * answers may still come: as far as the ring goes they are good.
	 */
	if (n >= out && (n >= MAX_OUT || !out))
		return false;
	while (n--) {
		struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);

		if (qp->s_last == READ_ONCE(qp->s_head) || is_read(wqe) ||
		    is_atomic(wqe) || is_local(wqe))
			return false;
		complete_oldest(qp, IB_WC_SUCCESS);
	}
	return qp->s_last != READ_ONCE(qp->s_head);
}

static void receive_answer(struct rvt_qp *qp, const struct sim_hdr *hdr,
			   const void *data)
{
	enum ib_wc_status status = IB_WC_SUCCESS;
	struct sim_qp *p = qp->priv;
	unsigned long flags;

	spin_lock_irqsave(&qp->r_lock, flags);
	spin_lock(&qp->s_lock);
	if ((ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK) &&
	    settle_before(qp, be32_to_cpu(hdr->id))) {
		struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);

		switch (hdr->op) {
		case SIM_READ_RESP:
			if (is_read(wqe) || is_atomic(wqe))
				got_read_data(qp, hdr, data);
			break;
		case SIM_ACK:
			got_ack(qp, hdr);
			break;
		case SIM_RNR:
			if (!p->rnr_wait)
				status = got_rnr(qp, hdr);
			break;
		case SIM_NAK:
			status = nak_status(be32_to_cpu(hdr->imm));
			break;
		}
	}
	spin_unlock(&qp->s_lock);
	if (status != IB_WC_SUCCESS)
		fail(qp, status);
	spin_unlock_irqrestore(&qp->r_lock, flags);
}

/* ---- responder ---- */

/* What to send back once r_lock is let go. */
struct reply {
	u8 op;			/* 0: nothing */
	u32 id;
	u8 flags;
	u32 off;
	u32 code;
};

static void refuse(struct rvt_qp *qp, struct reply *r, enum sim_nak code,
		   enum ib_wc_status status)
{
	struct sim_qp *p = qp->priv;

	r->op = SIM_NAK;
	r->code = code;
	p->in_msg = false;
	rvt_rc_error(qp, status);
}

static bool take_receive(struct rvt_qp *qp, struct reply *r, bool id_only)
{
	int ret = rvt_get_rwqe(qp, id_only);

	if (ret > 0)
		return true;
	if (ret < 0) {
		refuse(qp, r, SIM_NAK_OP, IB_WC_LOC_QP_OP_ERR);
	} else {
		r->op = SIM_RNR;
		r->code = qp->r_min_rnr_timer;
	}
	return false;
}

static bool begin_message(struct rvt_qp *qp, const struct sim_hdr *hdr,
			  struct reply *r)
{
	u32 total = be32_to_cpu(hdr->total);

	if (hdr->op == SIM_SEND) {
		if (!take_receive(qp, r, false))
			return false;
		if (total > qp->r_len) {
			refuse(qp, r, SIM_NAK_INVALID, IB_WC_LOC_LEN_ERR);
			return false;
		}
		return true;
	}
	qp->r_sge.num_sge = 0;
	if (!(qp->qp_access_flags & IB_ACCESS_REMOTE_WRITE)) {
		refuse(qp, r, SIM_NAK_INVALID, IB_WC_LOC_QP_OP_ERR);
		return false;
	}
	if (!total)
		return true;
	if (!rvt_rkey_ok(qp, &qp->r_sge.sge, total, be64_to_cpu(hdr->vaddr),
			 be32_to_cpu(hdr->rkey), IB_ACCESS_REMOTE_WRITE)) {
		refuse(qp, r, SIM_NAK_ACCESS, IB_WC_LOC_ACCESS_ERR);
		return false;
	}
	qp->r_sge.num_sge = 1;
	qp->r_sge.sg_list = NULL;
	qp->r_sge.total_len = total;
	return true;
}

static void end_message(struct rvt_qp *qp, const struct sim_hdr *hdr,
			struct reply *r)
{
	struct sim_qp *p = qp->priv;
	bool write = hdr->op == SIM_WRITE;
	struct ib_wc wc = { .port_num = 1 };

	rvt_put_ss(&qp->r_sge);
	p->in_msg = false;
	if (write && (hdr->flags & SIM_F_IMM) && !take_receive(qp, r, true))
		return;		/* RNR: the whole message comes again */
	p->exp_id = (p->exp_id + 1) & ID_MASK;
	r->op = SIM_ACK;
	r->flags = SIM_F_LAST;
	r->off = p->in_off;
	if (write && !(hdr->flags & SIM_F_IMM))
		return;
	if (!test_and_clear_bit(RVT_R_WRID_VALID, &qp->r_aflags))
		return;
	wc.wr_id = qp->r_wr_id;
	wc.status = IB_WC_SUCCESS;
	wc.opcode = write ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	if (hdr->flags & SIM_F_IMM) {
		wc.ex.imm_data = hdr->imm;
		wc.wc_flags = IB_WC_WITH_IMM;
	}
	wc.byte_len = be32_to_cpu(hdr->total);
	wc.qp = &qp->ibqp;
	wc.src_qp = qp->remote_qpn;
	wc.slid = rdma_ah_get_dlid(&qp->remote_ah_attr);
	wc.sl = qp_sl(qp);
	rvt_recv_cq(qp, &wc, hdr->flags & SIM_F_SOLICITED);
}

/* A chunk of a SEND or a WRITE; r_lock is held. */
static void take_chunk(struct rvt_qp *qp, const struct sim_hdr *hdr,
		       const void *data, struct reply *r)
{
	u32 id = be32_to_cpu(hdr->id), off = be32_to_cpu(hdr->off);
	u32 len = be32_to_cpu(hdr->len), total = be32_to_cpu(hdr->total);
	struct sim_qp *p = qp->priv;

	if (((p->exp_id - 1 - id) & ID_MASK) < ID_MASK / 2) {
		/* an acknowledgement was lost: all before this is in */
		r->op = SIM_ACK;
		r->flags = SIM_F_LAST;
		r->id = (p->exp_id - 1) & ID_MASK;
		return;
	}
	if (id != p->exp_id || len > total || off > total - len)
		return;
	if (!p->in_msg) {
		if (off || !begin_message(qp, hdr, r))
			return;
		p->in_msg = true;
		p->in_off = 0;
		p->since_ack = 0;
	}
	if (off != p->in_off) {
		if (off < p->in_off) {
			r->op = SIM_ACK;
			r->off = p->in_off;
		}
		return;
	}
	if (len)
		rvt_copy_sge(qp, &qp->r_sge, (void *)data, len, true, false);
	p->in_off += len;
	p->since_ack += len;
	if (p->in_off == total) {
		end_message(qp, hdr, r);
	} else if (p->since_ack >= ACK_EVERY) {
		p->since_ack = 0;
		r->op = SIM_ACK;
		r->off = p->in_off;
	}
}

static bool in_order(struct sim_qp *p, u32 id)
{
	return id == p->exp_id || id == ((p->exp_id - 1) & ID_MASK);
}

/*
 * A READ, or a piece of one: it may be asked for again, so the memory is
 * read each time. Returns true if there is something to send.
 */
static bool begin_read(struct rvt_qp *qp, const struct sim_hdr *hdr,
		       struct rvt_sge_state *ss, struct reply *r)
{
	u32 id = be32_to_cpu(hdr->id), len = be32_to_cpu(hdr->total);
	struct sim_qp *p = qp->priv;

	if (!in_order(p, id))
		return false;
	if (!(qp->qp_access_flags & IB_ACCESS_REMOTE_READ)) {
		refuse(qp, r, SIM_NAK_INVALID, IB_WC_LOC_QP_OP_ERR);
		return false;
	}
	ss->num_sge = 0;
	ss->sg_list = NULL;
	if (len) {
		if (!rvt_rkey_ok(qp, &ss->sge, len, be64_to_cpu(hdr->vaddr),
				 be32_to_cpu(hdr->rkey),
				 IB_ACCESS_REMOTE_READ)) {
			refuse(qp, r, SIM_NAK_ACCESS, IB_WC_LOC_ACCESS_ERR);
			return false;
		}
		ss->num_sge = 1;
	}
	if (id == p->exp_id)
		p->exp_id = (id + 1) & ID_MASK;
	return true;
}

static void send_read(struct sim_hca *h, struct rvt_qp *qp, u32 id, u32 off,
		      u32 left, struct rvt_sge_state *ss)
{
	struct rvt_mregion *mr = ss->num_sge ? ss->sge.mr : NULL;

	do {
		u32 len = min_t(u32, left, SIM_CHUNK);
		struct sim_hdr *hdr;
		struct sk_buff *skb;
		void *data;

		skb = rc_frame(h, qp, SIM_READ_RESP, id, len, &hdr, &data);
		if (!skb)
			break;
		hdr->off = cpu_to_be32(off);
		if (len)
			sim_gather(ss, data, len);
		off += len;
		left -= len;
		if (!left)
			hdr->flags |= SIM_F_LAST;
		rc_xmit(h, skb, hdr);
	} while (left);
	if (mr)
		rvt_put_mr(mr);
}

/* Returns true if the original value is to be sent. */
static bool do_atomic(struct rvt_qp *qp, const struct sim_hdr *hdr,
		      const u64 *data, struct reply *r)
{
	u64 vaddr = be64_to_cpu(hdr->vaddr);
	u32 id = be32_to_cpu(hdr->id);
	struct sim_qp *p = qp->priv;
	struct rvt_sge sge;
	u64 *cell;

	if (be32_to_cpu(hdr->len) < 2 * sizeof(u64) || !in_order(p, id))
		return false;
	if (id != p->exp_id)
		return true;	/* once only: the same answer again */
	if (!(qp->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) || (vaddr & 7)) {
		refuse(qp, r, SIM_NAK_INVALID, IB_WC_LOC_QP_OP_ERR);
		return false;
	}
	if (!rvt_rkey_ok(qp, &sge, sizeof(u64), vaddr,
			 be32_to_cpu(hdr->rkey), IB_ACCESS_REMOTE_ATOMIC)) {
		refuse(qp, r, SIM_NAK_ACCESS, IB_WC_LOC_ACCESS_ERR);
		return false;
	}
	cell = sge.vaddr;
	if (be32_to_cpu(hdr->imm) == IB_WR_ATOMIC_FETCH_AND_ADD)
		p->atomic_orig = atomic64_fetch_add(data[0], (atomic64_t *)cell);
	else
		p->atomic_orig = cmpxchg(cell, data[0], data[1]);
	rvt_put_mr(sge.mr);
	p->exp_id = (id + 1) & ID_MASK;
	return true;
}

static void send_atomic(struct sim_hca *h, struct rvt_qp *qp, u32 id)
{
	struct sim_qp *p = qp->priv;
	struct sim_hdr *hdr;
	struct sk_buff *skb;
	void *data;

	skb = rc_frame(h, qp, SIM_READ_RESP, id, sizeof(u64), &hdr, &data);
	if (!skb)
		return;
	memcpy(data, &p->atomic_orig, sizeof(u64));
	hdr->flags |= SIM_F_LAST;
	rc_xmit(h, skb, hdr);
}

static void receive_request(struct sim_hca *h, struct rvt_qp *qp,
			    const struct sim_hdr *hdr, const void *data)
{
	u32 id = be32_to_cpu(hdr->id);
	struct rvt_sge_state ss = {};
	struct reply r = { .id = id };
	unsigned long flags;
	bool more = false;

	spin_lock_irqsave(&qp->r_lock, flags);
	if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_RECV_OK)) {
		spin_unlock_irqrestore(&qp->r_lock, flags);
		return;
	}
	if (qp->state == IB_QPS_RTR && !(qp->r_flags & RVT_R_COMM_EST))
		rvt_comm_est(qp);
	switch (hdr->op) {
	case SIM_SEND:
	case SIM_WRITE:
		take_chunk(qp, hdr, data, &r);
		break;
	case SIM_READ:
		more = begin_read(qp, hdr, &ss, &r);
		break;
	case SIM_ATOMIC:
		more = do_atomic(qp, hdr, data, &r);
		break;
	}
	spin_unlock_irqrestore(&qp->r_lock, flags);
	if (r.op)
		answer(h, qp, r.op, r.id, r.off, r.code, r.flags);
	else if (more && hdr->op == SIM_READ)
		send_read(h, qp, id, be32_to_cpu(hdr->off),
			  be32_to_cpu(hdr->total), &ss);
	else if (more)
		send_atomic(h, qp, id);
}

/* Any RC frame, on the receive work queue. */
void sim_rc_receive(struct sim_hca *h, const struct sim_hdr *hdr,
		    const void *data)
{
	struct rvt_qp *qp;

	rcu_read_lock();
	qp = rvt_lookup_qpn(&h->rdi, &h->rvp, be32_to_cpu(hdr->dqpn));
	if (qp && (qp->ibqp.qp_type != IB_QPT_RC ||
		   qp->remote_qpn != be32_to_cpu(hdr->sqpn) ||
		   rdma_ah_get_dlid(&qp->remote_ah_attr) !=
		   be16_to_cpu(hdr->slid)))
		qp = NULL;
	if (qp)
		rvt_get_qp(qp);
	rcu_read_unlock();
	if (!qp)
		return;
	if (hdr->op >= SIM_SEND && hdr->op <= SIM_ATOMIC &&
	    hdr->op != SIM_READ_RESP)
		receive_request(h, qp, hdr, data);
	else
		receive_answer(qp, hdr, data);
	rvt_put_qp(qp);
}
