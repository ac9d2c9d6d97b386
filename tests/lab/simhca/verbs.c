// SPDX-License-Identifier: GPL-2.0
/*
 * What rdmavt asks of its driver, and the send engine.
 */
#include <linux/module.h>
#include <rdma/ib_umem.h>

#include "simhca.h"

static ssize_t hca_type_show(struct device *dev, struct device_attribute *a,
			     char *buf)
{
	return sysfs_emit(buf, "MT4123\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *a,
			   char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *dev, struct device_attribute *a,
			     char *buf)
{
	return sysfs_emit(buf, "SIM0000000001\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *sim_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group sim_attr_group = { .attrs = sim_attrs };
static const struct attribute_group *sim_port_groups[] = { NULL };

static void get_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, "20.0.1", IB_FW_VERSION_NAME_MAX);
}

static int modify_device(struct ib_device *ibdev, int mask,
			 struct ib_device_modify *m)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, m->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

static const struct ib_device_ops sim_ops = {
	.owner = THIS_MODULE,
	/* user space binds its ipathverbs provider, which speaks rdmavt's ABI */
	.driver_id = RDMA_DRIVER_QIB,
	.device_group = &sim_attr_group,
	.port_groups = sim_port_groups,
	.process_mad = sim_process_mad,
	.get_dev_fw_str = get_fw_str,
	.modify_device = modify_device,
	.disassociate_ucontext = sim_map_disassociate,
};

static struct pci_dev *get_pci_dev(struct rvt_dev_info *rdi)
{
	return sim_from_rdi(rdi)->pdev;
}

static int check_ah(struct ib_device *ibdev, struct rdma_ah_attr *attr)
{
	return 0;
}

static void notify_new_ah(struct ib_device *ibdev, struct rdma_ah_attr *attr,
			  struct rvt_ah *ah)
{
	ah->vl = 0;
	ah->log_pmtu = ilog2(ib_mtu_enum_to_int(SIM_MTU));
}

/*
 * rdmavt's own allocator never gives QP numbers 0 and 1 back, and a MAD
 * layer that comes a second time would find them taken.
 */
static int alloc_qpn(struct rvt_dev_info *rdi, struct rvt_qpn_table *qpt,
		     enum ib_qp_type type, u32 port_num)
{
	u32 qpn, tries;
	int ret = -ENOMEM;

	if (type == IB_QPT_SMI)
		return 0;
	if (type == IB_QPT_GSI)
		return 1;
	spin_lock_irq(&qpt->lock);
	qpn = qpt->last;
	for (tries = 0; tries < 0x10000; tries++) {
		struct rvt_qpn_map *map;

		if (++qpn < 2 || qpn > 0xffff)
			qpn = 2;
		map = &qpt->map[qpn / RVT_BITS_PER_PAGE];
		if (!map->page)
			map->page = (void *)get_zeroed_page(GFP_ATOMIC);
		if (!map->page)
			break;
		if (!test_and_set_bit(qpn % RVT_BITS_PER_PAGE, map->page)) {
			qpt->last = qpn;
			ret = qpn;
			break;
		}
	}
	spin_unlock_irq(&qpt->lock);
	return ret;
}

static void send_engine(struct work_struct *work);

static void *qp_priv_alloc(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	struct sim_qp *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return ERR_PTR(-ENOMEM);
	p->qp = qp;
	INIT_WORK(&p->send_work, send_engine);
	timer_setup(&p->timer, sim_rc_timer, 0);
	return p;
}

static void qp_priv_free(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	if (IS_ERR_OR_NULL(p))
		return;
	del_timer_sync(&p->timer);
	cancel_work_sync(&p->send_work);
	kfree(p);
	qp->priv = NULL;
}

static unsigned int free_all_qps(struct rvt_dev_info *rdi)
{
	return 0;
}

static void notify_qp_reset(struct rvt_qp *qp)
{
	sim_rc_reset(qp);
}

static void stop_send_queue(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	del_timer_sync(&p->timer);
	cancel_work_sync(&p->send_work);
}

/*
 * The QP is in RESET by now, so nobody starts anything new on it; wait for
 * the receiver that may hold it this moment. The receive queue never takes
 * locks of the verbs' callers.
 */
static void quiesce_qp(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	flush_work(&sim_from_qp(qp)->rx_work);
	del_timer_sync(&p->timer);
	cancel_work_sync(&p->send_work);
}

static void flush_qp_waiters(struct rvt_qp *qp)
{
}

static void notify_error_qp(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	p->rnr_wait = false;	/* s_lock is held */
}

static void notify_restart_rc(struct rvt_qp *qp, u32 psn, int wait)
{
}

static void modify_qp(struct rvt_qp *qp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata)
{
	struct sim_qp *p = qp->priv;

	/* the PSNs of the connection number its messages */
	if (mask & IB_QP_RQ_PSN)
		p->exp_id = attr->rq_psn & 0xffffff;
	if (mask & IB_QP_SQ_PSN)
		p->last_id = p->cur_id = attr->sq_psn & 0xffffff;
	if (mask & IB_QP_RNR_RETRY)
		p->rnr_left = attr->rnr_retry;
}

static int mtu_to_path_mtu(u32 mtu)
{
	return ib_mtu_int_to_enum(mtu);
}

static u32 mtu_from_qp(struct rvt_dev_info *rdi, struct rvt_qp *qp, u32 pmtu)
{
	return ib_mtu_enum_to_int(pmtu);
}

static int get_pmtu_from_attr(struct rvt_dev_info *rdi, struct rvt_qp *qp,
			      struct ib_qp_attr *attr)
{
	return attr->path_mtu > SIM_MTU ? -EINVAL : attr->path_mtu;
}

static int query_port_state(struct rvt_dev_info *rdi, u32 port_num,
			    struct ib_port_attr *props)
{
	struct sim_port *p = &sim_from_rdi(rdi)->port;

	props->lid = p->lid;
	props->lmc = p->lmc;
	props->state = p->state;
	props->phys_state = p->phys;
	props->gid_tbl_len = SIM_NGUIDS;
	props->active_width = p->width_active;
	props->active_speed = p->speed_active;
	props->max_vl_num = 4;
	props->max_mtu = SIM_MTU;
	props->active_mtu = p->mtu;
	props->phys_mtu = ib_mtu_enum_to_int(SIM_MTU);
	props->port_cap_flags2 = IB_PORT_LINK_SPEED_HDR_SUP |
				 IB_PORT_LINK_SPEED_NDR_SUP;
	return 0;
}

static int shut_down_port(struct rvt_dev_info *rdi, u32 port_num)
{
	sim_link_bounce(sim_from_rdi(rdi));
	return 0;
}

static void cap_mask_chg(struct rvt_dev_info *rdi, u32 port_num)
{
	schedule_work(&sim_from_rdi(rdi)->trap_work);
}

static int get_guid_be(struct rvt_dev_info *rdi, struct rvt_ibport *rvp,
		       int index, __be64 *guid)
{
	if (index >= SIM_NGUIDS)
		return -EINVAL;
	*guid = sim_from_rdi(rdi)->port.guids[index];
	return 0;
}

/*
 * Everything is sent from the work queue: rdmavt posts with locks held and
 * the wire may have to wait.
 */
static int setup_wqe(struct rvt_qp *qp, struct rvt_swqe *wqe, bool *call_send)
{
	*call_send = false;
	if (qp->ibqp.qp_type != IB_QPT_RC && qp->ibqp.qp_type != IB_QPT_UC &&
	    wqe->length > ib_mtu_enum_to_int(SIM_MTU))
		return -EINVAL;
	return 0;
}

bool sim_schedule_send(struct rvt_qp *qp)
{
	struct sim_qp *p = qp->priv;

	return queue_work(sim_from_qp(qp)->tx_wq, &p->send_work);
}

static void do_send(struct rvt_qp *qp)
{
	sim_schedule_send(qp);
}

/* Give every queued request back, the QP being in error. s_lock is held. */
static void flush_sends(struct rvt_qp *qp)
{
	while (qp->s_last != READ_ONCE(qp->s_head))
		rvt_send_complete(qp, rvt_get_swqe_ptr(qp, qp->s_last),
				  IB_WC_WR_FLUSH_ERR);
}

static bool to_myself(struct sim_hca *h, struct rvt_qp *qp)
{
	return sim_lid_is_mine(h, rdma_ah_get_dlid(&qp->remote_ah_attr));
}

/*
 * One QP's send engine; a work item never runs twice at once. RC sends what
 * its window lets it and is scheduled again by the answers.
 */
static void send_engine(struct work_struct *work)
{
	struct sim_qp *p = container_of(work, struct sim_qp, send_work);
	struct rvt_qp *qp = p->qp;
	struct sim_hca *h = sim_from_qp(qp);
	bool rc = qp->ibqp.qp_type == IB_QPT_RC;
	struct rvt_swqe *wqe;
	unsigned long flags;
	int budget = 64;

	for (;;) {
		spin_lock_irqsave(&qp->s_lock, flags);
		if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK)) {
			if (ib_rvt_state_ops[qp->state] & RVT_FLUSH_SEND)
				flush_sends(qp);
			break;
		}
		/* pairs with the release in rdmavt's post */
		if (qp->s_last == smp_load_acquire(&qp->s_head))
			break;
		if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_NEXT_SEND_OK))
			break;
		if ((rc || qp->ibqp.qp_type == IB_QPT_UC) && to_myself(h, qp)) {
			spin_unlock_irqrestore(&qp->s_lock, flags);
			rvt_ruc_loopback(qp);
			spin_lock_irqsave(&qp->s_lock, flags);
			p->cur = qp->s_last;
			break;
		}
		if (rc) {
			spin_unlock_irqrestore(&qp->s_lock, flags);
			sim_rc_push(h, qp);
			return;
		}
		wqe = rvt_get_swqe_ptr(qp, qp->s_last);
		if (qp->ibqp.qp_type == IB_QPT_UC) {
			/* no UC on the wire: nobody in the lab uses it */
			rvt_send_complete(qp, wqe, IB_WC_LOC_QP_OP_ERR);
			spin_unlock_irqrestore(&qp->s_lock, flags);
			continue;
		}
		spin_unlock_irqrestore(&qp->s_lock, flags);
		/* the request stays ours until it is completed */
		sim_ud_send(h, qp, wqe);
		spin_lock_irqsave(&qp->s_lock, flags);
		rvt_send_complete(qp, wqe, IB_WC_SUCCESS);
		if (!--budget) {
			sim_schedule_send(qp);
			break;
		}
		spin_unlock_irqrestore(&qp->s_lock, flags);
	}
	spin_unlock_irqrestore(&qp->s_lock, flags);
}

