// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI device, the registration with rdmavt, and the port's state.
 */
#include <linux/module.h>
#include <rdma/rdma_netlink.h>

#include "simhca.h"

/* QEMU's pci-testdev: a PCI function that does nothing. */
static const struct pci_device_id sim_pci_ids[] = {
	{ PCI_DEVICE(0x1b36, 0x0005) },
	{ }
};
/*
 * No MODULE_DEVICE_TABLE: udev would load the module by itself, before
 * anyone gave it a GUID and a wire.
 */

struct sim_hca *sim_the_hca;
DEFINE_MUTEX(sim_knob_lock);

void sim_dispatch(struct sim_hca *h, enum ib_event_type type)
{
	struct ib_event ev = {
		.device = &h->rdi.ibdev,
		.element.port_num = 1,
		.event = type,
	};

	/* before registration the core's client lists do not exist */
	if (READ_ONCE(h->registered))
		ib_dispatch_event(&ev);
}

/* Both ends run at the best that both can and are allowed to. */
static void negotiate(struct sim_hca *h)
{
	struct sim_port *p = &h->port;

	p->width_active = IB_WIDTH_4X;
	if (sim_width == IB_WIDTH_1X || h->peer_width == IB_WIDTH_1X ||
	    !(p->width_enabled & IB_WIDTH_4X))
		p->width_active = IB_WIDTH_1X;
	p->speed_active = min(sim_speed, h->peer_speed);
	if (!p->ext_enabled)
		p->speed_active = min_t(u16, p->speed_active, IB_SPEED_QDR);
	else if (p->speed_active >= IB_SPEED_FDR)
		while (p->speed_active > IB_SPEED_FDR &&
		       !((p->speed_active >> 4) & p->ext_enabled))
			p->speed_active >>= 1;
}

/*
 * Compare what the link should be with what it is. When it goes down for a
 * reason of this side, the generation changes, so that the other side goes
 * down too even if it did not notice: a link is never up at one end only.
 */
void sim_link_update(struct sim_hca *h, bool by_peer)
{
	struct sim_port *p = &h->port;
	bool up, went_down = false, was_active = false;
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (h->bounce_until && time_after_eq(jiffies, h->bounce_until))
		h->bounce_until = 0;
	if (p->disable_next && sim_bouncing(h)) {
		p->disable_next = 0;
		p->disabled = 1;
	}
	up = h->netdev && sim_cable && !p->disabled && !sim_bouncing(h) &&
	     !h->closing && h->peer_seen && h->peer_cable;
	if (up && p->phys != SIM_PHYS_LINKUP) {
		negotiate(h);
		p->phys = SIM_PHYS_LINKUP;
		p->state = IB_PORT_INIT;
	} else if (!up) {
		went_down = p->phys == SIM_PHYS_LINKUP;
		if (went_down && !by_peer)
			h->generation++;
		was_active = p->state == IB_PORT_ACTIVE;
		p->phys = p->disabled ? SIM_PHYS_DISABLED : SIM_PHYS_POLLING;
		p->state = IB_PORT_DOWN;
	}
	spin_unlock_irqrestore(&h->lock, flags);
	if (went_down)
		atomic64_inc(&h->cnt.err[SIM_ERR_DOWNED]);
	if (was_active)
		sim_dispatch(h, IB_EVENT_PORT_ERR);
}

bool sim_bouncing(struct sim_hca *h)
{
	unsigned long until = READ_ONCE(h->bounce_until);

	return until && time_before(jiffies, until) &&
	       time_after_eq(jiffies, until - SIM_BOUNCE);
}

/*
 * Down and up again, seen by both ends: what "ibportstate reset" does, and
 * opensm when it changes the VLs or the MTU. It begins a moment later, so
 * that the answer to whoever asked for it still gets out.
 */
void sim_link_bounce(struct sim_hca *h)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	h->bounce_until = (jiffies + HZ / 10 + SIM_BOUNCE) ?: 1;
	spin_unlock_irqrestore(&h->lock, flags);
	sim_hello_now(h);
}

/* The SM moves the port: INIT, ARMED, ACTIVE. */
void sim_set_port_state(struct sim_hca *h, u8 state)
{
	u8 old = IB_PORT_DOWN;
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (h->port.phys == SIM_PHYS_LINKUP) {
		old = h->port.state;
		/* ACTIVE only from ARMED, and ARMED never from ACTIVE */
		if ((state == IB_PORT_ACTIVE && old >= IB_PORT_ARMED) ||
		    (state == IB_PORT_ARMED && old <= IB_PORT_ARMED) ||
		    state == IB_PORT_INIT)
			h->port.state = state;
		state = h->port.state;
	} else {
		state = IB_PORT_DOWN;
	}
	spin_unlock_irqrestore(&h->lock, flags);
	if (state == IB_PORT_ACTIVE && old != IB_PORT_ACTIVE)
		sim_dispatch(h, IB_EVENT_PORT_ACTIVE);
	else if (old == IB_PORT_ACTIVE && state != IB_PORT_ACTIVE)
		sim_dispatch(h, IB_EVENT_PORT_ERR);
}

