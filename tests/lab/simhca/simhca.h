/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated InfiniBand HCA on rdmavt: one device, one port, one wire.
 *
 * main.c   the PCI device, registration, the port's state machine
 * verbs.c  what rdmavt asks of its driver, and the send engine
 * ud.c     datagrams: IPoIB, QP 0 and QP 1
 * rc.c     reliable connections
 * mad.c    the subnet management agent
 * pma.c    the performance management agent and the counters
 * map.c    queues mapped into user space
 * wire.c   frames in and out, HELLO, the net device coming and going
 * knobs.c  /sys/module/simhca/parameters
 */
#ifndef SIMHCA_H
#define SIMHCA_H

#include <linux/pci.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <rdma/rdma_vt.h>
#include <rdma/rdmavt_qp.h>
#include <rdma/rdmavt_cq.h>
#include <rdma/rdmavt_mr.h>
#include <rdma/ib_hdrs.h>
#include <rdma/ib_smi.h>
#include <rdma/ib_pma.h>

#include "wire.h"

#define SIM_NPKEYS	128
#define SIM_NGUIDS	8
#define SIM_MTU		IB_MTU_4096
#define SIM_BOUNCE	(HZ / 4)
#define SIM_LID_PERMISSIVE	0xffff
#define SIM_LID_MCAST	0xc000

/* PortPhysicalState of PortInfo */
enum { SIM_PHYS_POLLING = 2, SIM_PHYS_DISABLED = 3, SIM_PHYS_LINKUP = 5 };

enum sim_err {
	SIM_ERR_SYMBOL, SIM_ERR_RECOVERY, SIM_ERR_DOWNED, SIM_ERR_RCV,
	SIM_ERR_REMPHYS, SIM_ERR_RELAY, SIM_ERR_DISCARDS,
	SIM_ERR_XMIT_CONSTRAINT, SIM_ERR_RCV_CONSTRAINT, SIM_ERR_INTEGRITY,
	SIM_ERR_OVERRUN, SIM_ERR_VL15, SIM_ERR_XMIT_WAIT,
	SIM_NERRS
};

struct sim_counters {
	atomic64_t err[SIM_NERRS];
	atomic64_t xmit_bytes, rcv_bytes;
	atomic64_t xmit_pkts, rcv_pkts;
	atomic64_t uni_xmit, uni_rcv, multi_xmit, multi_rcv;
};

/* What sysfs calls the port_info of a port, as the SM left it. */
struct sim_port {
	u16 lid;
	u8 lmc;
	u8 state;		/* enum ib_port_state */
	u8 phys;
	u8 disabled;		/* by the SM or ibportstate */
	u8 disable_next;	/* disabled from the next bounce on */
	u8 link_down_default;
	u8 width_enabled, width_active;
	u8 speed_enabled;	/* bits of SDR, DDR, QDR */
	u8 ext_enabled;		/* bits of FDR, EDR, HDR, NDR */
	u16 speed_active;	/* enum ib_port_speed */
	u8 mtu;			/* neighbour MTU, enum ib_mtu */
	u8 op_vls;
	u8 enforce;
	u8 phy_overrun;
	u8 sl2vl[8];
	u8 vlarb[4][64];
	u16 pkeys[SIM_NPKEYS];
	__be64 guids[SIM_NGUIDS];
};

struct sim_hca {
	struct rvt_dev_info rdi;	/* first: rdmavt allocates it */
	struct pci_dev *pdev;
	struct rvt_ibport rvp;
	struct sim_port port;
	struct sim_counters cnt;
	u64 guid;
	bool registered;
	bool closing;
	spinlock_t lock;		/* port, peer */

	/* the other end, as its HELLOs tell */
	bool peer_seen;
	bool peer_cable;
	u64 peer_guid;
	u32 peer_generation;
	u8 peer_width;
	u16 peer_speed;
	unsigned long peer_last;	/* jiffies */
	unsigned long bounce_until;	/* jiffies; 0: no bounce due */

	/* the wire */
	u32 generation;
	struct net_device *netdev;	/* under RCU, changed under RTNL */
	struct packet_type pt;
	struct notifier_block nb;
	struct notifier_block ipoib_nb;
	struct work_struct attach_work;
	struct delayed_work hello_work;
	struct work_struct rx_work;
	struct sk_buff_head rxq;

	struct workqueue_struct *rx_wq;	/* ordered: everything received */
	struct workqueue_struct *tx_wq;	/* the send engines */
	struct workqueue_struct *link_wq;	/* ordered: HELLO, link, attach */
	struct work_struct trap_work;
};

/* The driver's half of a QP. */
struct sim_qp {
	struct rvt_qp *qp;
	struct work_struct send_work;
	struct timer_list timer;

