// SPDX-License-Identifier: GPL-2.0
/*
 * Frames out and in over an Ethernet net device, HELLO, and the net device
 * coming and going.
 */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>

#include "simhca.h"

#define TX_INFLIGHT	128
#define RX_BACKLOG	4096

/*
 * Outlive a device, since a frame can be in a transmit ring for longer than
 * its sender exists.
 */
static atomic_t inflight = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(tx_wait);

static void frame_done(struct sk_buff *skb)
{
	if (atomic_dec_return(&inflight) < TX_INFLIGHT)
		wake_up(&tx_wait);
}

/* Before the module's text goes away. */
void sim_wire_drain(void)
{
	wait_event(tx_wait, !atomic_read(&inflight));
}

struct sk_buff *sim_frame(struct sim_hca *h, u32 len, struct sim_hdr **hdr,
			  void **payload)
{
	struct ethhdr *eth;
	struct sk_buff *skb;
	struct sim_hdr *s;

	skb = alloc_skb(LL_MAX_HEADER + ETH_HLEN + sizeof(*s) + len,
			GFP_KERNEL);
	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_reset_mac_header(skb);
	eth = skb_put_zero(skb, ETH_HLEN);
	eth_broadcast_addr(eth->h_dest);
	eth->h_proto = htons(SIM_ETHERTYPE);
	skb_set_network_header(skb, ETH_HLEN);
	s = skb_put_zero(skb, sizeof(*s));
	s->magic = cpu_to_be16(SIM_MAGIC);
	s->version = SIM_VERSION;
	s->len = cpu_to_be32(len);
	*hdr = s;
	*payload = skb_put(skb, len);
	skb->protocol = htons(SIM_ETHERTYPE);
	return skb;
}

/* Takes the frame. May sleep, so that a sender cannot outrun the wire. */
void sim_xmit(struct sim_hca *h, struct sk_buff *skb)
{
	struct sim_hdr *hdr = (void *)skb->data + ETH_HLEN;
	struct net_device *dev;
	int tries, ret;

	if (hdr->op != SIM_HELLO && h->port.phys != SIM_PHYS_LINKUP)
		goto drop;
	rcu_read_lock();
	dev = READ_ONCE(h->netdev);
	if (dev)
		dev_hold(dev);
	rcu_read_unlock();
	if (!dev)
		goto drop;
	ether_addr_copy(eth_hdr(skb)->h_source, dev->dev_addr);
	if (!wait_event_timeout(tx_wait, atomic_read(&inflight) < TX_INFLIGHT,
				HZ)) {
		atomic64_inc(&h->cnt.err[SIM_ERR_DISCARDS]);
		dev_put(dev);
		goto drop;
	}
	atomic_inc(&inflight);
	skb->dev = dev;
	skb->destructor = frame_done;
	/* past the queueing discipline, which might be one that drops */
	for (tries = 0; tries < 200; tries++) {
		ret = __dev_direct_xmit(skb, 0);
		if (dev_xmit_complete(ret))
			break;
		usleep_range(500, 1000);
	}
	if (!dev_xmit_complete(ret))
		kfree_skb(skb);
	dev_put(dev);
	return;
drop:
	kfree_skb(skb);
}

static void send_hello(struct sim_hca *h)
{
	struct sim_hello *hello;
	struct sim_hdr *hdr;
	struct sk_buff *skb;
	void *data;

	skb = sim_frame(h, sizeof(*hello), &hdr, &data);
	if (!skb)
		return;
	hdr->op = SIM_HELLO;
	hello = data;
	memset(hello, 0, sizeof(*hello));
	hello->guid = cpu_to_be64(h->guid);
	hello->generation = cpu_to_be32(h->generation);
	hello->port = 1;
	hello->cable = sim_cable && !h->port.disabled && !h->closing &&
		       !sim_bouncing(h);
	hello->width = h->port.width_enabled & IB_WIDTH_4X ?
		       sim_width : IB_WIDTH_1X;
	hello->speed = cpu_to_be16(h->port.ext_enabled ? sim_speed :
				   min_t(u16, sim_speed, IB_SPEED_QDR));
	sim_xmit(h, skb);
}

