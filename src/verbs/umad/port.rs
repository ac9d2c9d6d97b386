//! The system calls of umad: bytes come in, bytes go out.
//!
//! All calls are libc's plain `open`, `read`, `write`, `ioctl`, `poll`, `close`:
//! a simulator of management datagrams (umad2sim) interposes exactly these,
//! sysfs included, and would not see the `open64` of the standard library.
#![expect(unsafe_code, reason = "plain libc calls on /dev/infiniband/umadN")]

use std::ffi::{CString, c_int};
use std::io;
use std::time::{Duration, Instant};

use nix::libc;

use super::super::mad::{MAD_BYTES, Mad};
use crate::name::DeviceName;

/// `IB_UMAD_MAX_PORTS` in the kernel is 64; minors grow no further.
const MAX_UMAD: u32 = 64;

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

/// The number of the umad device of a port: `/dev/infiniband/umadN`.
pub(super) fn find(device: &DeviceName, port: u8) -> Option<u32> {
    let file = |n: u32, name: &str| read_small(&format!("/sys/class/infiniband_mad/umad{n}/{name}"));
    (0..MAX_UMAD).find(|n| {
        file(*n, "ibdev").is_some_and(|text| text == device.as_str())
            && file(*n, "port").is_some_and(|text| text == port.to_string())
    })
}

/// A message received.
pub(super) struct Received {
    /// 0, or the errno with which the kernel gave the query back.
    pub(super) status: u32,
    /// What came.
    pub(super) mad: Mad,
}

/// An open umad device. The agents registered with it end with it.
#[derive(Debug)]
pub(super) struct Port {
    fd: c_int,
    /// 64 bytes with the P_Key index, 56 without.
    header_bytes: usize,
}

impl Port {
    pub(super) fn open(path: &str) -> io::Result<Self> {
        Ok(Self { fd: open(path, libc::O_RDWR | libc::O_NONBLOCK)?, header_bytes: 64 })
    }

    /// Registers an agent that only asks; the number is its name in [`Port::send`].
    pub(super) fn register(&mut self, class: u8) -> io::Result<u32> {
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
        Err(io::Error::last_os_error())
    }

    pub(super) fn send(&self, agent: u32, dlid: u16, query: &Mad, timeout: Duration) -> io::Result<()> {
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
        Err(last_error_or_short(written))
    }

    /// The next message before the deadline, or `None`.
    pub(super) fn receive(&self, deadline: Instant) -> io::Result<Option<Received>> {
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
                    error => return Err(error),
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
                    error => return Err(error),
                },
            }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: fd was opened by us and is closed only here.
        unsafe { libc::close(self.fd) };
    }
}

fn last_error_or_short(result: isize) -> io::Error {
    if result < 0 { io::Error::last_os_error() } else { io::Error::from(io::ErrorKind::UnexpectedEof) }
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
