//! Subnet management queries through the kernel's `ib_umad`.
//!
//! A device, a port and an attribute go in, the answer's MAD comes out, or an
//! error that names the device, the step and the errno. It never sets
//! anything in the fabric, and never waits longer than it was told.
//!
//! All calls are libc's plain `open`, `read`, `write`, `ioctl`, `poll`, `close`:
//! a simulator of management datagrams (umad2sim) interposes exactly these,
//! sysfs included, and would not see the `open64` of the standard library.
#![expect(unsafe_code, reason = "plain libc calls on /dev/infiniband/umadN")]

use std::ffi::{CString, c_int};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::libc;
use thiserror::Error;

use super::mad::{self, CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, MAD_BYTES, Mad};
use crate::name::DeviceName;

/// `IB_UMAD_MAX_PORTS` in the kernel is 64; minors grow no further.
const MAX_UMAD: u32 = 64;
/// How much longer than the kernel we wait, so that its own timeout is the one reported.
const GRACE: Duration = Duration::from_millis(100);

/// `_IOWR(0x1b, 4, struct ib_user_mad_reg_req2)`: in the kernel since 3.19, and
/// implies the 64-byte header, which carries a P_Key index.
const REGISTER_AGENT2: u64 = 0xc028_1b04;
/// `_IOWR(0x1b, 1, struct ib_user_mad_reg_req)`: leaves the header at 56 bytes.
const REGISTER_AGENT: u64 = 0xc01c_1b01;

/// `struct ib_user_mad_reg_req2` of `rdma/ib_user_mad.h`.
#[repr(C)]
#[derive(Default)]
struct RegisterRequest2 {
    id: u32,
    qpn: u32,
    class: u8,
    class_version: u8,
    reserved: u16,
    flags: u32,
    method_mask: [u64; 2],
    oui: u32,
    rmpp_version: u8,
    reserved2: [u8; 3],
}