static void hello_work(struct work_struct *work)
{
	struct sim_hca *h = container_of(to_delayed_work(work),
					 struct sim_hca, hello_work);
	unsigned long next = msecs_to_jiffies(SIM_HELLO_MS);
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (h->peer_seen &&
	    time_after(jiffies,
		       h->peer_last + msecs_to_jiffies(SIM_EXPIRE_MS)))
		h->peer_seen = false;
	spin_unlock_irqrestore(&h->lock, flags);
	sim_link_update(h, false);
	send_hello(h);
	if (READ_ONCE(h->bounce_until))
		next = HZ / 20;
	if (!h->closing)
		queue_delayed_work(h->link_wq, &h->hello_work, next);
}

void sim_hello_now(struct sim_hca *h)
{
	if (!h->closing)
		mod_delayed_work(h->link_wq, &h->hello_work, 0);
}

static void receive_hello(struct sim_hca *h, const struct sim_hello *m)
{
	u32 generation = be32_to_cpu(m->generation);
	u64 guid = be64_to_cpu(m->guid);
	bool restarted, changed;
	unsigned long flags;

	if (guid == h->guid && generation == h->generation)
		return;		/* our own, come back */
	spin_lock_irqsave(&h->lock, flags);
	restarted = h->peer_seen && (h->peer_generation != generation ||
				     h->peer_guid != guid);
	if (restarted)
		h->peer_seen = false;
	spin_unlock_irqrestore(&h->lock, flags);
	if (restarted)
		sim_link_update(h, true);	/* down first: its state is gone */

	spin_lock_irqsave(&h->lock, flags);
	changed = !h->peer_seen || h->peer_cable != m->cable;
	h->peer_seen = true;
	h->peer_guid = guid;
	h->peer_generation = generation;
	h->peer_cable = m->cable;
	h->peer_width = m->width;
	h->peer_speed = be16_to_cpu(m->speed);
	h->peer_last = jiffies;
	spin_unlock_irqrestore(&h->lock, flags);
	if (changed) {
		sim_link_update(h, true);
		sim_hello_now(h);
	}
}

/* The knob that makes a subnet manager or all of QP 1 deaf. */
static bool ignored(const struct sim_hdr *hdr)
{
	const struct ib_mad_hdr *mad = (const void *)(hdr + 1);
	u32 dqpn = be32_to_cpu(hdr->dqpn);

	if (likely(!sim_mad_drop) || hdr->op != SIM_UD || dqpn > 1 ||
	    be32_to_cpu(hdr->len) < sizeof(*mad))
		return false;
	if (dqpn == 1)
		return sim_mad_drop & SIM_DROP_GSI;
	return (sim_mad_drop & SIM_DROP_SM) &&
	       mad->attr_id == IB_SMP_ATTR_SM_INFO;
}

static void receive(struct sim_hca *h, struct sk_buff *skb)
{
	struct sim_hdr *hdr;
	u32 len;

	/* Ethernet pads, so the length is the header's */
	if (skb_linearize(skb) || skb->len < sizeof(*hdr))
		return;
	hdr = (struct sim_hdr *)skb->data;
	len = be32_to_cpu(hdr->len);
	if (be16_to_cpu(hdr->magic) != SIM_MAGIC ||
	    hdr->version != SIM_VERSION || len > skb->len - sizeof(*hdr))
		return;
	if (hdr->op == SIM_HELLO) {
		if (len >= sizeof(struct sim_hello))
			receive_hello(h, (void *)(hdr + 1));
		return;
	}
	if (h->port.phys != SIM_PHYS_LINKUP || ignored(hdr))
		return;
	sim_count_rcv(h, hdr);
	if (hdr->op == SIM_UD) {
		if (be32_to_cpu(hdr->dqpn) == 0 ||
		    h->port.state == IB_PORT_ACTIVE)
			sim_ud_receive(h, hdr, hdr + 1);
	} else if (h->port.state == IB_PORT_ACTIVE &&
		   sim_lid_is_mine(h, be16_to_cpu(hdr->dlid))) {
		sim_rc_receive(h, hdr, hdr + 1);
	}
}

static void rx_work(struct work_struct *work)
{
	struct sim_hca *h = container_of(work, struct sim_hca, rx_work);
	struct sk_buff *skb;
	int budget = 64;

	/* a budget, so that whoever waits for this work gets its turn */
	while (budget-- && (skb = skb_dequeue(&h->rxq))) {
		receive(h, skb);
		consume_skb(skb);
	}
	if (!skb_queue_empty(&h->rxq))
		queue_work(h->rx_wq, &h->rx_work);
}