static void port_defaults(struct sim_hca *h)
{
	struct sim_port *p = &h->port;
	int i;

	p->state = IB_PORT_DOWN;
	p->phys = SIM_PHYS_POLLING;
	p->link_down_default = SIM_PHYS_POLLING;
	p->width_enabled = IB_WIDTH_1X | IB_WIDTH_4X;
	p->width_active = sim_width;
	p->speed_enabled = 7;
	p->ext_enabled = 0xf;
	p->speed_active = sim_speed;
	p->mtu = SIM_MTU;
	p->op_vls = 3;	/* as many as VLCap says, else opensm bounces the link */
	p->pkeys[0] = IB_DEFAULT_PKEY_FULL;
	p->guids[0] = cpu_to_be64(h->guid);
	for (i = 0; i < 8; i++)
		p->sl2vl[i] = 0;

	h->rvp.gid_prefix = cpu_to_be64(0xfe80000000000000ULL);
	h->rvp.port_cap_flags = IB_PORT_TRAP_SUP | IB_PORT_NOTICE_SUP |
		IB_PORT_SL_MAP_SUP | IB_PORT_SYS_IMAGE_GUID_SUP |
		IB_PORT_EXTENDED_SPEEDS_SUP | IB_PORT_CAP_MASK2_SUP |
		IB_PORT_CM_SUP | IB_PORT_CLIENT_REG_SUP |
		IB_PORT_CAP_MASK_NOTICE_SUP;
}

/*
 * Enhanced IPoIB, as mlx5 has it, shows in the kernel as a hardware address
 * without the RC bit, and ib_ipoib then refuses connected mode. The bit is
 * taken out as soon as ib_ipoib has made its net device.
 */
static int ipoib_event(struct notifier_block *nb, unsigned long event,
		       void *ptr)
{
	struct sim_hca *h = container_of(nb, struct sim_hca, ipoib_nb);
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	__be64 guid = cpu_to_be64(h->guid);
	u8 first;

	if (event != NETDEV_REGISTER || dev->type != ARPHRD_INFINIBAND ||
	    !sim_enhanced)
		return NOTIFY_DONE;
	/* a P_Key child has no parent device, but the port GUID */
	if (dev->dev.parent != &h->pdev->dev &&
	    memcmp(dev->dev_addr + 12, &guid, sizeof(guid)))
		return NOTIFY_DONE;
	first = dev->dev_addr[0] & ~0x80;
	dev_addr_mod(dev, 0, &first, 1);
	return NOTIFY_OK;
}

static int sim_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rvt_dev_info *rdi;
	struct sim_hca *h;
	int ret;

	mutex_lock(&sim_knob_lock);
	ret = sim_the_hca ? -EBUSY : 0;
	mutex_unlock(&sim_knob_lock);
	if (ret) {
		dev_info(&pdev->dev, "only the first device becomes an HCA\n");
		return -ENODEV;
	}
	rdi = rvt_alloc_device(sizeof(*h), 1);
	if (!rdi)
		return -ENOMEM;
	h = sim_from_rdi(rdi);
	h->pdev = pdev;
	h->guid = sim_guid;
	spin_lock_init(&h->lock);
	port_defaults(h);
	sim_verbs_setup(h);
	ret = rvt_init_port(rdi, &h->rvp, 0, h->port.pkeys);
	if (ret)
		goto free;
	INIT_WORK(&h->trap_work, sim_trap_work);
	ret = sim_wire_init(h);
	if (ret)
		goto free;
	h->ipoib_nb.notifier_call = ipoib_event;
	ret = register_netdevice_notifier(&h->ipoib_nb);
	if (ret)
		goto wire;
	ret = rvt_register_device(rdi);
	if (ret)
		goto notifier;
	sim_map_setup(h);
	WRITE_ONCE(h->registered, true);
	pci_set_drvdata(pdev, h);
	mutex_lock(&sim_knob_lock);
	sim_the_hca = h;
	mutex_unlock(&sim_knob_lock);
	sim_wire_start(h);
	dev_info(&pdev->dev, "%s: GUID 0x%016llx, wire %s\n",
		 dev_name(&rdi->ibdev.dev), h->guid,
		 sim_wire[0] ? sim_wire : "(none)");
	return 0;

notifier:
	unregister_netdevice_notifier(&h->ipoib_nb);
wire:
	sim_wire_stop(h);
free:
	rvt_dealloc_device(rdi);
	return ret;
}

static void fail_qp(struct rvt_qp *qp, u64 unused)
{
	unsigned long flags;

	if (qp->ibqp.qp_type != IB_QPT_RC)
		return;
	spin_lock_irqsave(&qp->r_lock, flags);
	rvt_rc_error(qp, IB_WC_WR_FLUSH_ERR);
	spin_unlock_irqrestore(&qp->r_lock, flags);
}

static void sim_remove(struct pci_dev *pdev)
{
	struct sim_hca *h = pci_get_drvdata(pdev);

	mutex_lock(&sim_knob_lock);
	sim_the_hca = NULL;
	mutex_unlock(&sim_knob_lock);
	/*
	 * The wire goes first: rdmavt frees the QP table on its way out, and
	 * nothing may be looked up in it by then.
	 */
	sim_wire_stop(h);
	cancel_work_sync(&h->trap_work);
	/* nothing completes any more: what waits for it need not wait long */
	rvt_qp_iter(&h->rdi, 0, fail_qp);
	rvt_unregister_device(&h->rdi);
	unregister_netdevice_notifier(&h->ipoib_nb);
	destroy_workqueue(h->tx_wq);
	rvt_dealloc_device(&h->rdi);
}

static struct pci_driver sim_driver = {
	.name = "simhca",
	.id_table = sim_pci_ids,
	.probe = sim_probe,
	.remove = sim_remove,
};

static int __init sim_init(void)
{
	return pci_register_driver(&sim_driver);
}

static void __exit sim_exit(void)
{
	pci_unregister_driver(&sim_driver);
	sim_wire_drain();
}

module_init(sim_init);
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated InfiniBand HCA for the selvedge lab");
MODULE_LICENSE("GPL");
