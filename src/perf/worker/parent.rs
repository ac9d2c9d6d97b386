//! The side of the one who starts a worker.
//!
//! A request and a deadline come in, the reply goes out, or an error. It never
//! waits for a worker without a deadline: one that hangs in the kernel is
//! killed, left alone and reported.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::super::model::{Check, Endpoint, Fault, Open, Outcome, Reply, Request, Run};
use super::super::pattern::Checked;
use super::super::snapshot::Snapshot;
use super::SUBCOMMAND;

/// How long a worker may take to end after `close` or SIGKILL.
const END: Duration = Duration::from_millis(500);
/// The kernel's name for the running program, valid even after an upgrade replaced the file.
const SELF: &str = "/proc/self/exe";

/// Why a worker did not answer as asked.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("cannot start a measuring process from {program}")]
    Start {
        /// The program.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// It answered that it could not.
    #[error("{}", .0.causes.join(": "))]
    Refused(Fault),
    /// It did not answer in time, and was killed.
    #[error("the measuring process {pid} did not answer {request} within {} s: {end}", deadline.as_secs_f64())]
    Late {
        /// Its process.
        pid: u32,
        /// The request.
        request: &'static str,
        /// How long it had.
        deadline: Duration,
        /// What became of it.
        end: End,
    },
    /// It ended without an answer.
    #[error("the measuring process {pid} ended instead of answering {request}: {end}")]
    Gone {
        /// Its process.
        pid: u32,
        /// The request.
        request: &'static str,
        /// What became of it.
        end: End,
    },
    /// It answered something else.
    #[error("the measuring process answered {request} with `{line}`")]
    Protocol {
        /// The request.
        request: &'static str,
        /// The line.
        line: String,
    },
}

impl WorkerError {
    /// Whether the peer is gone or unreachable, rather than this end broken.
    #[must_use]
    pub fn is_peer_lost(&self) -> bool {
        matches!(self, Self::Refused(fault) if fault.peer_lost)
    }
}

/// What became of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It ended.
    Exited(ExitStatus),
    /// It was killed and is still there: it hangs in the kernel.
    Stuck,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "{status}"),
            Self::Stuck => f.write_str(
                "it was killed and is still there, so it hangs in the kernel; \
                 the RDMA driver holds it, and a reboot may be needed",
            ),
        }
    }
}

/// A measuring process.
pub struct Worker {
    child: Child,
    // None once it was killed or closed.
    stdin: Option<ChildStdin>,
    replies: Receiver<io::Result<String>>,
}

impl Worker {
    /// Starts one from our own binary.
    ///
    /// # Errors
    /// [`WorkerError::Start`].
    pub fn spawn() -> Result<Self, WorkerError> {
        Self::spawn_program(Path::new(SELF))
    }

    /// Starts one from another program that knows the subcommand.
    ///
    /// # Errors
    /// [`WorkerError::Start`].
    pub fn spawn_program(program: &Path) -> Result<Self, WorkerError> {
        let start = |source| WorkerError::Start { program: program.display().to_string(), source };
        // No file descriptor of ours but the pipes, standard error included: a
        // worker that hangs must not hold an SSH session open. A group of its
        // own keeps the terminal's Ctrl-C for us, who then end it in order.
        let mut child = Command::new(program)
            .arg0("selvedge")
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(start)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| start(io::ErrorKind::BrokenPipe.into()))?;
        let (sender, replies) = channel();
        // Ends with the worker; if that hangs, with us.
        thread::Builder::new()
            .name("perf-replies".to_owned())
            .spawn(move || {
                for line in BufReader::new(stdout.take(u64::MAX)).lines() {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            })
            .map_err(start)?;
        Ok(Self { child, stdin, replies })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and awaits its reply, whatever it is: for relays.
    ///
    /// # Errors
    /// [`WorkerError::Late`], after which the worker is of no use; [`WorkerError::Gone`]; [`WorkerError::Protocol`].
    pub fn request(&mut self, request: &Request, deadline: Duration) -> Result<Reply, WorkerError> {
        let name = name(request);
        let sent = match (self.stdin.as_mut(), serde_json::to_vec(request)) {
            (Some(stdin), Ok(mut line)) => {
                line.push(b'\n');
                stdin.write_all(&line).is_ok()
            }
            _ => false,
        };
        if !sent {
            return Err(self.gone(name));
        }
        match self.replies.recv_timeout(deadline) {
            Ok(Ok(line)) => serde_json::from_str(&line).map_err(|_| WorkerError::Protocol { request: name, line }),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(self.gone(name)),
            Err(RecvTimeoutError::Timeout) => {
                let end = self.kill();
                Err(WorkerError::Late { pid: self.child.id(), request: name, deadline, end })
            }
        }
    }

    /// `open`.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn open(&mut self, open: &Open, deadline: Duration) -> Result<Endpoint, WorkerError> {
        match self.request(&Request::Open(open.clone()), deadline)? {
            Reply::Endpoint(endpoint) => Ok(endpoint),
            other => Err(unexpected("open", other)),
        }
    }

