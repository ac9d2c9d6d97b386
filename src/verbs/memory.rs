//! Registered memory.
//!
//! A size comes in, memory that the device may read and write goes out. The
//! peer can change it at any moment, so it is never lent as a slice: words are
//! read and written one by one.
#![expect(unsafe_code, reason = "allocates, registers and shares memory with a device")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::rc::Rc;

use ibverbs_sys as ffi;
use nix::sys::resource::{Resource, getrlimit};

use super::context::Pd;
use super::error::VerbsError;

/// Alignment of the memory, in bytes: a page, as perftest has it.
const ALIGNMENT: usize = 4096;

/// A range of this process's registered memory, for a work request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalSpan {
    pub(super) addr: u64,
    pub(super) lkey: u32,
    pub(super) bytes: u32,
}

/// A range of the peer's registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSpan {
    /// The address in the peer's process.
    pub addr: u64,
    /// The key that opens it.
    pub rkey: u32,
}

/// A memory region that the peer may read and write.
pub struct Mr {
    raw: NonNull<ffi::ibv_mr>,
    memory: NonNull<u64>,
    layout: Layout,
    pd: Rc<Pd>,
}

impl Mr {
    /// Allocates and registers `bytes` zero bytes, rounded up to a page.
    ///
    /// # Errors
    /// [`VerbsError::Memlock`], [`VerbsError::Call`], [`VerbsError::Range`] for a size that no memory has.
    pub fn allocate(pd: &Rc<Pd>, bytes: usize) -> Result<Self, VerbsError> {
        let context = pd.context();
        let impossible = || VerbsError::Range { offset: 0, bytes, length: 0 };
        let layout = bytes
            .max(1)
            .checked_next_multiple_of(ALIGNMENT)
            .and_then(|size| Layout::from_size_align(size, ALIGNMENT).ok())
            .ok_or_else(impossible)?;
        // SAFETY: the layout isn't empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory.cast::<u64>()).ok_or_else(impossible)?;
        let access = ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
            | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
            | ffi::ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        let flags = i32::try_from(access.0).unwrap_or(0);
        // SAFETY: the memory is ours for its whole layout and outlives the region.
        let raw = unsafe {
            (context.functions().ibv_reg_mr)(pd.raw().as_ptr(), memory.as_ptr().cast(), layout.size(), flags)
        };
        match context.non_null("ibv_reg_mr", raw) {
            Ok(raw) => Ok(Self { raw, memory, layout, pd: Rc::clone(pd) }),
            Err(error) => {
                // SAFETY: allocated above with this layout, and registered with nobody.
                unsafe { dealloc(memory.as_ptr().cast(), layout) };
                Err(explain(error, layout.size()))
            }
        }
    }

    /// A range of the region to send from or receive into.
    ///
    /// # Errors
    /// [`VerbsError::Range`].
    pub fn span(&self, offset: usize, bytes: usize) -> Result<LocalSpan, VerbsError> {
        let outside = VerbsError::Range { offset, bytes, length: self.layout.size() };
        match (offset.checked_add(bytes), u32::try_from(bytes)) {
            (Some(end), Ok(bytes)) if end <= self.layout.size() => {
                // SAFETY: the region is alive.
                let lkey = unsafe { self.raw.as_ref() }.lkey;
                Ok(LocalSpan { addr: self.addr() + offset as u64, lkey, bytes })
            }
            _ => Err(outside),
        }
    }

    /// The address of the first byte, as the peer must name it.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The key that opens it to the peer.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        // SAFETY: the region is alive.
        unsafe { self.raw.as_ref() }.rkey
    }

    /// Writes words, little-endian, from word `first` on; what is beyond the end is left out.
    pub fn fill(&mut self, first: usize, words: impl Iterator<Item = u64>) {
        for (at, word) in (first..self.layout.size() / 8).zip(words) {
            // SAFETY: `at` is inside of the memory; volatile, since the device reads it unseen.
            unsafe { self.memory.add(at).write_volatile(word.to_le()) };
        }
    }

    /// Reads words from word `first` to the end.
    pub fn words(&self, first: usize) -> impl Iterator<Item = u64> {
        (first..self.layout.size() / 8).map(|at| {
            // SAFETY: `at` is inside of the memory; volatile, since the device writes it unseen.
            u64::from_le(unsafe { self.memory.add(at).read_volatile() })
        })
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: registered by us; after this the device no longer touches the memory.
        let result = unsafe { (self.pd.context().functions().ibv_dereg_mr)(self.raw.as_ptr()) };
        // A region that stays registered keeps its memory: the device may still write there.
        if result == 0 {
            // SAFETY: allocated with this layout and no longer registered.
            unsafe { dealloc(self.memory.as_ptr().cast(), self.layout) };
        }
    }
}

fn explain(error: VerbsError, bytes: usize) -> VerbsError {
    match error {
        VerbsError::Call { device, source, .. } if source.raw_os_error() == Some(nix::libc::ENOMEM) => {
            let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
                Ok((nix::libc::RLIM_INFINITY, _)) => "unlimited".to_owned(),
                Ok((soft, _)) => format!("{soft} bytes"),
                Err(_) => "unknown".to_owned(),
            };
            VerbsError::Memlock { device, bytes, limit }
        }
        other => other,
    }
}
