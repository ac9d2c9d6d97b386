/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire: what two ports of the lab say to each other in Ethernet frames.
 * ibswitch.py speaks the same; keep both in step.
 */
#ifndef SIMHCA_WIRE_H
#define SIMHCA_WIRE_H

#include <linux/types.h>

#define SIM_ETHERTYPE	0x88b5	/* IEEE 802 local experimental */
#define SIM_MAGIC	0x5348
#define SIM_VERSION	1
#define SIM_CHUNK	16384	/* bytes of an RC message in one frame */

enum sim_op {
	SIM_HELLO	= 1,	/* payload: struct sim_hello */
	SIM_UD		= 2,	/* one datagram, MADs included */
	SIM_SEND	= 3,	/* RC: a chunk of a SEND */
	SIM_WRITE	= 4,	/* RC: a chunk of an RDMA WRITE */
	SIM_READ	= 5,	/* RC: asks for total bytes from vaddr */
	SIM_READ_RESP	= 6,	/* RC: a chunk of the answer */
	SIM_ATOMIC	= 7,	/* RC: payload: two u64, imm: the opcode */
	SIM_ACK		= 8,	/* RC: off bytes are in; LAST: all done */
	SIM_NAK		= 9,	/* RC: imm: an enum sim_nak */
	SIM_RNR		= 10,	/* RC: no receive posted; imm: the timer */
};

enum sim_nak {
	SIM_NAK_INVALID	= 1,	/* the length or the operation */
	SIM_NAK_ACCESS	= 2,	/* the key, the range or the rights */
	SIM_NAK_OP	= 3,	/* the responder failed */
};

#define SIM_F_GRH	0x01
#define SIM_F_SOLICITED	0x02
#define SIM_F_IMM	0x04
#define SIM_F_LAST	0x08

/* Big-endian; follows the 14 bytes of Ethernet. */
struct sim_hdr {
	__be16 magic;
	u8 version;
	u8 op;
	__be16 slid;
	__be16 dlid;
	u8 sl_vl;		/* SL in the high half; VL 15 carries QP 0 */
	u8 flags;
	__be16 pkey;
	__be32 sqpn;
	__be32 dqpn;
	__be32 qkey;
	__be32 imm;
	__be32 len;		/* payload that follows; Ethernet pads */
	u8 grh[40];
	__be32 id;		/* RC: the message */
	__be32 off;		/* RC: where the payload belongs in it */
	__be32 total;		/* RC: its length */
	__be32 rkey;
	__be64 vaddr;
} __packed;

struct sim_hello {
	__be64 guid;
	__be32 generation;	/* another number: the other side restarted */
	u8 port;
	u8 cable;		/* 1: plugged and not disabled */
	u8 width;		/* highest usable, as IB_WIDTH_* */
	u8 pad;
	__be16 speed;		/* highest usable, as IB_SPEED_* */
	__be16 pad2;
} __packed;

#define SIM_HELLO_MS	500
#define SIM_EXPIRE_MS	3000

#endif