#define CONN	(BIT(IB_QPT_RC) | BIT(IB_QPT_UC))
#define DGRAM	(BIT(IB_QPT_UD) | BIT(IB_QPT_SMI) | BIT(IB_QPT_GSI))

static const struct rvt_operation_params post_parms[RVT_OPERATION_MAX] = {
	[IB_WR_SEND] = { sizeof(struct ib_send_wr), CONN | DGRAM, 0 },
	[IB_WR_SEND_WITH_IMM] = { sizeof(struct ib_send_wr), CONN | DGRAM, 0 },
	[IB_WR_RDMA_WRITE] = { sizeof(struct ib_rdma_wr), CONN, 0 },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { sizeof(struct ib_rdma_wr), CONN, 0 },
	[IB_WR_RDMA_READ] = { sizeof(struct ib_rdma_wr), BIT(IB_QPT_RC),
			      RVT_OPERATION_ATOMIC },
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		sizeof(struct ib_atomic_wr), BIT(IB_QPT_RC),
		RVT_OPERATION_ATOMIC | RVT_OPERATION_ATOMIC_SGE },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		sizeof(struct ib_atomic_wr), BIT(IB_QPT_RC),
		RVT_OPERATION_ATOMIC | RVT_OPERATION_ATOMIC_SGE },
	[IB_WR_REG_MR] = { sizeof(struct ib_reg_wr), CONN,
			   RVT_OPERATION_LOCAL },
	[IB_WR_LOCAL_INV] = { sizeof(struct ib_send_wr), CONN,
			      RVT_OPERATION_LOCAL },
};