/// `struct ib_user_mad_reg_req`, which umad2sim knows alone.
#[repr(C)]
#[derive(Default)]
struct RegisterRequest {
    id: u32,
    method_mask: [u32; 4],
    qpn: u8,
    class: u8,
    class_version: u8,
    oui: [u8; 3],
    rmpp_version: u8,
}

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
    fd: c_int,
    /// 64 bytes with the P_Key index, 56 without.
    header_bytes: usize,
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
        let found = (0..MAX_UMAD).find(|n| belongs(*n, device, port));
        let Some(n) = found else {
            return Err(UmadError::NoDevice { device: device.clone(), port });
        };
        let path = PathBuf::from(format!("/dev/infiniband/umad{n}"));
        let fd = open(&format!("/dev/infiniband/umad{n}"), libc::O_RDWR | libc::O_NONBLOCK).map_err(|source| {
            UmadError::Call { device: device.clone(), port, operation: "open", path: path.clone(), source }
        })?;
        let mut umad = Self {
            device: device.clone(),
            port,
            path,
            fd,
            header_bytes: 64,
            agent_lid: 0,
            agent_directed: 0,
            transaction: std::process::id() << 12,
        };
        umad.agent_lid = umad.register(CLASS_SUBN_LID)?;
        umad.agent_directed = umad.register(CLASS_SUBN_DIRECTED)?;
        Ok(umad)
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
        self.send(agent, dlid, query, timeout)?;
        loop {
            match self.receive(deadline)? {
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

    fn register(&mut self, class: u8) -> Result<u32, UmadError> {
        let mut request = RegisterRequest2 { class, class_version: 1, ..RegisterRequest2::default() };
        // SAFETY: `request` has the layout of struct ib_user_mad_reg_req2 and outlives the call.
        if unsafe { libc::ioctl(self.fd, REGISTER_AGENT2 as _, &raw mut request) } == 0 {
            return Ok(request.id);
        }
        let mut request = RegisterRequest { class, class_version: 1, ..RegisterRequest::default() };
        // SAFETY: `request` has the layout of struct ib_user_mad_reg_req and outlives the call.
        if unsafe { libc::ioctl(self.fd, REGISTER_AGENT as _, &raw mut request) } == 0 {
            self.header_bytes = 56;
            return Ok(request.id);
        }
        Err(self.call_error("register an agent with", io::Error::last_os_error()))
    }

    fn send(&self, agent: u32, dlid: u16, query: &Mad, timeout: Duration) -> Result<(), UmadError> {
        let mut message = vec![0_u8; self.header_bytes + MAD_BYTES];
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1);
        message[0..4].copy_from_slice(&agent.to_ne_bytes());
        message[8..12].copy_from_slice(&timeout_ms.to_ne_bytes());
        message[16..20].copy_from_slice(&(MAD_BYTES as u32).to_ne_bytes());
        // qpn 0 and qkey 0 are those of subnet management; then the LID, big-endian.
        message[28..30].copy_from_slice(&dlid.to_be_bytes());
        message[self.header_bytes..].copy_from_slice(query.bytes());
        // SAFETY: the buffer is valid for its own length.
        let written = unsafe { libc::write(self.fd, message.as_ptr().cast(), message.len()) };
        if usize::try_from(written).is_ok_and(|n| n == message.len()) {
            return Ok(());
        }
        Err(self.call_error("send by", last_error_or_short(written)))
    }

    /// The next message before the deadline, or `None`.
    fn receive(&self, deadline: Instant) -> Result<Option<Received>, UmadError> {
        let mut buffer = [0_u8; 64 + MAD_BYTES];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ms = c_int::try_from(left.as_millis()).unwrap_or(c_int::MAX);
            let mut poll = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one pollfd, valid for the call.
            match unsafe { libc::poll(&raw mut poll, 1, left_ms) } {
                0 => return Ok(None),
                n if n < 0 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => continue,
                    error => return Err(self.call_error("wait on", error)),
                },
                _ => {}
            }
            let length = self.header_bytes + MAD_BYTES;
            // SAFETY: `length` is at most the size of the buffer.
            let got = unsafe { libc::read(self.fd, buffer.as_mut_ptr().cast(), length) };
            match usize::try_from(got) {
                Ok(n) if n >= self.header_bytes => {
                    let status = u32::from_ne_bytes([buffer[4], buffer[5], buffer[6], buffer[7]]);
                    let mad = Mad::from_bytes(&buffer[self.header_bytes..n.min(length)]);
                    return Ok(Some(Received { status, mad }));
                }
                _ => match last_error_or_short(got) {
                    error if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                    error => return Err(self.call_error("read from", error)),
                },
            }
        }
    }
}

impl Drop for Umad {
    fn drop(&mut self) {
        // SAFETY: fd was opened by us and is closed only here. Agents go with it.
        unsafe { libc::close(self.fd) };
    }
}

struct Received {
    /// 0, or the errno with which the kernel gave the query back.
    status: u32,
    mad: Mad,
}

fn last_error_or_short(result: isize) -> io::Error {
    if result < 0 { io::Error::last_os_error() } else { io::Error::from(io::ErrorKind::UnexpectedEof) }
}

fn belongs(n: u32, device: &DeviceName, port: u8) -> bool {
    read_small(&format!("/sys/class/infiniband_mad/umad{n}/ibdev")).is_some_and(|name| name == device.as_str())
        && read_small(&format!("/sys/class/infiniband_mad/umad{n}/port")).is_some_and(|text| text == port.to_string())
}

fn read_small(path: &str) -> Option<String> {
    let fd = open(path, libc::O_RDONLY).ok()?;
    let mut buffer = [0_u8; 128];
    // SAFETY: the buffer is valid for its own length; fd is open.
    let got = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    // SAFETY: fd was opened above and is closed once.
    unsafe { libc::close(fd) };
    let length = usize::try_from(got).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned())
}

fn open(path: &str, flags: c_int) -> io::Result<c_int> {
    let path = CString::new(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}
