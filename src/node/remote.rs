//! The controller's end of the protocol: starts `selvedge node` and talks to it.
//!
//! On another host it is started by the system's own `ssh`, with the site's
//! configuration, keys and known hosts; on this host as a child process. No
//! shell is given anything but fixed words.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::protocol::{Call, Frame, MAX_LINE_BYTES, Reply, Request, VERSION};
use crate::name::HostName;
use crate::state::Change;

/// How nodes are reached.
#[derive(Debug, Clone, Default)]
pub struct Ssh {
    /// `ssh -F`: another configuration than the user's own.
    pub config: Option<PathBuf>,
    /// Run selvedge by `sudo -n` on the node.
    pub sudo: bool,
    /// The program's name or path on the node.
    pub program: Option<crate::state::FilePath>,
}

/// A connection to a node.
pub struct Remote {
    host: HostName,
    child: Child,
    input: ChildStdin,
    frames: Receiver<Result<Frame, String>>,
    stderr: Option<thread::JoinHandle<String>>,
    next_id: u64,
}

/// Why a call gave nothing.
#[derive(Debug, Error)]
pub enum CallError {
    /// `ssh` or the node's selvedge cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The connection ended.
    #[error("{host} cannot be reached: {why}")]
    Lost {
        /// The node.
        host: HostName,
        /// What ssh or the node wrote last.
        why: String,
    },
    /// It answers too late.
    #[error("{host} did not answer within {seconds} s")]
    Deadline {
        /// The node.
        host: HostName,
        /// The deadline.
        seconds: u64,
    },
    /// The other selvedge speaks another version of the protocol.
    #[error("{host} runs selvedge {theirs}, which speaks protocol {protocol}, and this is {} with {VERSION}; install the same version", env!("CARGO_PKG_VERSION"))]
    Version {
        /// The node.
        host: HostName,
        /// Its version.
        theirs: String,
        /// Its protocol.
        protocol: u32,
    },
    /// The node could not do it.
    #[error("{message}")]
    Refused {
        /// What it said.
        message: String,
        /// The exit code for it.
        code: u8,
    },
    /// It answered something else.
    #[error("{host} answered out of turn; is it running the same version?")]
    OutOfTurn {
        /// The node.
        host: HostName,
    },
}

impl Remote {
    /// Starts `selvedge node` on this host.
    ///
    /// # Errors
    /// When it cannot be started or does not greet.
    pub fn here(host: &HostName) -> Result<Self, CallError> {
        let program = std::env::current_exe();
        let program = program.map_err(|source| CallError::Start { program: "selvedge".to_owned(), source })?;
        let mut command = Command::new(program);
        command.arg("node");
        Self::start(host, command)
    }

    /// Starts `selvedge node` on another host; `address` is what ssh is given.
    ///
    /// # Errors
    /// When ssh fails or the node does not greet.
    pub fn over_ssh(host: &HostName, address: &HostName, ssh: &Ssh) -> Result<Self, CallError> {
        let mut command = Command::new("ssh");
        if let Some(config) = &ssh.config {
            command.arg("-F").arg(config);
        }
        command.args(["-T", "-oBatchMode=yes", "-oConnectTimeout=15", "--", address.as_str()]);
        if ssh.sudo {
            command.args(["sudo", "-n", "--"]);
        }
        command.arg(ssh.program.as_ref().map_or("selvedge", |path| path.as_str())).arg("node");
        Self::start(host, command)
    }

    fn start(host: &HostName, mut command: Command) -> Result<Self, CallError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| CallError::Start { program: program.clone(), source };
        let mut child = command.spawn().map_err(start)?;
        let missing = || start(std::io::Error::other("it has no standard input or output"));
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().map(|stderr| thread::spawn(move || last_words(stderr)));
        let (sender, frames) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(frame) = read_frame(&mut output) {
                if sender.send(frame).is_err() {
                    break;
                }
            }
        });
        let mut remote = Self { host: host.clone(), child, input, frames, stderr, next_id: 1 };
        match remote.frame(Duration::from_secs(60))? {
            Frame::Hello { protocol: VERSION, .. } => Ok(remote),
            Frame::Hello { protocol, selvedge, .. } => {
                Err(CallError::Version { host: host.clone(), theirs: selvedge, protocol })
            }
            _ => Err(remote.out_of_turn()),
        }
    }

    /// The node.
    #[must_use]
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// Makes one call and waits for its answer. `watch` sees each change of an apply before it is made.
    ///
    /// # Errors
    /// When the node cannot be reached, cannot do it, or does not answer in time.
    pub fn call(
        &mut self,
        request: Request,
        deadline: Duration,
        watch: &mut dyn FnMut(&Change),
    ) -> Result<Reply, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let end = Instant::now() + deadline;
        self.send(&Call { id, request })?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.frame(left).map_err(|error| within(error, deadline))? {
                Frame::Progress { id: of, change } if of == id => watch(&change),
                Frame::Reply { id: of, reply } if of == id => return Ok(*reply),
                Frame::Error { id: of, message, code } if of == id => return Err(CallError::Refused { message, code }),
                _ => return Err(self.out_of_turn()),
            }
        }
    }

    /// The error for an answer that belongs to another question.
    #[must_use]
    pub fn out_of_turn(&self) -> CallError {
        CallError::OutOfTurn { host: self.host.clone() }
    }

    fn send(&mut self, call: &Call) -> Result<(), CallError> {
        let mut line = serde_json::to_vec(call)
            .map_err(|error| CallError::Lost { host: self.host.clone(), why: error.to_string() })?;
        line.push(b'\n');
        let sent = self.input.write_all(&line).and_then(|()| self.input.flush());
        sent.map_err(|_| self.lost())
    }

    fn frame(&mut self, deadline: Duration) -> Result<Frame, CallError> {
        match self.frames.recv_timeout(deadline) {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(text)) => {
                let why = format!("it said {text:?} instead of a frame; does its login shell print something?");
                Err(CallError::Lost { host: self.host.clone(), why })
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(CallError::Deadline { host: self.host.clone(), seconds: deadline.as_secs() })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.lost()),
        }
    }

    fn lost(&mut self) -> CallError {
        let said = self.stderr.take().and_then(|stderr| stderr.join().ok()).unwrap_or_default();
        let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        CallError::Lost { host: self.host.clone(), why: super::lost::why(&said, &status) }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The node ends with its input; ssh that hangs must not hold us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn within(error: CallError, deadline: Duration) -> CallError {
    match error {
        CallError::Deadline { host, .. } => CallError::Deadline { host, seconds: deadline.as_secs() },
        other => other,
    }
}

fn read_frame(output: &mut impl BufRead) -> Option<Result<Frame, String>> {
    let mut line = Vec::new();
    match output.take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(serde_json::from_slice(&line).map_err(|_| {
            let text = String::from_utf8_lossy(&line);
            text.trim().chars().take(200).collect()
        })),
    }
}

/// The last lines of standard error: what ssh says when it gives up.
fn last_words(stderr: impl Read) -> String {
    let lines: Vec<String> = BufReader::new(stderr).lines().map_while(Result::ok).collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