/* what a request's completion says it was */
static const enum ib_wc_opcode wc_opcodes[RVT_OPERATION_MAX] = {
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
	[IB_WR_REG_MR] = IB_WC_REG_MR,
	[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
};

static void set_props(struct sim_hca *h)
{
	struct ib_device_attr *a = &h->rdi.dparms.props;

	a->fw_ver = (20ULL << 32) | 1;
	a->sys_image_guid = cpu_to_be64(h->guid);
	a->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
		IB_DEVICE_SHUTDOWN_PORT | IB_DEVICE_PORT_ACTIVE_EVENT |
		IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
		IB_DEVICE_MEM_MGT_EXTENSIONS;
	a->max_mr_size = U64_MAX;
	a->page_size_cap = PAGE_SIZE;
	a->vendor_id = 0x02c9;
	a->vendor_part_id = 4123;
	a->max_qp = 16384;
	a->max_qp_wr = 16384;
	a->max_send_sge = 32;
	a->max_recv_sge = 32;
	a->max_sge_rd = 32;
	a->max_cq = 65536;
	a->max_cqe = 262143;
	a->max_mr = 65535;
	a->max_pd = 65535;
	a->max_ah = 65535;
	a->max_qp_rd_atom = 16;
	a->max_qp_init_rd_atom = 16;
	a->max_res_rd_atom = 65535;
	a->atomic_cap = IB_ATOMIC_HCA;
	a->max_mcast_grp = 8192;
	a->max_mcast_qp_attach = 64;
	a->max_total_mcast_qp_attach = 8192 * 64;
	a->max_srq = 1024;
	a->max_srq_wr = 32768;
	/* connected-mode IPoIB receives 65520 bytes into 17 pages */
	a->max_srq_sge = 32;
	a->max_pkeys = SIM_NPKEYS;
	a->max_fast_reg_page_list_len = 256;
	a->local_ca_ack_delay = 15;
}

void sim_verbs_setup(struct sim_hca *h)
{
	struct rvt_dev_info *rdi = &h->rdi;
	struct rvt_driver_params *d = &rdi->dparms;
	struct rvt_driver_provided *f = &rdi->driver_f;

	/* first setter wins: before rdmavt sets its own */
	ib_set_device_ops(&rdi->ibdev, &sim_ops);
	dev_set_name(&rdi->ibdev.dev, "%s", sim_name);
	strscpy(rdi->ibdev.name, sim_name, IB_DEVICE_NAME_MAX);
	rdi->ibdev.dev.parent = &h->pdev->dev;
	rdi->ibdev.node_guid = cpu_to_be64(h->guid);
	rdi->ibdev.phys_port_cnt = 1;
	rdi->ibdev.num_comp_vectors = 1;
	strscpy(rdi->ibdev.node_desc, "simulated HCA", IB_DEVICE_NODE_DESC_MAX);
	set_props(h);

	d->lkey_table_size = 16;
	d->qp_table_size = 256;
	d->qpn_start = 1;
	d->qpn_inc = 1;
	d->qos_shift = 1;
	/* rdmavt wants a reserved range beyond those it hands out */
	d->qpn_res_start = RVT_KDETH_QP_BASE;
	d->qpn_res_end = RVT_KDETH_QP_BASE + 1;
	d->nports = 1;
	d->npkeys = SIM_NPKEYS;
	/* rdmavt indexes the node's CPU mask with it: no NUMA_NO_NODE */
	d->node = max(dev_to_node(&h->pdev->dev), 0);
	d->psn_mask = 0xffffff;
	d->psn_shift = 8;
	d->psn_modify_mask = 0xffffff;
	d->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	d->max_mad_size = IB_MGMT_MAD_SIZE;
	d->max_rdma_atomic = 16;

	f->get_pci_dev = get_pci_dev;
	f->check_ah = check_ah;
	f->notify_new_ah = notify_new_ah;
	f->alloc_qpn = alloc_qpn;
	f->qp_priv_alloc = qp_priv_alloc;
	f->qp_priv_free = qp_priv_free;
	f->free_all_qps = free_all_qps;
	f->notify_qp_reset = notify_qp_reset;
	f->setup_wqe = setup_wqe;
	f->do_send = do_send;
	f->schedule_send = sim_schedule_send;
	f->schedule_send_no_lock = sim_schedule_send;
	f->quiesce_qp = quiesce_qp;
	f->stop_send_queue = stop_send_queue;
	f->flush_qp_waiters = flush_qp_waiters;
	f->notify_error_qp = notify_error_qp;
	f->notify_restart_rc = notify_restart_rc;
	f->modify_qp = modify_qp;
	f->mtu_to_path_mtu = mtu_to_path_mtu;
	f->mtu_from_qp = mtu_from_qp;
	f->get_pmtu_from_attr = get_pmtu_from_attr;
	f->query_port_state = query_port_state;
	f->shut_down_port = shut_down_port;
	f->cap_mask_chg = cap_mask_chg;
	f->get_guid_be = get_guid_be;
	rdi->post_parms = post_parms;
	rdi->wc_opcode = wc_opcodes;
}
