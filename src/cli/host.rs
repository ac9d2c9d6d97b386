//! Which machine a command is for: this one, an image, or another by SSH.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use super::args::{BySsh, Reach};
use super::{Outcome, Stop, exit, look};
use crate::compile::{CompileError, name_in};
use crate::hostlist::HostList;
use crate::name::HostName;
use crate::node::remote::{CallError, Remote, Ssh};
use crate::node::{Session, SessionError, SpecText, serve};
use crate::spec::Spec;

/// What to do on a host that the spec does not have.
const GIVE_NODE: &str = "give --node NAME";

/// This host's name, as the kernel has it; `otherwise` is what to do where it is none.
pub(super) fn this(otherwise: &str) -> Result<HostName, Stop> {
    let name =
        nix::unistd::gethostname().map_err(|error| Stop::failed(format!("cannot read the host name: {error}")))?;
    let name = name.to_string_lossy();
    name.parse().map_err(|error| Stop::failed(format!("this host's name cannot be used: {error}; {otherwise}")))
}

/// Whether `name` is this host: the whole name, or its first label when either is not qualified.
pub(super) fn is_this(name: &HostName, this: &HostName) -> bool {
    name.can_be(this)
}

/// What a command is for.
pub(super) enum Target {
    /// This host.
    Here,
    /// Another.
    There(HostName),
}

/// The machine that a name means; this host without one.
pub(super) fn target(node: Option<&HostName>) -> Target {
    match node {
        None => Target::Here,
        Some(node) if this(GIVE_NODE).is_ok_and(|this| is_this(node, &this)) => Target::Here,
        Some(node) => Target::There(node.clone()),
    }
}

impl Reach {
    /// The node that is meant.
    pub(super) fn target(&self) -> Target {
        target(self.node.as_ref())
    }

    /// The node's name in a spec. This host's own is asked for only when none is given.
    pub(super) fn name(&self) -> Result<HostName, Stop> {
        self.node.clone().map_or_else(|| this(GIVE_NODE), Ok)
    }

    /// Why it could not be done there; with what to do where this host is not in the spec.
    pub(super) fn stop(&self, error: SessionError) -> Stop {
        if self.node.is_none() { not_in_the_spec(error, GIVE_NODE) } else { Stop::from(error) }
    }
}

/// The error; with `otherwise`, which is what to do where this host is not in the spec.
pub(super) fn not_in_the_spec(error: SessionError, otherwise: &str) -> Stop {
    let unknown = matches!(error, SessionError::Compile(CompileError::UnknownHost { .. }));
    let stop = Stop::from(error);
    if unknown { stop.with(otherwise) } else { stop }
}

/// The name that the spec has for a host. Asked before the host is: a name that is mistyped needs no connection.
pub(super) fn in_the_spec(spec: &Spec, host: &HostName) -> Result<HostName, Stop> {
    name_in(spec, host).map_err(|error| SessionError::from(error).into())
}

impl BySsh {
    pub(super) fn ssh(&self) -> Ssh {
        Ssh { config: self.ssh_config.clone(), sudo: self.sudo, program: self.program.clone() }
    }
}

/// Connects to another host by the address that the spec has for it, or its name.
pub(super) fn connect(host: &HostName, spec: Option<&Spec>, ssh: &Ssh) -> Result<Remote, CallError> {
    let address = spec.and_then(|spec| spec.hosts.get(host)).and_then(|exception| exception.ssh.as_ref());
    Remote::over_ssh(host, address.unwrap_or(host), ssh)
}

/// The hosts of some lists, each once. They are counted before any is expanded; `what` has them, and `way` is what to
/// do where they are more than `most`.
pub(super) fn expand(lists: &[&HostList], most: usize, what: &str, way: &str) -> Result<Vec<HostName>, Stop> {
    let count = lists.iter().fold(0, |count: usize, list| count.saturating_add(list.count()));
    if count > most {
        return Err(Stop::failed(format!("{what} {count} hosts; {way}")));
    }
    let mut seen = HashSet::with_capacity(count);
    Ok(lists.iter().flat_map(|list| list.iter()).filter(|host| seen.insert(host.clone())).collect())
}

/// A spec of a million hosts is far below, bytes.
const MOST_SPEC_BYTES: u64 = 16 << 20;

/// Whether standard input is meant where a file is asked for.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What `-` is called in messages.
const STDIN: &str = "<stdin>";

/// Reads a spec's text; `-` is standard input.
pub(super) fn read_spec(path: &Path) -> Result<SpecText, Stop> {
    let (name, text) = read_given(path, MOST_SPEC_BYTES);
    match text {
        Ok(text) => Ok(SpecText { name, text }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Stop::failed(format!(
            "there is no spec {name}; write one with `selvedge init {name}`, or name another"
        ))),
        Err(error) => Err(Stop::failed(format!("cannot read the spec {name}: {error}"))),
    }
}

/// What messages call a file, and its text, up to `most` bytes: what is larger, or never ends, is not what it was taken
/// for. `-` is standard input.
pub(super) fn read_given(path: &Path, most: u64) -> (String, std::io::Result<String>) {
    if is_stdin(path) {
        return (STDIN.to_owned(), read_text(std::io::stdin().lock(), most));
    }
    (path.display().to_string(), std::fs::File::open(path).and_then(|file| read_text(file, most)))
}

fn read_text(from: impl Read, most: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    let invalid = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    if bytes.len() as u64 > most {
        return Err(invalid(format!("it is larger than {} MiB, which is the most", most >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| invalid(format!("it is not UTF-8 text: {}", error.utf8_error())))
}

/// Reads and checks a spec; warnings go to standard error.
pub(super) fn load(text: &SpecText) -> Result<Spec, Stop> {
    match text.load() {
        Ok(checked) => Ok(checked.spec),
        Err(faults) => Err(Stop::failed(exit::rendered(&faults, look()))),
    }
}

/// `selvedge node`
pub(super) fn node() -> Outcome {
    let stdin = std::io::stdin().lock();
    let stdout = std::io::stdout().lock();
    match serve::serve(&mut Session::live(), stdin, stdout) {
        Ok(()) => Ok(exit::OK),
        Err(error) => Err(Stop::failed(format!("the controller's connection failed: {error}"))),
    }
}

/// `selvedge perf-worker`
pub(super) fn perf_worker() -> Outcome {
    let stdin = std::io::stdin().lock();
    let stdout = std::io::stdout().lock();
    match crate::perf::worker::serve(stdin, stdout) {
        Ok(()) => Ok(exit::OK),
        Err(error) => Err(Stop::failed(exit::causes(&error).join(": "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_an_end() {
        assert_eq!(read_text(&b"abcd"[..], 4).unwrap(), "abcd");
        let error = read_text(std::io::repeat(b'x'), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1 MiB, which is the most");
        assert!(read_text(&b"a\xff"[..], 4).unwrap_err().to_string().starts_with("it is not UTF-8 text: "));
        let stop = read_spec(Path::new("/dev/zero")).err().unwrap();
        assert_eq!(stop.message, "cannot read the spec /dev/zero: it is larger than 16 MiB, which is the most");
    }

    #[test]
    fn a_short_name_is_the_qualified_one() {
        let name = |text: &str| text.parse::<HostName>().unwrap();
        assert!(is_this(&name("node01"), &name("node01.cluster")));
        assert!(is_this(&name("node01.cluster"), &name("node01")));
        assert!(!is_this(&name("node01.a"), &name("node01.b")));
        assert!(!is_this(&name("node02"), &name("node01")));
    }
}