	/*
	 * requester, under s_lock: requests from s_last to before cur are out
	 * and not answered, the one at cur is being sent
	 */
	bool rnr_wait;
	bool resend;		/* start again at what is acknowledged */
	bool started;		/* a frame of the one at cur is out */
	u32 cur;		/* index in the send ring */
	u32 cur_id;
	u32 last_id;		/* of the request at s_last */
	u32 sent;		/* bytes of the one at cur handed to the wire */
	u32 acked;		/* bytes of the oldest (READ: that we have) */
	u32 asked;		/* READ: bytes requested so far */
	u64 out_bytes;		/* sent in all, and ... */
	u64 done_bytes;		/* ... completed in all: the window */
	u8 rnr_left;
	unsigned long progress;	/* jiffies of the last answer */
	struct rvt_sge_state rd_ss;

	/* responder, under r_lock */
	u32 exp_id;		/* the next new message */
	bool in_msg;
	u32 in_off;
	u32 since_ack;
	u64 atomic_orig;	/* answer to a repeated atomic */
};

extern struct sim_hca *sim_the_hca;	/* for the knobs */
extern struct mutex sim_knob_lock;

/* parameters, knobs.c */
extern char *sim_wire, *sim_name;
extern unsigned long long sim_guid;
extern bool sim_enhanced, sim_cable;
extern unsigned int sim_mad_drop;
extern u8 sim_width;
extern u16 sim_speed;
#define SIM_DROP_SMA 1
#define SIM_DROP_PMA 2
#define SIM_DROP_GSI 4
#define SIM_DROP_SM  8

static inline struct sim_hca *sim_from_rdi(struct rvt_dev_info *rdi)
{
	return container_of(rdi, struct sim_hca, rdi);
}

static inline struct sim_hca *sim_from_ib(struct ib_device *ibdev)
{
	return sim_from_rdi(ib_to_rvt(ibdev));
}

static inline struct sim_hca *sim_from_qp(struct rvt_qp *qp)
{
	return sim_from_ib(qp->ibqp.device);
}

static inline bool sim_lid_is_mine(struct sim_hca *h, u16 lid)
{
	u16 mask = ~((1 << h->port.lmc) - 1);

	return h->port.lid && (lid & mask) == (h->port.lid & mask);
}

static inline bool sim_lid_is_mcast(u16 lid)
{
	return lid >= SIM_LID_MCAST && lid != SIM_LID_PERMISSIVE;
}

/* main.c */
void sim_dispatch(struct sim_hca *h, enum ib_event_type type);
void sim_link_update(struct sim_hca *h, bool by_peer);
void sim_link_bounce(struct sim_hca *h);
bool sim_bouncing(struct sim_hca *h);
void sim_set_port_state(struct sim_hca *h, u8 state);

/* verbs.c */
void sim_verbs_setup(struct sim_hca *h);
bool sim_schedule_send(struct rvt_qp *qp);

/* map.c */
void sim_map_setup(struct sim_hca *h);
void sim_map_disassociate(struct ib_ucontext *context);

/* ud.c */
void sim_ud_send(struct sim_hca *h, struct rvt_qp *qp, struct rvt_swqe *wqe);
void sim_ud_receive(struct sim_hca *h, const struct sim_hdr *hdr,
		    const void *data);
void sim_gather(struct rvt_sge_state *ss, void *to, u32 len);
void sim_wqe_ss(struct rvt_swqe *wqe, struct rvt_sge_state *ss);
void sim_make_grh(struct sim_hca *h, struct rdma_ah_attr *ah, u32 len,
		  struct ib_grh *grh);

/* rc.c */
void sim_rc_push(struct sim_hca *h, struct rvt_qp *qp);
void sim_rc_reset(struct rvt_qp *qp);
void sim_rc_timer(struct timer_list *t);
void sim_rc_receive(struct sim_hca *h, const struct sim_hdr *hdr,
		    const void *data);

/* mad.c, pma.c */
int sim_process_mad(struct ib_device *ibdev, int flags, u32 port_num,
		    const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index);
int sim_process_perf(struct sim_hca *h, const struct ib_mad *in,
		     struct ib_mad *out);
void sim_trap_work(struct work_struct *work);
void sim_count_xmit(struct sim_hca *h, const struct sim_hdr *hdr);
void sim_count_rcv(struct sim_hca *h, const struct sim_hdr *hdr);
extern const char *const sim_err_names[SIM_NERRS];

/* wire.c */
int sim_wire_init(struct sim_hca *h);
void sim_wire_start(struct sim_hca *h);
void sim_wire_stop(struct sim_hca *h);
void sim_wire_drain(void);
void sim_hello_now(struct sim_hca *h);
struct sk_buff *sim_frame(struct sim_hca *h, u32 len, struct sim_hdr **hdr,
			  void **payload);
void sim_xmit(struct sim_hca *h, struct sk_buff *skb);

#endif
