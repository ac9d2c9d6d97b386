//! The controller's end of the protocol: starts `selvedge node` and talks to it.
//!
//! On another host it is started by the system's own `ssh`, with the site's
//! configuration, keys and known hosts; on this host as a child process. No
//! shell is given anything but fixed words.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
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
    /// What is run there, as its shell is told.
    program: String,
    greeted: bool,
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
    /// The file that `ssh -F` is to read cannot be read.
    #[error("cannot read the ssh configuration {}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// There is no connection.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The node.
        host: HostName,
        /// What ssh or the node wrote last.
        why: String,
    },
    /// The answer to a request that changes the node did not come.
    #[error(
        "{source}\nthe {what} may be going on there, or be done: `selvedge drift --node {host}` shows what is so on the node"
    )]
    Unsure {
        /// The node.
        host: HostName,
        /// What was asked: "apply".
        what: &'static str,
        /// Why there is no answer.
        source: Box<CallError>,
    },
    /// The connection ended.
    #[error("the connection to {host} was lost: {why}")]
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
        Self::start(host, "selvedge", command)
    }

    /// Starts `selvedge node` on another host; `address` is what ssh is given.
    ///
    /// # Errors
    /// When ssh fails or the node does not greet.
    pub fn over_ssh(host: &HostName, address: &HostName, ssh: &Ssh) -> Result<Self, CallError> {
        let mut command = Command::new("ssh");
        if let Some(config) = &ssh.config {
            readable(config).map_err(|source| CallError::Config { path: config.clone(), source })?;
            command.arg("-F").arg(config);
        }
        command.args(["-T", "-oBatchMode=yes", "-oConnectTimeout=15", "--", address.as_str()]);
        if ssh.sudo {
            command.args(["sudo", "-n", "--"]);
        }
        let there = ssh.program.as_ref().map_or("selvedge", |path| path.as_str());
        command.arg(there).arg("node");
        Self::start(host, there, command)
    }

    /// `there` is what runs on the node, and `command` what runs here for it.
    fn start(host: &HostName, there: &str, mut command: Command) -> Result<Self, CallError> {
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
        let (host, there) = (host.clone(), there.to_owned());
        let mut remote = Self { host, program: there, greeted: false, child, input, frames, stderr, next_id: 1 };
        match remote.frame(Duration::from_secs(60))? {
            Frame::Hello { protocol: VERSION, .. } => {
                remote.greeted = true;
                Ok(remote)
            }
            Frame::Hello { protocol, selvedge, .. } => {
                Err(CallError::Version { host: remote.host.clone(), theirs: selvedge, protocol })
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
        let changes = request.changes();
        self.send(&Call { id, request })?;
        self.answer(id, deadline, watch).map_err(|error| match (changes, error) {
            (None, error) | (_, error @ CallError::Refused { .. }) => error,
            (Some(what), error) => CallError::Unsure { host: self.host.clone(), what, source: Box::new(error) },
        })
    }

    fn answer(&mut self, id: u64, deadline: Duration, watch: &mut dyn FnMut(&Change)) -> Result<Reply, CallError> {
        let end = Instant::now() + deadline;
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
        let mut line = serde_json::to_vec(call).map_err(|error| self.gone(error.to_string()))?;
        line.push(b'\n');
        let sent = self.input.write_all(&line).and_then(|()| self.input.flush());
        sent.map_err(|_| self.lost())
    }

    fn frame(&mut self, deadline: Duration) -> Result<Frame, CallError> {
        match self.frames.recv_timeout(deadline) {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(text)) => {
                let why = format!("it said {text:?} instead of a frame; does its login shell print something?");
                Err(self.gone(why))
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
        self.gone(super::lost::why(&said, &status, &self.program))
    }

    fn gone(&self, why: String) -> CallError {
        let host = self.host.clone();
        if self.greeted { CallError::Lost { host, why } } else { CallError::Unreachable { host, why } }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The node ends with its input; ssh that hangs must not hold us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether ssh will be able to read its configuration: what it says otherwise looks like a fault of the node.
fn readable(config: &Path) -> std::io::Result<()> {
    // ssh_config(5): the word stands for no file at all.
    if config == Path::new("none") {
        return Ok(());
    }
    if std::fs::metadata(config)?.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    Ok(nix::unistd::access(config, nix::unistd::AccessFlags::R_OK)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostName {
        "node01".parse().unwrap()
    }

    /// A node that greets, reads one call, and then does `what`.
    fn node(what: &str) -> Remote {
        let hello = Frame::Hello { protocol: VERSION, selvedge: "1".into(), host: "node01".into() };
        let hello = serde_json::to_string(&hello).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo '{hello}'; read -r call; {what}")]);
        Remote::start(&host(), "selvedge", command).unwrap()
    }

    fn ask(remote: &mut Remote, request: Request) -> String {
        remote.call(request, Duration::from_secs(1), &mut |_| {}).unwrap_err().to_string()
    }

    #[test]
    fn an_answer_that_is_lost_leaves_open_whether_it_was_done() {
        for (request, what) in [(Request::RollBack { allow_cut: false }, "rollback"), (Request::Confirm {}, "confirm")]
        {
            let said = ask(&mut node("kill -9 $$"), request);
            assert!(said.starts_with("the connection to node01 was lost: it ended (signal: 9"), "{said}");
            assert!(said.contains(&format!("the {what} may be going on there, or be done")), "{said}");
            assert!(said.contains("`selvedge drift --node node01`"), "{said}");
        }
        let late = ask(&mut node("exec sleep 60"), Request::Confirm {});
        assert!(late.starts_with("node01 did not answer within 1 s\nthe confirm may be"), "{late}");
        let noise = ask(&mut node("echo noise"), Request::Confirm {});
        assert!(noise.contains("\"noise\"") && noise.contains("may be going on"), "{noise}");
    }

    #[test]
    fn what_changes_nothing_is_only_lost() {
        let said = ask(&mut node("echo 'Connection reset by peer' >&2"), Request::Facts {});
        assert!(said.starts_with("the connection to node01 was lost: the connection was cut"), "{said}");
        assert!(!said.contains("drift"), "{said}");
    }

    #[test]
    fn a_refusal_is_an_answer() {
        let refusal = Frame::Error { id: 1, message: "no".into(), code: 4 };
        let refusal = serde_json::to_string(&refusal).unwrap();
        assert_eq!(ask(&mut node(&format!("echo '{refusal}'")), Request::RollBack { allow_cut: false }), "no");
    }

    #[test]
    fn a_node_that_never_greeted_cannot_be_reached() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let error = Remote::start(&host(), "selvedge", command).err().unwrap().to_string();
        assert_eq!(error, "node01 cannot be reached: it ended (exit status: 3) and said nothing");
    }

    #[test]
    fn an_ssh_configuration_that_cannot_be_read_is_named() {
        let reach = |path: &Path| {
            let ssh = Ssh { config: Some(path.to_owned()), ..Ssh::default() };
            Remote::over_ssh(&host(), &host(), &ssh).err().unwrap().to_string()
        };
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nope");
        assert!(
            reach(&missing).starts_with(&format!("cannot read the ssh configuration {}: No such", missing.display()))
        );
        assert!(reach(folder.path()).ends_with("is a directory"), "{}", reach(folder.path()));
        assert!(readable(Path::new("none")).is_ok(), "ssh takes the word for no file");
    }
}
