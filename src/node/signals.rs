//! Keeps a signal from ending a transaction half way.
//!
//! A lost terminal or SSH connection (SIGHUP) changes nothing: the transaction
//! goes on to its end. SIGINT and SIGTERM ask it to stop, which it does before
//! its next change, by going back. During the way back they are not heard.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals held back from this thread, and from those that it starts, until the drop.
#[derive(Debug)]
pub(super) struct Held {
    before: SigSet,
    held: SigSet,
    arrived: SignalFd,
}

impl Held {
    /// Holds them back from now on.
    ///
    /// # Errors
    /// When the kernel gives no signalfd.
    pub(super) fn hold() -> io::Result<Self> {
        let mut held = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            held.add(signal);
        }
        let arrived = SignalFd::with_flags(&held, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let before = held.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
        Ok(Self { before, held, arrived })
    }

    /// The signal that asked to stop since this was last called.
    pub(super) fn asked_to_stop(&self) -> Option<Signal> {
        let mut asked = None;
        while let Ok(Some(signal)) = self.arrived.read_signal() {
            let signal = i32::try_from(signal.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok());
            asked = asked.or(signal.filter(|signal| *signal != Signal::SIGHUP));
        }
        asked
    }

    /// Does something meanwhile that a signal may end.
    ///
    /// # Errors
    /// When the kernel does not take the mask.
    pub(super) fn let_through<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.before.thread_set_mask()?;
        let done = work();
        self.held.thread_block()?;
        Ok(done)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What came too late to stop anything must not kill the report of how it went.
        let _ = self.asked_to_stop();
        let _ = self.before.thread_set_mask();
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::raise;

    use super::*;

    #[test]
    fn a_lost_connection_is_no_reason_to_stop_and_a_request_is() {
        let held = Held::hold().unwrap();
        raise(Signal::SIGHUP).unwrap();
        assert_eq!(held.asked_to_stop(), None);
        raise(Signal::SIGHUP).unwrap();
        raise(Signal::SIGTERM).unwrap();
        assert_eq!(held.asked_to_stop(), Some(Signal::SIGTERM));
        assert_eq!(held.asked_to_stop(), None);
        raise(Signal::SIGINT).unwrap();
        drop(held);
    }
}
