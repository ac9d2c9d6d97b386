//! Which machine a command is for: this one, an image, or another by SSH.

use std::io::Read;
use std::path::Path;

use super::args::{BySsh, Reach};
use super::{Outcome, Stop, exit, look};
use crate::name::HostName;
use crate::node::remote::{CallError, Remote, Ssh};
use crate::node::{Session, SpecText, serve};
use crate::spec::Spec;

/// This host's name, as the kernel has it.
pub(super) fn this() -> Result<HostName, Stop> {
    let name =
        nix::unistd::gethostname().map_err(|error| Stop::failed(format!("cannot read the host name: {error}")))?;
    let name = name.to_string_lossy();
    name.parse().map_err(|error| Stop::failed(format!("this host's name cannot be used: {error}; give --node")))
}

/// Whether `name` is this host: the whole name, or its first label when either is not qualified.
pub(super) fn is_this(name: &HostName, this: &HostName) -> bool {
    let first = |name: &HostName| name.as_str().split('.').next().unwrap_or_default().to_owned();
    let qualified = |name: &HostName| name.as_str().contains('.');
    name == this || (!(qualified(name) && qualified(this)) && first(name) == first(this))
}

/// What a command is for.
pub(super) enum Target {
    /// This host.
    Here(HostName),
    /// Another.
    There(HostName),
}

impl Reach {
    /// The node that is meant.
    pub(super) fn target(&self) -> Result<Target, Stop> {
        match &self.node {
            None => Ok(Target::Here(this()?)),
            Some(node) if this().is_ok_and(|this| is_this(node, &this)) => Ok(Target::Here(node.clone())),
            Some(node) => Ok(Target::There(node.clone())),
        }
    }
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

/// Reads a spec's text; `-` is standard input.
pub(super) fn read_spec(path: &Path) -> Result<SpecText, Stop> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        ("<stdin>".to_owned(), std::io::stdin().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), std::fs::read_to_string(path))
    };
    match text {
        Ok(text) => Ok(SpecText { name, text }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Stop::failed(format!(
            "there is no spec {name}; write one with `selvedge init {name}`, or name another"
        ))),
        Err(error) => Err(Stop::failed(format!("cannot read the spec {name}: {error}"))),
    }
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
    fn a_short_name_is_the_qualified_one() {
        let name = |text: &str| text.parse::<HostName>().unwrap();
        assert!(is_this(&name("node01"), &name("node01.cluster")));
        assert!(is_this(&name("node01.cluster"), &name("node01")));
        assert!(!is_this(&name("node01.a"), &name("node01.b")));
        assert!(!is_this(&name("node02"), &name("node01")));
    }
}
