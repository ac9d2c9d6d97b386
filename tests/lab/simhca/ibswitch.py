#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An InfiniBand switch as a process: the other end of the wires of simhca.

Each port is a unix datagram socket on which Ethernet frames in the format of
wire.h come and go, as QEMU's `-netdev dgram` sends and takes them. A second
switch can be at the far end of a port too. The switch has a management agent
that a real opensm sweeps, forwards by directed route, by LID and to multicast
groups, and says trap 128 when a port changes. It outlives every node.

    ibswitch.py --dir DIR --ports 8 --control DIR/switch.ctl

gives port N the socket DIR/sw-N.sock and expects its peer on DIR/node-N.sock;
`--port N,LOCAL,REMOTE` names the two sockets of one port. The control socket
takes one command a line; `help` lists them.
"""

import argparse
import collections
import errno
import os
import random
import selectors
import signal
import socket
import struct
import sys
import time

ETHERTYPE, MAGIC, VERSION = 0x88B5, 0x5348, 1
HELLO, UD, SEND, WRITE, READ = 1, 2, 3, 4, 5
F_GRH = 1
ETH = struct.Struct(">6s6sH")
HDR = struct.Struct(">HBBHHBBHIIIII40sIIIIQ")
HELLO_BODY = struct.Struct(">QIBBBxHxx")
BODY = ETH.size + HDR.size
ROUTE = struct.Struct(">HHBBH")  # slid, dlid, sl_vl, flags, pkey: at byte 4 of HDR

HELLO_S, EXPIRE_S, TRAP_S = 0.5, 3.0, 1.0
BOUNCE_AFTER_S, BOUNCE_S = 0.1, 0.25  # the answer to who asked goes out first
PERMISSIVE, MCAST_BASE = 0xFFFF, 0xC000
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
POLLING, DISABLED, LINKUP = 2, 3, 5
NPKEYS, MCAST_CAP, LFT_CAP = 32, 1024, 0xC000
SPEEDS = {"SDR": 1, "DDR": 2, "QDR": 4, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128}
CLASS_LID, CLASS_DR, CLASS_PERF = 0x01, 0x81, 0x04
GET, SET, TRAP, TRAP_REPRESS, GET_RESP = 0x01, 0x02, 0x05, 0x07, 0x81
BAD_ATTR, BAD_VALUE = 0x0C, 0x1C
# name, byte offset in PortCounters, bits; bit n of CounterSelect clears row n
ERRORS = [
    ("symbol_error", 4, 16), ("link_error_recovery", 6, 8), ("link_downed", 7, 8),
    ("port_rcv_errors", 8, 16), ("port_rcv_remote_physical_errors", 10, 16),
    ("port_rcv_switch_relay_errors", 12, 16), ("port_xmit_discards", 14, 16),
    ("port_xmit_constraint_errors", 16, 8), ("port_rcv_constraint_errors", 17, 8),
    ("local_link_integrity_errors", 19, 4), ("excessive_buffer_overrun_errors", 19, -4),
    ("VL15_dropped", 22, 16),
]
DATA = ["xmit_bytes", "rcv_bytes", "xmit_pkts", "rcv_pkts"]
DATA_EXT = DATA + ["uni_xmit", "uni_rcv", "multi_xmit", "multi_rcv"]


class Port:
    """One port as the SM sees it, and the peer as its HELLOs tell."""

    def __init__(self, num, local=None, remote=None):
        self.num, self.local, self.remote = num, local, remote
        self.phys, self.state = (POLLING, DOWN) if num else (LINKUP, ACTIVE)
        self.cable, self.disabled, self.bounce = True, False, (0.0, 0.0)
        self.width, self.speed = 4, 64  # best that it may come up with
        self.width_enabled, self.speed_enabled, self.ext_enabled = 3, 7, 7
        self.width_active, self.speed_active = 2, 64
        self.mtu, self.op_vls, self.enforce, self.phy_overrun = 5, 3, 0, 0
        self.vl_high_limit, self.sm_sl, self.link_down_default = 0, 0, POLLING
        self.pkeys = [0xFFFF] + [0] * (NPKEYS - 1)
        self.sl2vl, self.vlarb = {}, {}
        self.count = collections.Counter()
        self.generation = random.getrandbits(32)  # another one: went down here
        self.peer = None  # (guid, generation, cable, width, speed, last seen)
        self.queue = collections.deque()
        self.sock = None
        if local:
            if os.path.exists(local):
                os.unlink(local)
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            self.sock.bind(local)
            self.sock.setblocking(False)

    def usable(self, now):
        down_from, down_until = self.bounce
        return self.cable and not down_from <= now < down_until

    def pkey_ok(self, pkey):
        for mine in self.pkeys:
            if mine & 0x7FFF == pkey & 0x7FFF and (mine | pkey) & 0x8000 and pkey & 0x7FFF:
                return True
        return False


def packets(op, flags, length, mtu_code):
    """How many IB packets a frame stands for, and their bytes on the link."""
    mtu = 128 << mtu_code
    n = max(1, -(-length // mtu))
    size = (length + 3) // 4 * 4 + n * (24 + (40 if flags & F_GRH else 0))
    return n, size + (8 if op == UD else 16 if op == READ else 0)


class Switch:
    def __init__(self, guid, desc, ports):
        self.guid, self.desc, self.ports = guid, desc, ports
        self.nports = len(ports) - 1
        self.lid = self.lmc = self.sm_lid = self.subnet_timeout = 0
        self.mkey, self.mkeyprot, self.lease = 0, 0, 0
        self.prefix = 0xFE80000000000000
        self.lft = bytearray(b"\xff" * LFT_CAP)
        self.mft = [0] * MCAST_CAP
        self.lin_top = self.mcast_top = 0
        self.def_port, self.def_mcast = 255, [255, 255]
        self.life, self.state_change = 0, 0
        self.trap_tid, self.trap_left, self.trap_at = 0, 0, 0.0
        self.sma_deaf = False
        self.capture = None

    # ---- frames out ----

    def put(self, port, frame):
        """Send now, or keep the order behind what already waits."""
        if self.capture:
            self.write_pcap(frame)
        if port.queue or not self.try_send(port, frame):
            if len(port.queue) < 4096:
                port.queue.append(frame)
            else:
                port.count["port_xmit_discards"] += 1

    @staticmethod
    def try_send(port, frame):
        try:
            port.sock.sendto(frame, port.remote)
        except BlockingIOError:
            return False
        except OSError as e:
            if e.errno == errno.ENOBUFS:
                return False
            # nobody there: a frame into a cable without a peer is gone
        return True

    def drain(self):
        """Retry what a full peer refused; True if something still waits."""
        waiting = False
        for port in self.ports[1:]:
            while port.queue and self.try_send(port, port.queue[0]):
                port.queue.popleft()
            waiting |= bool(port.queue)
        return waiting

    def send_hello(self, port, now):
        width = 2 if port.width == 4 and port.width_enabled & 2 else 1
        speed = port.speed if port.ext_enabled else min(port.speed, 4)
        body = HELLO_BODY.pack(self.guid, port.generation, port.num,
                               port.usable(now), width, speed)
        self.put(port, self.frame(port, HELLO, body))

    def frame(self, port, op, body, slid=0, dlid=0, vl=0, sqpn=0, dqpn=0, qkey=0, sl=0):
        mac = bytes((0x52, 0x54, 0, 0xFB, 0, port.num))
        return (ETH.pack(b"\xff" * 6, mac, ETHERTYPE)
                + HDR.pack(MAGIC, VERSION, op, slid, dlid, sl << 4 | vl, 0, 0xFFFF, sqpn,
                           dqpn, qkey, 0, len(body), bytes(40), 0, 0, 0, 0, 0) + body)

    def transmit(self, port, frame, op, flags, length, mcast=False):
        n, size = packets(op, flags, length, port.mtu)
        c = port.count
        c["xmit_bytes"] += size
        c["xmit_pkts"] += n
        c["multi_xmit" if mcast else "uni_xmit"] += n
        self.put(port, frame)

    # ---- the link ----

    def update_link(self, port, now, by_peer=False):
        peer = port.peer
        if peer and now - peer[5] > EXPIRE_S:
            port.peer = peer = None
        up = bool(peer and peer[2] and port.usable(now))
        if up and port.phys != LINKUP:
            one = port.width == 1 or peer[3] == 1 or not port.width_enabled & 2
            port.width_active = 1 if one else 2
            speed = min(port.speed, peer[4])
            if not port.ext_enabled:
                speed = min(speed, 4)
            while speed > 16 and not (speed >> 4) & port.ext_enabled:
                speed >>= 1
            port.speed_active = speed
            port.phys, port.state = LINKUP, INIT
            self.port_changed(now)
        elif not up:
            if port.phys == LINKUP:
                port.count["link_downed"] += 1
                if not by_peer:  # else the peer might not notice
                    port.generation = (port.generation + 1) & 0xFFFFFFFF
                self.port_changed(now)
            port.phys = DISABLED if port.disabled else POLLING
            port.state = DOWN

    def port_changed(self, now):
        self.state_change = 1
        self.trap_tid += 1
        self.trap_left, self.trap_at = 10, now

    def got_hello(self, port, body, now):
        if len(body) < HELLO_BODY.size:
            return
        guid, generation, _, cable, width, speed = HELLO_BODY.unpack_from(body)
        old = port.peer
        if old and old[:2] != (guid, generation):
            port.peer = None  # it restarted: down first
            self.update_link(port, now, True)
        changed = not port.peer or port.peer[2] != cable
        port.peer = (guid, generation, cable, width, speed, now)
        if changed:
            self.update_link(port, now, True)
            self.send_hello(port, now)

    def tick(self, now):
        for port in self.ports[1:]:
            self.update_link(port, now)
            self.send_hello(port, now)
        if self.trap_left and now >= self.trap_at:
            self.send_trap(now)

    def send_trap(self, now):
        """Trap 128 to the SM, again and again until it says TrapRepress."""
        self.trap_at = now + TRAP_S
        out = self.lft[self.sm_lid] if 0 < self.sm_lid < MCAST_BASE else 255
        if not self.lid or not 0 < out <= self.nports or self.ports[out].phys != LINKUP:
            return  # kept for when there is a way to the SM
        self.trap_left -= 1
        mad = bytearray(256)
        struct.pack_into(">BBBBHHQHHI", mad, 0, 1, CLASS_LID, 1, TRAP, 0, 0,
                         self.trap_tid, 0x0002, 0, 0)
        struct.pack_into(">Q", mad, 24, self.mkey)
        struct.pack_into(">BBHHHHH", mad, 64, 0x81, 0, 2, 128, self.lid, 0, self.lid)
        port = self.ports[out]
        self.transmit(port, self.frame(port, UD, bytes(mad), self.lid, self.sm_lid, 15,
                                       sl=self.ports[0].sm_sl), UD, 0, 256)

    # ---- frames in ----

    def receive(self, port, frame, now):
        if len(frame) < BODY or frame[12:14] != b"\x88\xb5":
            return
        if self.capture:
            self.write_pcap(frame)
        magic, version, op = struct.unpack_from(">HBB", frame, ETH.size)
        if magic != MAGIC or version != VERSION:
            return
        slid, dlid, slvl, flags, pkey = ROUTE.unpack_from(frame, ETH.size + 4)
        sqpn, dqpn, _, _, length = struct.unpack_from(">IIIII", frame, ETH.size + 12)
        if length > len(frame) - BODY:
            return
        if op == HELLO:
            self.got_hello(port, frame[BODY:BODY + length], now)
            return
        if port.phys != LINKUP:
            return
        mcast = MCAST_BASE <= dlid < PERMISSIVE
        n, size = packets(op, flags, length, port.mtu)
        c = port.count
        c["rcv_bytes"] += size
        c["rcv_pkts"] += n
        c["multi_rcv" if mcast else "uni_rcv"] += n
        smp = slvl & 0xF == 15
        if smp and op == UD and length == 256 and frame[BODY + 1] == CLASS_DR:
            self.directed(port, frame, now)
        elif dlid == PERMISSIVE or (self.lid and dlid >> self.lmc == self.lid >> self.lmc):
            if op == UD and length == 256 and dqpn <= 1:
                self.local_mad(port, frame, slid, sqpn, dqpn, slvl >> 4, now)
        elif mcast:
            self.multicast(port, frame, op, flags, length, dlid, pkey)
        else:
            out = self.lft[dlid] if dlid <= self.lin_top else 255
            self.forward(port, out, frame, op, flags, length, pkey, smp)

    def passes(self, inp, out, pkey):
        """May a packet of that partition go from port to port?"""
        if inp.state != ACTIVE or out.state != ACTIVE:
            return False
        # opensm gives a port the table of its host, a limited key where the host is a limited member: coming in, what
        # that host sends has the same key, and only full and limited against limited is judged on the way out.
        if inp.enforce & 8 and not inp.pkey_ok(pkey | 0x8000):
            inp.count["port_rcv_constraint_errors"] += 1
            return False
        if out.enforce & 4 and not out.pkey_ok(pkey):
            out.count["port_xmit_constraint_errors"] += 1
            return False
        return True

    def forward(self, inp, out_num, frame, op, flags, length, pkey, smp):
        if not 0 < out_num <= self.nports or out_num == inp.num:
            inp.count["port_rcv_switch_relay_errors"] += 1
            return
        out = self.ports[out_num]
        if out.phys != LINKUP or not (smp or self.passes(inp, out, pkey)):
            out.count["port_xmit_discards"] += 1
            return
        self.transmit(out, frame, op, flags, length)

    def multicast(self, inp, frame, op, flags, length, dlid, pkey):
        index = dlid - MCAST_BASE
        mask = self.mft[index] if index < MCAST_CAP else 0
        for out in self.ports[1:]:
            if mask >> out.num & 1 and out is not inp and self.passes(inp, out, pkey):
                self.transmit(out, frame, op, flags, length, True)

    def directed(self, port, frame, now):
        """The hop rules of IBA 14.2.2 for a switch."""
        frame = bytearray(frame)
        ptr, cnt = frame[BODY + 6], frame[BODY + 7]
        initial, back = BODY + 128, BODY + 192
        returning = frame[BODY + 4] & 0x80
        out = None
        if cnt > 63:
            return
        if not returning and ptr and ptr < cnt:
            frame[back + ptr] = port.num
            frame[BODY + 6] = ptr + 1
            out = frame[initial + ptr + 1]
        elif not returning and ptr == cnt:
            frame[back + ptr] = port.num
            frame[BODY + 6] = cnt
            mad = self.smp(bytes(frame[BODY:BODY + 256]), port, now)
            if mad:
                mad[4] |= 0x80
                reply = self.frame(port, UD, bytes(mad), PERMISSIVE, PERMISSIVE, 15)
                self.transmit(port, reply, UD, 0, 256)
            return
        elif returning and 2 <= ptr <= cnt:
            frame[BODY + 6] = ptr - 1
            out = frame[back + ptr - 1]
        if out and out <= self.nports and self.ports[out].phys == LINKUP:
            self.transmit(self.ports[out], bytes(frame), UD, 0, 256)

    def local_mad(self, port, frame, slid, sqpn, dqpn, sl, now):
        mad = frame[BODY:BODY + 256]
        if dqpn == 0 and mad[1] == CLASS_LID:
            reply, vl, qkey = self.smp(mad, port, now), 15, 0
        elif dqpn == 1 and mad[1] == CLASS_PERF:
            reply, vl, qkey = self.perf(mad), 0, 0x80010000
        else:
            return
        if not reply:
            return
        out = self.lft[slid] if slid < MCAST_BASE else 255
        via = self.ports[out] if 0 < out <= self.nports else port
        self.transmit(via, self.frame(via, UD, bytes(reply), self.lid, slid, vl, dqpn, sqpn,
                                      qkey, sl), UD, 0, 256)

    # ---- the subnet management agent ----

    def smp(self, mad, port, now):
        """The answer to a subnet management packet, or None."""
        method, (attr, _, mod) = mad[3], struct.unpack_from(">HHI", mad, 16)
        mkey = struct.unpack_from(">Q", mad, 24)[0]
        if method == TRAP_REPRESS:
            self.trap_left = 0
            return None
        if method not in (GET, SET) or self.sma_deaf:
            return None
        if self.mkey and mkey != self.mkey and (method == SET or self.mkeyprot >= 2):
            return None
        out = bytearray(mad)
        data = memoryview(out)[64:128]
        handler = {0x10: self.node_desc, 0x11: self.node_info, 0x12: self.switch_info,
                   0x14: self.guid_info, 0x15: self.port_info, 0x16: self.pkey_table,
                   0x17: self.sl2vl, 0x18: self.vl_arb, 0x19: self.linear, 0x1B: self.mcast_table,
                   0xFF90: self.ext_port_info}.get(attr)
        status = BAD_ATTR if not handler else handler(data, mod, method == SET, port, mkey, now)
        out[3] = GET_RESP
        struct.pack_into(">H", out, 4, status or 0)
        return out

    def node_desc(self, d, mod, put, port, mkey, now):
        d[:] = self.desc.encode()[:64].ljust(64, b"\0")

    def node_info(self, d, mod, put, port, mkey, now):
        d[:] = struct.pack(">BBBBQQQHHIB3s", 1, 1, 2, self.nports, self.guid, self.guid,
                           self.guid, NPKEYS, 0xD2F0, 0, port.num, b"\0\x02\xc9").ljust(64, b"\0")

    def switch_info(self, d, mod, put, port, mkey, now):
        if put:
            self.lin_top = struct.unpack_from(">H", d, 6)[0]
            self.def_port, self.def_mcast = d[8], [d[9], d[10]]
            self.life = d[11] >> 3
            if d[11] & 4:
                self.state_change = 0  # written as one: taken note of
            self.mcast_top = struct.unpack_from(">H", d, 18)[0]
        life = self.life << 3 | self.state_change << 2
        d[:] = struct.pack(">HHHHBBBBHHBBH", LFT_CAP, 0, MCAST_CAP, self.lin_top,
                           self.def_port, *self.def_mcast, life, 0, NPKEYS, 0xC0, 0,
                           self.mcast_top).ljust(64, b"\0")

    def guid_info(self, d, mod, put, port, mkey, now):
        d[:] = struct.pack(">Q", self.guid).ljust(64, b"\0")

    def ext_port_info(self, d, mod, put, port, mkey, now):
        d[:] = bytes(64)

    def port_info(self, d, mod, put, port, mkey, now):
        num = mod & 0xFF
        if num > self.nports:
            return BAD_VALUE
        p, rereg = self.ports[num], d[51] & 0x80
        if put:
            self.set_port(p, d, now)
        self.get_port(p, d, port.num, mkey)
        if put and rereg:
            d[51] |= 0x80
        return 0

    def get_port(self, p, d, local, mkey):
        d[:] = bytes(64)
        if not p.num:
            shown = self.mkey if not self.mkeyprot or mkey == self.mkey else 0
            struct.pack_into(">QQHH", d, 0, shown, self.prefix, self.lid, self.sm_lid)
            struct.pack_into(">H", d, 26, self.lease)
        # traps, SL mapping, system image GUID, extended speeds, CapabilityMask2
        struct.pack_into(">I", d, 20, 0x0000C84C)
        ext = p.speed_active >> 4 if p.speed_active >= 16 else 0
        supported = 0xF if p.speed == 128 else 7
        d[28:45] = bytes((
            local, p.width_enabled, 3, p.width_active, 7 << 4 | p.state,
            p.phys << 4 | p.link_down_default,
            (self.mkeyprot << 6 | self.lmc) if not p.num else 0,
            min(p.speed_active, 4) << 4 | p.speed_enabled, p.mtu << 4 | p.sm_sl,
            3 << 4, p.vl_high_limit, 8, 8, 5, 0x12, p.op_vls << 4 | p.enforce, 0))
        d[50] = 1 if not p.num else 0
        d[51], d[52], d[53] = self.subnet_timeout if not p.num else 0, 16, p.phy_overrun
        struct.pack_into(">H", d, 60, 0x0420)  # HDR, NDR
        d[62], d[63] = ext << 4 | supported, p.ext_enabled & supported

    def set_port(self, p, d, now):
        def enabled(old, new, ones, supported):
            return old if not new else supported if new == ones else new & supported

        if not p.num:
            self.mkey, prefix, lid, sm_lid = struct.unpack_from(">QQHH", d, 0)
            self.prefix = prefix or self.prefix
            self.lid, self.sm_lid = lid or self.lid, sm_lid or self.sm_lid
            self.lease = struct.unpack_from(">H", d, 26)[0]
            self.mkeyprot, self.lmc = d[34] >> 6, 0
            self.subnet_timeout = d[51] & 0x1F
            p.sm_sl = d[36] & 0xF
            return
        supported = 0xF if p.speed == 128 else 7
        p.width_enabled = enabled(p.width_enabled, d[29], 0xFF, 3)
        p.speed_enabled = enabled(p.speed_enabled, d[35] & 0xF, 0xF, 7)
        ext = d[63] & 0x1F
        p.ext_enabled = 0 if ext == 30 else enabled(p.ext_enabled, ext, 0x1F, supported)
        p.link_down_default = d[33] & 0xF or p.link_down_default
        p.mtu = min(d[36] >> 4, 5) or p.mtu
        p.vl_high_limit, p.phy_overrun = d[38], d[53]
        p.op_vls = d[43] >> 4 or p.op_vls
        p.enforce = d[43] & 0xF
        state, phys = d[32] & 0xF, d[33] >> 4
        if phys == DISABLED:
            p.disabled, p.bounce = True, (now + BOUNCE_AFTER_S, float("inf"))
        elif phys == POLLING or state == DOWN:
            p.disabled = False
            p.bounce = (now + BOUNCE_AFTER_S, now + BOUNCE_AFTER_S + BOUNCE_S)
        elif p.phys == LINKUP and state:
            if (state == INIT or (state == ARMED and p.state <= ARMED)
                    or (state == ACTIVE and p.state >= ARMED)):
                p.state = state

    def pkey_table(self, d, mod, put, port, mkey, now):
        block, num = mod & 0xFFFF, mod >> 16
        if block or num > self.nports:
            return BAD_VALUE
        p = self.ports[num]
        if put:
            p.pkeys = list(struct.unpack(">32H", d))
        d[:] = struct.pack(">32H", *p.pkeys)

    def table(self, store, key, d, put, size):
        if put:
            store[key] = bytes(d[:size])
        d[:] = store.get(key, bytes(size)).ljust(64, b"\0")

    def sl2vl(self, d, mod, put, port, mkey, now):
        if mod & 0xFF > self.nports:
            return BAD_VALUE
        self.table(self.ports[mod & 0xFF].sl2vl, mod >> 8 & 0xFF, d, put, 8)

    def vl_arb(self, d, mod, put, port, mkey, now):
        if mod & 0xFF > self.nports or not 1 <= mod >> 16 <= 4:
            return BAD_VALUE
        self.table(self.ports[mod & 0xFF].vlarb, mod >> 16, d, put, 64)

    def linear(self, d, mod, put, port, mkey, now):
        at = mod * 64
        if at >= LFT_CAP:
            return BAD_VALUE
        if put:
            self.lft[at:at + 64] = d
        d[:] = self.lft[at:at + 64]

    def mcast_table(self, d, mod, put, port, mkey, now):
        at, shift = (mod & 0x1FF) * 32, (mod >> 28) * 16
        if at >= MCAST_CAP:
            return BAD_VALUE
        if put:
            for i, bits in enumerate(struct.unpack(">32H", d)):
                self.mft[at + i] = self.mft[at + i] & ~(0xFFFF << shift) | bits << shift
        d[:] = struct.pack(">32H", *(self.mft[at + i] >> shift & 0xFFFF for i in range(32)))

    # ---- the performance management agent ----

    def perf(self, mad):
        method, attr = mad[3], struct.unpack_from(">H", mad, 16)[0]
        if method not in (GET, SET):
            return None
        out = bytearray(mad)
        data = memoryview(out)[64:]
        num, status = data[1], 0
        ports = self.ports[1:] if num == 255 else [self.ports[num]] if num <= self.nports else []
        if attr == 1:
            data[:] = struct.pack(">BBHI", 1, 1, 1 << 8 | 1 << 9 | 1 << 12, 18).ljust(192, b"\0")
        elif attr not in (0x12, 0x1D):
            status = BAD_ATTR
        elif not ports:
            status = BAD_VALUE
        else:
            (self.counters if attr == 0x12 else self.counters_ext)(data, num, ports, method == SET)
        out[3] = GET_RESP
        struct.pack_into(">H", out, 4, status)
        return out

    @staticmethod
    def counters(d, num, ports, put):
        select, select2 = struct.unpack_from(">H", d, 2)[0], d[18]
        names = [e[0] for e in ERRORS] + DATA
        for p in ports if put else ():
            for i, name in enumerate(names):
                if select >> i & 1:
                    p.count[name] = 0
            if select2 & 1:
                p.count["port_xmit_wait"] = 0
        total = sum((p.count for p in ports), collections.Counter())
        d[:] = bytes(192)
        d[1] = num
        for name, at, bits in ERRORS:
            value = min(total[name], (1 << abs(bits)) - 1)
            if bits == 16:
                struct.pack_into(">H", d, at, value)
            else:
                d[at] |= value << 4 if bits == 4 else value
        words = [total["xmit_bytes"] // 4, total["rcv_bytes"] // 4, total["xmit_pkts"],
                 total["rcv_pkts"], total["port_xmit_wait"]]
        struct.pack_into(">5I", d, 24, *(min(w, 0xFFFFFFFF) for w in words))

    @staticmethod
    def counters_ext(d, num, ports, put):
        select = struct.unpack_from(">H", d, 2)[0]
        for p in ports if put else ():
            for i, name in enumerate(DATA_EXT):
                if select >> i & 1:
                    p.count[name] = 0
        total = sum((p.count for p in ports), collections.Counter())
        d[:] = bytes(192)
        d[1] = num
        values = [total[n] // 4 if n.endswith("bytes") else total[n] for n in DATA_EXT]
        struct.pack_into(">8Q", d, 8, *values)

    # ---- control ----

    def command(self, words):
        """One line of the control socket; returns the text of the answer."""
        name, args = words[0], words[1:]
        handler = getattr(self, "do_" + name, None)
        if not handler:
            raise ValueError(f"unknown command {name!r}; try help")
        return handler(*args)

    def port_of(self, text):
        num = int(text)
        if not 1 <= num <= self.nports:
            raise ValueError(f"no port {num}: the ports are 1 to {self.nports}")
        return self.ports[num]

    def do_help(self):
        return ("status | cable PORT 0|1 | errors PORT [NAME=N|NAME+=N] | width PORT 1|4 |\n"
                "speed PORT SDR..NDR | sma 0|1 (0: deaf) | capture FILE|off | help | quit")

    def do_status(self):
        names = {v: k for k, v in SPEEDS.items()}
        rows = [f"switch 0x{self.guid:016x} lid {self.lid} sm_lid {self.sm_lid}"]
        for p in self.ports[1:]:
            state = {DOWN: "down", INIT: "init", ARMED: "armed", ACTIVE: "active"}[p.state]
            link = f"{'4x' if p.width_active == 2 else '1x'} {names.get(p.speed_active)}"
            peer = f"0x{p.peer[0]:016x}" if p.peer else "-"
            rows.append(f"port {p.num} {state} {link} cable {int(p.cable)} peer {peer}")
        return "\n".join(rows)

    def do_cable(self, port, plugged):
        p = self.port_of(port)
        p.cable = bool(int(plugged))
        self.update_link(p, time.monotonic())
        self.send_hello(p, time.monotonic())

    def do_errors(self, port, change=None):
        p, names = self.port_of(port), [e[0] for e in ERRORS] + ["port_xmit_wait"]
        if change:
            name, _, value = change.partition("=")
            add = name.endswith("+")
            name = name.rstrip("+")
            if name not in names:
                raise ValueError(f"no counter {name!r}")
            p.count[name] = int(value, 0) + (p.count[name] if add else 0)
        return "\n".join(f"{n}={p.count[n]}" for n in names + DATA)

    @staticmethod
    def retrain(p):
        now = time.monotonic()
        if not p.disabled:
            p.bounce = (now, now + BOUNCE_S)

    def do_width(self, port, width):
        p = self.port_of(port)
        if width not in ("1", "4"):
            raise ValueError("the width is 1 or 4")
        p.width = int(width)
        self.retrain(p)

    def do_speed(self, port, speed):
        p = self.port_of(port)
        if speed.upper() not in SPEEDS:
            raise ValueError("the speeds are " + " ".join(SPEEDS))
        p.speed = SPEEDS[speed.upper()]
        self.retrain(p)

    def do_sma(self, answers):
        self.sma_deaf = not int(answers)

    def do_capture(self, path):
        if self.capture:
            self.capture.close()
        self.capture = None
        if path != "off":
            self.capture = open(path, "wb")
            self.capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))

    def write_pcap(self, frame):
        now = time.time()
        self.capture.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame),
                                       len(frame)) + frame)
        self.capture.flush()

    def do_quit(self):
        raise SystemExit(0)


def serve_control(switch, sel, conn, buffer):
    """Read what came on a control connection and answer each whole line."""
    try:
        chunk = conn.recv(4096)
    except BlockingIOError:
        return
    except OSError:
        chunk = b""
    if not chunk:
        sel.unregister(conn)
        conn.close()
        return
    buffer += chunk
    while b"\n" in buffer:
        line, _, rest = bytes(buffer).partition(b"\n")
        buffer[:] = rest
        words = line.decode(errors="replace").split()
        if not words:
            continue
        try:
            text = switch.command(words)
            answer = (text + "\n" if text else "") + "ok\n"
        except (ValueError, TypeError, OSError) as e:
            answer = f"error: {e}\n"
        try:
            conn.sendall(answer.encode())
        except OSError:
            pass


def read_port(switch, port):
    """A bounded batch, so that no port starves the others."""
    for _ in range(32):
        try:
            frame = port.sock.recv(1 << 17)
        except (BlockingIOError, ConnectionError):
            return
        switch.receive(port, frame, time.monotonic())


def run(switch, control):
    sel = selectors.DefaultSelector()
    for port in switch.ports[1:]:
        sel.register(port.sock, selectors.EVENT_READ, port)
    if control:
        if os.path.exists(control):
            os.unlink(control)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(control)
        listener.listen()
        listener.setblocking(False)
        sel.register(listener, selectors.EVENT_READ, "accept")
    next_hello = next_tick = 0.0
    waiting = False
    while True:
        for key, _ in sel.select(0.001 if waiting else 0.05):
            if isinstance(key.data, Port):
                read_port(switch, key.data)
            elif key.data == "accept":
                conn, _ = key.fileobj.accept()
                conn.settimeout(2)
                sel.register(conn, selectors.EVENT_READ, bytearray())
            else:
                serve_control(switch, sel, key.fileobj, key.data)
        waiting = switch.drain()
        now = time.monotonic()
        if now >= next_hello:
            next_hello = now + HELLO_S
            switch.tick(now)
        elif now >= next_tick:
            next_tick = now + 0.05
            for port in switch.ports[1:]:
                if port.bounce[1] and now >= port.bounce[0]:
                    if now >= port.bounce[1]:
                        port.bounce = (0.0, 0.0)
                    switch.update_link(port, now)
                    switch.send_hello(port, now)
            if switch.trap_left and now >= switch.trap_at:
                switch.send_trap(now)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--port", action="append", default=[], metavar="N,LOCAL,REMOTE")
    ap.add_argument("--dir", help="sockets sw-N.sock and node-N.sock in this folder")
    ap.add_argument("--ports", type=int, default=0, help="how many, with --dir")
    ap.add_argument("--guid", type=lambda s: int(s, 0), default=0x0002C90200000001)
    ap.add_argument("--desc", default="simulated switch")
    ap.add_argument("--control", help="unix stream socket for commands")
    args = ap.parse_args()
    sockets = {n: (os.path.join(args.dir, f"sw-{n}.sock"), os.path.join(args.dir, f"node-{n}.sock"))
               for n in range(1, args.ports + 1)} if args.dir else {}
    for text in args.port:
        num, local, remote = text.split(",")
        sockets[int(num)] = (local, remote)
    if not sockets or sorted(sockets) != list(range(1, len(sockets) + 1)) or len(sockets) > 254:
        ap.error("the ports are numbered from 1 without a gap, 254 at most")
    ports = [Port(0)] + [Port(n, *sockets[n]) for n in sorted(sockets)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    run(Switch(args.guid, args.desc, ports), args.control)


if __name__ == "__main__":
    main()