    /// `connect` with the peer's endpoint. Both ends must be ready before either runs.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn connect(&mut self, peer: &Endpoint, deadline: Duration) -> Result<(), WorkerError> {
        match self.request(&Request::Connect(peer.clone()), deadline)? {
            Reply::Ready {} => Ok(()),
            other => Err(unexpected("connect", other)),
        }
    }

    /// `run`; the deadline must be longer than the measurement.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn run(&mut self, run: &Run, deadline: Duration) -> Result<Outcome, WorkerError> {
        match self.request(&Request::Run(*run), deadline)? {
            Reply::Result(outcome) => Ok(outcome),
            other => Err(unexpected("run", other)),
        }
    }

    /// `check` what arrived here.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn check(&mut self, check: Check, deadline: Duration) -> Result<Checked, WorkerError> {
        match self.request(&Request::Check(check), deadline)? {
            Reply::Checked(checked) => Ok(checked),
            other => Err(unexpected("check", other)),
        }
    }

    /// `counters` of the port.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn counters(&mut self, deadline: Duration) -> Result<Snapshot, WorkerError> {
        match self.request(&Request::Counters {}, deadline)? {
            Reply::Counters(snapshot) => Ok(snapshot),
            other => Err(unexpected("counters", other)),
        }
    }

    /// `close`: releases everything and awaits the end.
    ///
    /// # Errors
    /// [`WorkerError::Late`] for a worker that hangs.
    pub fn close(mut self, deadline: Duration) -> Result<(), WorkerError> {
        let reply = self.request(&Request::Close {}, deadline)?;
        self.stdin = None;
        match (reply, self.ended(END)) {
            (Reply::Closed {}, Some(_)) => Ok(()),
            (Reply::Closed {}, None) => {
                let end = self.kill();
                Err(WorkerError::Late { pid: self.child.id(), request: "close", deadline: END, end })
            }
            (other, _) => Err(unexpected("close", other)),
        }
    }

    fn gone(&mut self, request: &'static str) -> WorkerError {
        WorkerError::Gone { pid: self.child.id(), request, end: self.kill() }
    }

    fn kill(&mut self) -> End {
        self.stdin = None;
        let _ = self.child.kill();
        self.ended(END).map_or(End::Stuck, End::Exited)
    }

    fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                _ if Instant::now() >= deadline => return None,
                _ => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input ends a worker that is well; the others are killed.
        self.stdin = None;
        if self.ended(END).is_none() {
            self.kill();
        }
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::Open(_) => "open",
        Request::Connect(_) => "connect",
        Request::Run(_) => "run",
        Request::Check(_) => "check",
        Request::Counters {} => "counters",
        Request::Close {} => "close",
    }
}

fn unexpected(request: &'static str, reply: Reply) -> WorkerError {
    match reply {
        Reply::Error(fault) => WorkerError::Refused(fault),
        other => WorkerError::Protocol { request, line: serde_json::to_string(&other).unwrap_or_default() },
    }
}
