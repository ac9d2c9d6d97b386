//! Work requests and their completions: the hot path.
//!
//! Lists of work requests are laid out once; posting one and polling for it
//! allocates nothing and calls the driver directly.
#![expect(unsafe_code, reason = "calls the driver through the context's table")]

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;

use ibverbs_sys as ffi;

use super::error::VerbsError;
use super::memory::{LocalSpan, RemoteSpan};
use super::qp::{Qp, Rts};

/// Completions taken at a time.
const BATCH: usize = 16;

/// What a work request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Local memory goes to the peer.
    Write,
    /// The peer's memory comes here.
    Read,
}

impl Operation {
    /// Its name, for messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Write => "RDMA WRITE",
            Self::Read => "RDMA READ",
        }
    }
}

type PostSend = unsafe extern "C" fn(*mut ffi::ibv_qp, *mut ffi::ibv_send_wr, *mut *mut ffi::ibv_send_wr) -> c_int;
type PollCq = unsafe extern "C" fn(*mut ffi::ibv_cq, c_int, *mut ffi::ibv_wc) -> c_int;

/// The send side of a queue pair with a list of equal work requests, ready to post.
pub struct Sender<'qp> {
    qp: &'qp Qp<Rts>,
    operation: Operation,
    post_send: PostSend,
    poll_cq: PollCq,
    // Vectors, not boxes: the requests point to each other and to the segment.
    requests: Vec<ffi::ibv_send_wr>,
    _segment: Vec<ffi::ibv_sge>,
    completions: Box<[MaybeUninit<ffi::ibv_wc>; BATCH]>,
}

impl<'qp> Sender<'qp> {
    /// Lays out `list` requests, each for all of `local`.
    ///
    /// # Errors
    /// [`VerbsError::Call`] if the driver lacks posting or polling.
    pub fn new(
        qp: &'qp Qp<Rts>,
        operation: Operation,
        local: LocalSpan,
        remote: RemoteSpan,
        list: usize,
    ) -> Result<Self, VerbsError> {
        let context = qp.pd().context();
        // SAFETY: the context is open; its table was filled when it was opened.
        let ops = unsafe { context.raw().as_ref() }.ops;
        let (Some(post_send), Some(poll_cq)) = (ops.post_send, ops.poll_cq) else {
            let source = io::Error::from(io::ErrorKind::Unsupported);
            return Err(VerbsError::Call { verb: "ibv_post_send", device: context.device().clone(), source });
        };
        let mut segment = vec![ffi::ibv_sge { addr: local.addr, length: local.bytes, lkey: local.lkey }];
        let segment_at = segment.as_mut_ptr();
        let mut requests: Vec<ffi::ibv_send_wr> =
            (0..list.max(1)).map(|_| request(operation, segment_at, remote)).collect();
        let first = requests.as_mut_ptr();
        for at in 1..requests.len() {
            // SAFETY: `at` is inside of the list, whose memory doesn't move.
            requests[at - 1].next = unsafe { first.add(at) };
        }
        let completions = Box::new([const { MaybeUninit::uninit() }; BATCH]);
        Ok(Self { qp, operation, post_send, poll_cq, requests, _segment: segment, completions })
    }

    /// The requests of a full list.
    #[must_use]
    pub fn list(&self) -> usize {
        self.requests.len()
    }

    /// Posts the first `count` requests of the list (at least one, at most all).
    /// The last of them is signalled, and its completion carries `token`.
    ///
    /// # Errors
    /// [`VerbsError::Call`].
    pub fn post(&mut self, count: usize, token: u64) -> Result<(), VerbsError> {
        let last = count.clamp(1, self.requests.len()) - 1;
        let end = &mut self.requests[last];
        let next = std::mem::replace(&mut end.next, std::ptr::null_mut());
        end.wr_id = token;
        end.send_flags = ffi::ibv_send_flags::IBV_SEND_SIGNALED.0;
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is alive; the chain ends at `last`, and each request
        // points to the segment, which lives as long as the list.
        let result = unsafe { (self.post_send)(self.qp.raw().as_ptr(), self.requests.as_mut_ptr(), &raw mut bad) };
        let end = &mut self.requests[last];
        end.next = next;
        end.send_flags = 0;
        if result == 0 { Ok(()) } else { self.qp.pd().context().check("ibv_post_send", result) }
    }

    /// Takes what has completed: the token of the newest, or `None` when nothing has.
    ///
    /// # Errors
    /// [`VerbsError::Completion`] for a request that failed, [`VerbsError::Call`].
    pub fn poll(&mut self) -> Result<Option<u64>, VerbsError> {
        let entries = self.completions.as_mut_ptr().cast::<ffi::ibv_wc>();
        // SAFETY: the queue is alive; the array has BATCH entries.
        let got = unsafe { (self.poll_cq)(self.qp.cq().as_ptr(), BATCH as c_int, entries) };
        if got == 0 {
            return Ok(None);
        }
        let Ok(got) = usize::try_from(got) else {
            return self.qp.pd().context().check("ibv_poll_cq", got).map(|()| None);
        };
        let mut newest = None;
        for completion in &self.completions[..got.min(BATCH)] {
            // SAFETY: the driver filled the first `got` entries.
            let completion = unsafe { completion.assume_init_ref() };
            if let Some((status, vendor_err)) = completion.error() {
                let device = self.qp.pd().context().device().clone();
                return Err(VerbsError::Completion { operation: self.operation.as_str(), device, status, vendor_err });
            }
            newest = Some(completion.wr_id());
        }
        Ok(newest)
    }

    /// The error for a request that never completes.
    #[must_use]
    pub fn stalled(&self, after: std::time::Duration) -> VerbsError {
        VerbsError::Stalled {
            operation: self.operation.as_str(),
            device: self.qp.pd().context().device().clone(),
            after,
        }
    }
}

fn request(operation: Operation, segment: *mut ffi::ibv_sge, remote: RemoteSpan) -> ffi::ibv_send_wr {
    let mut request = ffi::ibv_send_wr {
        sg_list: segment,
        num_sge: 1,
        opcode: match operation {
            Operation::Write => ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE,
            Operation::Read => ffi::ibv_wr_opcode::IBV_WR_RDMA_READ,
        },
        ..ffi::ibv_send_wr::default()
    };
    request.wr.rdma = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr: remote.addr, rkey: remote.rkey };
    request
}
