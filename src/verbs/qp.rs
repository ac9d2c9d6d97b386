//! A reliable-connection queue pair and its completion queue.
//!
//! The states are types: work is posted only to a [`Qp<Rts>`], and each state
//! is reached from the one before. What a peer must know goes in and out as
//! plain numbers; how they travel is not decided here.
#![expect(unsafe_code, reason = "calls libibverbs")]

use std::marker::PhantomData;
use std::net::Ipv6Addr;
use std::ptr::NonNull;
use std::rc::Rc;

use ibverbs_sys as ffi;

use super::context::Pd;
use super::error::VerbsError;

/// Local ACK timeout, as perftest has it: 4.096 us x 2^14, 67 ms.
const ACK_TIMEOUT: u8 = 14;
/// Retries before a peer is given up. Not 7: on soft-RoCE that never ends.
const RETRY_CNT: u8 = 6;
/// How long a peer asks us to wait when it isn't ready: 12 is 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;
/// 7 would mean without end.
const RNR_RETRY: u8 = 6;

/// Initialised: it knows its port.
pub enum Init {}
/// Ready to receive: it knows its peer.
pub enum Rtr {}
/// Ready to send.
pub enum Rts {}

/// How packets find the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// InfiniBand, within the subnet.
    Lid(u16),
    /// RoCE.
    Gid {
        /// Our own GID's index.
        sgid_index: u8,
        /// The peer's GID.
        dgid: Ipv6Addr,
        /// The IP header's traffic class: DSCP x 4 plus the ECN bits.
        traffic_class: u8,
    },
}

/// What the queue pair must know of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its queue pair number.
    pub qpn: u32,
    /// The first packet sequence number it sends.
    pub psn: u32,
    /// The way to it.
    pub route: Route,
    /// Service level; 0 unless the fabric's routing needs another.
    pub sl: u8,
    /// Path MTU as `enum ibv_mtu`, the smaller of both ports.
    pub mtu: u32,
    /// READs of the peer that we answer at a time.
    pub reads_in: u8,
}

struct Handle {
    raw: NonNull<ffi::ibv_qp>,
    cq: NonNull<ffi::ibv_cq>,
    pd: Rc<Pd>,
    port: u8,
    depth: u32,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let functions = self.pd.context().functions();
        // SAFETY: both were created by us and are destroyed once, the user of the queue first.
        unsafe {
            (functions.ibv_destroy_qp)(self.raw.as_ptr());
            (functions.ibv_destroy_cq)(self.cq.as_ptr());
        }
    }
}

/// A queue pair in state `S`.
pub struct Qp<S> {
    handle: Handle,
    state: PhantomData<S>,
}

impl<S> Qp<S> {
    /// Its number, for the peer.
    #[must_use]
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { self.handle.raw.as_ref() }.qp_num
    }

    /// Work requests that fit into the send queue.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.handle.depth
    }

    /// The protection domain it belongs to.
    #[must_use]
    pub fn pd(&self) -> &Rc<Pd> {
        &self.handle.pd
    }

    pub(super) fn raw(&self) -> NonNull<ffi::ibv_qp> {
        self.handle.raw
    }

    pub(super) fn cq(&self) -> NonNull<ffi::ibv_cq> {
        self.handle.cq
    }

    fn modify<T>(
        self,
        verb: &'static str,
        attr: &mut ffi::ibv_qp_attr,
        mask: ffi::ibv_qp_attr_mask,
    ) -> Result<Qp<T>, VerbsError> {
        let context = self.handle.pd.context();
        let mask = i32::try_from(mask.0).unwrap_or(0);
        // SAFETY: the queue pair is alive, `attr` is a whole ibv_qp_attr.
        let result = unsafe { (context.functions().ibv_modify_qp)(self.handle.raw.as_ptr(), attr, mask) };
        context.check(verb, result)?;
        Ok(Qp { handle: self.handle, state: PhantomData })
    }
}