static int rx_frame(struct sk_buff *skb, struct net_device *dev,
		    struct packet_type *pt, struct net_device *orig)
{
	struct sim_hca *h = container_of(pt, struct sim_hca, pt);

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	if (h->closing || skb_queue_len(&h->rxq) >= RX_BACKLOG) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	skb_queue_tail(&h->rxq, skb);
	queue_work(h->rx_wq, &h->rx_work);
	return NET_RX_SUCCESS;
}

/* RTNL is held. */
static void detach(struct sim_hca *h)
{
	struct net_device *dev = h->netdev;

	if (!dev)
		return;
	WRITE_ONCE(h->netdev, NULL);
	dev_remove_pack(&h->pt);	/* waits for readers */
	dev_put(dev);
}

static void attach_work(struct work_struct *work)
{
	struct sim_hca *h = container_of(work, struct sim_hca, attach_work);
	struct net_device *dev;
	int ret;

	rtnl_lock();
	dev = h->netdev;
	if (!dev && !h->closing) {
		dev = dev_get_by_name(&init_net, sim_wire);
		if (dev) {
			ret = dev_set_mtu(dev, SIM_CHUNK +
					  sizeof(struct sim_hdr));
			if (ret)
				netdev_err(dev, "simhca: no MTU for a chunk: %d\n",
					   ret);
			h->pt.type = htons(SIM_ETHERTYPE);
			h->pt.func = rx_frame;
			h->pt.dev = dev;
			dev_add_pack(&h->pt);
			WRITE_ONCE(h->netdev, dev);
		}
	}
	if (dev && !(dev->flags & IFF_UP))
		dev_open(dev, NULL);
	rtnl_unlock();
	if (dev)
		sim_hello_now(h);
}

static int wire_event(struct notifier_block *nb, unsigned long event,
		      void *ptr)
{
	struct sim_hca *h = container_of(nb, struct sim_hca, nb);
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_CHANGENAME:
	case NETDEV_UP:
		if (!h->netdev && dev_net(dev) == &init_net &&
		    !strcmp(dev->name, sim_wire))
			queue_work(h->link_wq, &h->attach_work);
		break;
	case NETDEV_DOWN:
		if (dev == h->netdev && !h->closing)
			queue_work(h->link_wq, &h->attach_work);
		break;
	case NETDEV_UNREGISTER:
		if (dev == h->netdev) {
			detach(h);
			sim_hello_now(h);
		}
		break;
	}
	return NOTIFY_DONE;
}

int sim_wire_init(struct sim_hca *h)
{
	h->generation = get_random_u32();
	skb_queue_head_init(&h->rxq);
	INIT_WORK(&h->rx_work, rx_work);
	INIT_WORK(&h->attach_work, attach_work);
	INIT_DELAYED_WORK(&h->hello_work, hello_work);
	h->rx_wq = alloc_ordered_workqueue("simhca_rx", WQ_HIGHPRI);
	h->tx_wq = alloc_workqueue("simhca_tx", WQ_UNBOUND | WQ_HIGHPRI, 0);
	h->link_wq = alloc_ordered_workqueue("simhca_link", 0);
	if (h->rx_wq && h->tx_wq && h->link_wq)
		return 0;
	sim_wire_stop(h);
	return -ENOMEM;
}

/* Once the device is registered: from here on frames come in. */
void sim_wire_start(struct sim_hca *h)
{
	h->nb.notifier_call = wire_event;
	/* replays what is there already */
	if (register_netdevice_notifier(&h->nb))
		h->nb.notifier_call = NULL;
	sim_hello_now(h);
}

/* Say good-bye and let go of the net device. */
void sim_wire_stop(struct sim_hca *h)
{
	if (h->nb.notifier_call)
		unregister_netdevice_notifier(&h->nb);
	h->closing = true;
	if (h->link_wq) {
		cancel_delayed_work_sync(&h->hello_work);
		cancel_work_sync(&h->attach_work);
		if (h->netdev)
			send_hello(h);
		rtnl_lock();
		detach(h);
		rtnl_unlock();
		sim_link_update(h, false);
		cancel_delayed_work_sync(&h->hello_work);
		destroy_workqueue(h->link_wq);
	}
	if (h->rx_wq) {
		/* QPs still wait for rx_work, so its queue goes last */
		cancel_work_sync(&h->rx_work);
		destroy_workqueue(h->rx_wq);
	}
	skb_queue_purge(&h->rxq);
	if (!h->registered && h->tx_wq)
		destroy_workqueue(h->tx_wq);
}
