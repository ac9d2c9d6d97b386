//! The SSH session that this program was started from.
//!
//! sudo drops `SSH_CONNECTION` from the environment, so that of the processes
//! above is read: the shell's. Where `env -i` came straight from sshd, which
//! has none itself, logind knows the session and where it comes from.

use std::net::IpAddr;

use super::mounts::address;
use super::tree::Tree;

/// How far up is looked: more than any real chain, less than a loop.
const GENERATIONS: usize = 64;

/// An SSH connection into this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshConnection {
    /// Where it comes from.
    pub(super) client: IpAddr,
    /// This host's own address in it; logind does not know it.
    pub(super) local: Option<IpAddr>,
}

/// The connection that this process, or one that it descends from, serves.
pub(super) fn ssh_connection(tree: &Tree) -> Option<SshConnection> {
    let mut process = "self".to_owned();
    for _ in 0..GENERATIONS {
        if let Some(found) =
            tree.bytes(&format!("/proc/{process}/environ")).and_then(|environ| in_environment(&environ))
        {
            return Some(found);
        }
        match tree.text(&format!("/proc/{process}/status")).and_then(|status| parent(&status)) {
            Some(parent) => process = parent,
            None => break,
        }
    }
    of_logind(tree)
}

/// The remote end of the login session that this process is in, in systemd-logind's own record of it.
fn of_logind(tree: &Tree) -> Option<SshConnection> {
    let session = session_of(&tree.text("/proc/self/cgroup")?)?;
    let client = remote_host(&tree.text(&format!("/run/systemd/sessions/{session}"))?)?;
    Some(SshConnection { client, local: None })
}

/// `c1` of `0::/user.slice/user-0.slice/session-c1.scope`; the last one is the innermost.
fn session_of(cgroup: &str) -> Option<String> {
    let scopes = cgroup.lines().flat_map(|line| line.split('/'));
    let session = scopes.filter_map(|part| part.strip_prefix("session-")?.strip_suffix(".scope")).next_back()?;
    session.chars().all(|c| c.is_ascii_alphanumeric()).then(|| session.to_owned())
}

fn remote_host(record: &str) -> Option<IpAddr> {
    address(record.lines().find_map(|line| line.strip_prefix("REMOTE_HOST="))?.trim_matches('"'))
}

fn in_environment(environ: &[u8]) -> Option<SshConnection> {
    let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"SSH_CONNECTION="))?;
    let mut fields = std::str::from_utf8(value).ok()?.split(' ');
    let (client, _port, local) = (fields.next()?, fields.next()?, fields.next()?);
    Some(SshConnection { client: address(client)?, local: Some(address(local)?) })
}

/// The parent in /proc/PID/status; `None` at the top.
fn parent(status: &str) -> Option<String> {
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    (parent != "0").then(|| parent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_is_in_the_environment() {
        let found = in_environment(b"A=1\0SSH_CONNECTION=10.0.2.2 51000 ::ffff:10.0.2.15 22\0B=2\0");
        let expected = SshConnection { client: "10.0.2.2".parse().unwrap(), local: "10.0.2.15".parse().ok() };
        assert_eq!(found, Some(expected));
        for environ in
            [&b""[..], b"XSSH_CONNECTION=1.1.1.1 1 2.2.2.2 2", b"SSH_CONNECTION=1.1.1.1", b"SSH_CONNECTION=\xff"]
        {
            assert_eq!(in_environment(environ), None);
        }
    }

    #[test]
    fn logind_knows_where_a_session_comes_from() {
        assert_eq!(session_of("0::/user.slice/user-0.slice/session-c1.scope\n").as_deref(), Some("c1"));
        assert_eq!(session_of("0::/system.slice/cron.service\n"), None);
        assert_eq!(session_of("0::/a/session-..%2f.scope\n"), None);
        let record = "UID=0\nREMOTE=1\nREMOTE_HOST=10.0.2.2\nSERVICE=sshd\n";
        assert_eq!(remote_host(record), "10.0.2.2".parse().ok());
        assert_eq!(remote_host("UID=0\nREMOTE=0\n"), None);
        assert_eq!(remote_host("REMOTE_HOST=a.name\n"), None);
    }

    #[test]
    fn the_first_process_has_no_parent() {
        assert_eq!(parent("Name:\tbash\nPPid:\t12\n"), Some("12".into()));
        assert_eq!(parent("Name:\tinit\nPPid:\t0\n"), None);
    }
}