impl Qp<Init> {
    /// Creates a queue pair with a send queue of `depth` and takes it to INIT on a port.
    ///
    /// # Errors
    /// [`VerbsError::Call`].
    pub fn create(pd: &Rc<Pd>, port: u8, pkey_index: u16, depth: u32) -> Result<Self, VerbsError> {
        let context = pd.context();
        let functions = context.functions();
        let entries = i32::try_from(depth).unwrap_or(i32::MAX);
        let (none, no_channel) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the context is open; no completion channel, no user context.
        let cq = unsafe { (functions.ibv_create_cq)(context.raw().as_ptr(), entries, none, no_channel, 0) };
        let cq = context.non_null("ibv_create_cq", cq)?;
        let cap = ffi::ibv_qp_cap {
            max_send_wr: depth,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            ..ffi::ibv_qp_cap::default()
        };
        let mut init = ffi::ibv_qp_init_attr {
            send_cq: cq.as_ptr(),
            recv_cq: cq.as_ptr(),
            cap,
            qp_type: ffi::ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
            ..ffi::ibv_qp_init_attr::default()
        };
        // SAFETY: the protection domain and the queue are alive.
        let raw = unsafe { (functions.ibv_create_qp)(pd.raw().as_ptr(), &raw mut init) };
        let raw = match context.non_null("ibv_create_qp", raw) {
            Ok(raw) => raw,
            Err(error) => {
                // SAFETY: created above, used by nobody.
                unsafe { (functions.ibv_destroy_cq)(cq.as_ptr()) };
                return Err(error);
            }
        };
        let reset: Qp<()> = Qp { handle: Handle { raw, cq, pd: Rc::clone(pd), port, depth }, state: PhantomData };
        let access = ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        let mut attr = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_INIT,
            pkey_index,
            port_num: port,
            qp_access_flags: access.0,
            ..ffi::ibv_qp_attr::default()
        };
        let mask = ffi::ibv_qp_attr_mask::IBV_QP_STATE
            | ffi::ibv_qp_attr_mask::IBV_QP_PKEY_INDEX
            | ffi::ibv_qp_attr_mask::IBV_QP_PORT
            | ffi::ibv_qp_attr_mask::IBV_QP_ACCESS_FLAGS;
        reset.modify("ibv_modify_qp to INIT", &mut attr, mask)
    }

    /// Takes it to RTR: from now on the peer's requests are served.
    ///
    /// # Errors
    /// [`VerbsError::Call`]; EINVAL there means that the GIDs of both ends don't go together.
    pub fn ready_to_receive(self, peer: &Peer) -> Result<Qp<Rtr>, VerbsError> {
        let mut attr = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_RTR,
            path_mtu: peer.mtu,
            dest_qp_num: peer.qpn,
            rq_psn: peer.psn,
            max_dest_rd_atomic: peer.reads_in,
            min_rnr_timer: MIN_RNR_TIMER,
            ah_attr: address(peer, self.handle.port),
            ..ffi::ibv_qp_attr::default()
        };
        let mask = ffi::ibv_qp_attr_mask::IBV_QP_STATE
            | ffi::ibv_qp_attr_mask::IBV_QP_AV
            | ffi::ibv_qp_attr_mask::IBV_QP_PATH_MTU
            | ffi::ibv_qp_attr_mask::IBV_QP_DEST_QPN
            | ffi::ibv_qp_attr_mask::IBV_QP_RQ_PSN
            | ffi::ibv_qp_attr_mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | ffi::ibv_qp_attr_mask::IBV_QP_MIN_RNR_TIMER;
        self.modify("ibv_modify_qp to RTR", &mut attr, mask)
    }
}

impl Qp<Rtr> {
    /// Takes it to RTS. `psn` is the first packet sequence number we send,
    /// `reads_out` how many READs we keep in flight: at most what the peer answers.
    ///
    /// # Errors
    /// [`VerbsError::Call`].
    pub fn ready_to_send(self, psn: u32, reads_out: u8) -> Result<Qp<Rts>, VerbsError> {
        let mut attr = ffi::ibv_qp_attr {
            qp_state: ffi::ibv_qp_state::IBV_QPS_RTS,
            sq_psn: psn,
            max_rd_atomic: reads_out,
            timeout: ACK_TIMEOUT,
            retry_cnt: RETRY_CNT,
            rnr_retry: RNR_RETRY,
            ..ffi::ibv_qp_attr::default()
        };
        let mask = ffi::ibv_qp_attr_mask::IBV_QP_STATE
            | ffi::ibv_qp_attr_mask::IBV_QP_SQ_PSN
            | ffi::ibv_qp_attr_mask::IBV_QP_MAX_QP_RD_ATOMIC
            | ffi::ibv_qp_attr_mask::IBV_QP_TIMEOUT
            | ffi::ibv_qp_attr_mask::IBV_QP_RETRY_CNT
            | ffi::ibv_qp_attr_mask::IBV_QP_RNR_RETRY;
        self.modify("ibv_modify_qp to RTS", &mut attr, mask)
    }
}

fn address(peer: &Peer, port: u8) -> ffi::ibv_ah_attr {
    let mut ah = ffi::ibv_ah_attr { sl: peer.sl, port_num: port, ..ffi::ibv_ah_attr::default() };
    match peer.route {
        Route::Lid(lid) => ah.dlid = lid,
        Route::Gid { sgid_index, dgid, traffic_class } => {
            ah.is_global = 1;
            ah.grh.dgid = ffi::ibv_gid { raw: dgid.octets() };
            ah.grh.sgid_index = sgid_index;
            // 64, as perftest and the RDMA connection manager have it.
            ah.grh.hop_limit = 64;
            ah.grh.traffic_class = traffic_class;
        }
    }
    ah
}
