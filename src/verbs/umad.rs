//! Subnet management queries through the kernel's `ib_umad`.
//!
//! A device, a port and an attribute go in, the answer's MAD comes out, or an
//! error that names the device, the step and the errno. It never sets
//! anything in the fabric, and never waits longer than it was told.
//!
//! It needs no library: the system calls are in `port`.

mod port;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use thiserror::Error;

use self::port::{Port, Received};
use super::mad::{self, CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, Mad};
use crate::name::DeviceName;

/// How much longer than the kernel we wait, so that its own timeout is the one reported.
const GRACE: Duration = Duration::from_millis(100);

/// Why a query has no answer.
#[derive(Debug, Error)]
pub enum UmadError {
    /// No umad device belongs to the port.
    #[error("{device} port {port} has no umad device: is the module ib_umad loaded, and is the device there?")]
    NoDevice {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
    },
    /// A system call failed.
    #[error("{device} port {port}: cannot {operation} {path}")]
    Call {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// What was tried: "open", "register an agent with", ...
        operation: &'static str,
        /// The umad device file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No answer came in time.
    #[error("{device} port {port}: no answer from {target} to attribute {attribute:#06x} within {} ms", timeout.as_millis())]
    Timeout {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// Who was asked: `LID 4`, `path 0,1,17`.
        target: String,
        /// What was asked for.
        attribute: u16,
        /// How long it was awaited.
        timeout: Duration,
    },
    /// The other side answered, and refused.
    #[error("{device} port {port}: {target} refused attribute {attribute:#06x} with status {status:#06x}, {}", mad::status_meaning(*status))]
    Status {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// Who was asked.
        target: String,
        /// What was asked for.
        attribute: u16,
        /// The MAD's status field.
        status: u16,
    },
    /// More hops than a directed route can have.
    #[error("a directed route of {hops} hops: the most is {}", mad::MAX_HOPS)]
    PathTooLong {
        /// The hops asked for.
        hops: usize,
    },
}

impl UmadError {
    /// Whether nobody answered, which another try may change.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }
}

/// An open port, with an agent for each of the two ways to route a query.
#[derive(Debug)]
pub struct Umad {
    device: DeviceName,
    port: u8,
    path: PathBuf,
    handle: Port,
    agent_lid: u32,
    agent_directed: u32,
    transaction: u32,
}

impl Umad {
    /// Opens the umad device of a port and registers with it. Needs root, or
    /// write permission on `/dev/infiniband/umadN`.
    ///
    /// # Errors
    /// [`UmadError::NoDevice`] and [`UmadError::Call`].
    pub fn open(device: &DeviceName, port: u8) -> Result<Self, UmadError> {
        let Some(n) = port::find(device, port) else {
            return Err(UmadError::NoDevice { device: device.clone(), port });
        };
        let path = format!("/dev/infiniband/umad{n}");
        let call = |operation, source| UmadError::Call {
            device: device.clone(),
            port,
            operation,
            path: PathBuf::from(&path),
            source,
        };
        let mut handle = Port::open(&path).map_err(|source| call("open", source))?;
        let mut register = |class| handle.register(class).map_err(|source| call("register an agent with", source));
        let (agent_lid, agent_directed) = (register(CLASS_SUBN_LID)?, register(CLASS_SUBN_DIRECTED)?);
        // Different from other processes' at the same time, and from what came before a reuse of the agent.
        let transaction = std::process::id() << 12;
        Ok(Self { device: device.clone(), port, path: path.into(), handle, agent_lid, agent_directed, transaction })
    }

    /// SubnGet to the node that has LID `dlid`. The answer has status 0.
    ///
    /// # Errors
    /// [`UmadError::Timeout`], [`UmadError::Status`], [`UmadError::Call`].
    pub fn get(&mut self, dlid: u16, attribute: u16, modifier: u32, timeout: Duration) -> Result<Mad, UmadError> {
        let query = Mad::subn_get(attribute, modifier, self.next_transaction());
        self.ask(self.agent_lid, dlid, &query, &|| format!("LID {dlid}"), timeout)
    }

    /// SubnGet along a directed route: `path` holds the port to leave by at
    /// each hop, from the local port on; an empty one asks the local port itself.
    ///
    /// # Errors
    /// [`UmadError::PathTooLong`], [`UmadError::Timeout`], [`UmadError::Status`], [`UmadError::Call`].
    pub fn get_directed(
        &mut self,
        path: &[u8],
        attribute: u16,
        modifier: u32,
        timeout: Duration,
    ) -> Result<Mad, UmadError> {
        let query = Mad::subn_get_directed(path, attribute, modifier, self.next_transaction())
            .ok_or(UmadError::PathTooLong { hops: path.len() })?;
        let target = || path.iter().fold("path 0".to_owned(), |text, hop| format!("{text},{hop}"));
        self.ask(self.agent_directed, 0xffff, &query, &target, timeout)
    }

    fn next_transaction(&mut self) -> u32 {
        self.transaction = self.transaction.wrapping_add(1);
        self.transaction
    }

    fn ask(
        &self,
        agent: u32,
        dlid: u16,
        query: &Mad,
        target: &dyn Fn() -> String,
        timeout: Duration,
    ) -> Result<Mad, UmadError> {
        let (device, port, attribute) = (self.device.clone(), self.port, query.attribute());
        let deadline = Instant::now() + timeout + GRACE;
        self.handle.send(agent, dlid, query, timeout).map_err(|source| self.call_error("send by", source))?;
        loop {
            match self.handle.receive(deadline).map_err(|source| self.call_error("receive from", source))? {
                Some(Received { status: 0, mad }) if mad.answers(query) => {
                    let status = mad.status();
                    if status == 0 {
                        return Ok(mad);
                    }
                    return Err(UmadError::Status { device, port, target: target(), attribute, status });
                }
                // The kernel hands the query back when its timeout ends. Anything
                // else is a late answer to an earlier query.
                Some(Received { status, mad }) if status == 0 || mad.transaction() != query.transaction() => {}
                Some(_) | None => {
                    return Err(UmadError::Timeout { device, port, target: target(), attribute, timeout });
                }
            }
        }
    }

    fn call_error(&self, operation: &'static str, source: io::Error) -> UmadError {
        UmadError::Call { device: self.device.clone(), port: self.port, operation, path: self.path.clone(), source }
    }
}
