//! What to do when a node cannot be reached, from what ssh said of it.
//!
//! The last lines of standard error come in, and one sentence goes out. What
//! ssh said is kept: a sentence for each of its many reasons is not tried.

/// What is wrong and what to do, in one line, and under it what was said. `program` is what was to be run there.
#[must_use]
pub(super) fn why(said: &str, status: &str, program: &str) -> String {
    let said = said.trim();
    let lines: String = said.lines().map(|line| format!("\n  ssh: {}", line.trim())).collect();
    match advice(said, program) {
        Some(advice) => format!("{advice}{lines}"),
        None if said.is_empty() => format!("it ended ({status}) and said nothing"),
        None if said.lines().count() == 1 => said.to_owned(),
        None => format!("ssh or the node's selvedge ended ({status}){lines}"),
    }
}

/// In this order: a line of a lower one can be a consequence of a higher one.
fn advice(said: &str, program: &str) -> Option<&'static str> {
    const KNOWN: [(&[&str], &str); 7] = [
        (
            &["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"],
            "its host key is not the one that is known; if it was installed anew, take the old key out with \
             `ssh-keygen -R` and log in once, else find out who answers in its place",
        ),
        (
            &["Could not resolve hostname"],
            "its name has no address; say how ssh reaches it with `ssh` in [hosts.NAME] of the spec, or with --ssh-config",
        ),
        (
            &["Permission denied (", "Too many authentication failures"],
            "it does not take this user's key; load the key into the ssh agent, or name user and key with --ssh-config",
        ),
        (
            &["a password is required", "not in the sudoers", "may not run sudo"],
            "its sudo asks for a password; allow this user `selvedge node` without one, or log in as root",
        ),
        (&["Connection refused"], "nothing listens on its SSH port; look whether sshd runs there, and on which port"),
        (
            &["timed out", "No route to host", "Network is unreachable", "not responding"],
            "nothing answers there; look whether it is up and the management network reaches it",
        ),
        (
            &["Connection reset", "Connection closed", "closed by remote host", "Broken pipe"],
            "the connection was cut; look whether it went down or its sshd turns connections away",
        ),
    ];
    if said.lines().any(|line| is_missing(line, program)) {
        return Some("there is no selvedge in its PATH; install it there, or say where it is with --program");
    }
    let known = KNOWN.iter().find(|(signs, _)| signs.iter().any(|sign| said.contains(sign)));
    known.map(|(_, advice)| *advice)
}

/// Whether a shell, or sudo, says in this line that `program` is not there.
///
/// ssh has words like these for files of its own, and a ProxyCommand for programs of this side.
fn is_missing(line: &str, program: &str) -> bool {
    const OF_SSH: [&str; 4] = ["no such identity", "can't open", "warning: ", "load key"];
    let (line, program) = (line.trim().to_lowercase(), program.to_lowercase());
    if OF_SSH.iter().any(|start| line.starts_with(start)) {
        return false;
    }
    let before = |what: &str| {
        let said = format!("{program}: {what}");
        line.match_indices(&said).any(|(at, _)| at == 0 || line[..at].ends_with([' ', ':', '\'', '`']))
    };
    let after = |what: &str| line.ends_with(&format!("{what}: {program}"));
    // bash, dash, ksh, tcsh and sudo; then zsh and fish.
    ["command not found", "not found", "no such file or directory"].into_iter().any(before)
        || ["command not found", "no such file or directory", "unknown command"].into_iter().any(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_to_do() {
        for (said, first) in [
            ("Host key for n1 has changed\nHost key verification failed.", "its host key"),
            ("ssh: connect to host 127.0.0.1 port 1: Connection refused", "nothing listens"),
            ("sudo: a password is required", "its sudo asks"),
            ("ops@n1: Permission denied (publickey).", "it does not take this user's key"),
        ] {
            let why = why(said, "exit status: 255", "selvedge");
            assert!(why.starts_with(first), "{why}");
            assert!(why.ends_with(&format!("ssh: {}", said.lines().last().unwrap())), "{why}");
        }
        assert_eq!(why("kex_exchange", "1", "selvedge"), "kex_exchange");
        assert_eq!(why(" ", "exit status: 255", "selvedge"), "it ended (exit status: 255) and said nothing");
    }

    #[test]
    fn a_missing_selvedge_is_not_a_missing_file_of_ssh() {
        for (said, program) in [
            ("bash: line 1: selvedge: command not found", "selvedge"),
            ("sh: 1: selvedge: not found", "selvedge"),
            ("sudo: selvedge: command not found", "selvedge"),
            ("selvedge: Command not found.", "selvedge"),
            ("zsh:1: command not found: selvedge", "selvedge"),
            ("fish: Unknown command: selvedge", "selvedge"),
            ("bash: line 1: /opt/selvedge: No such file or directory", "/opt/selvedge"),
            ("Warning: Permanently added 'n1' to the list of known hosts.\nash: selvedge: not found", "selvedge"),
        ] {
            assert!(why(said, "exit status: 127", program).starts_with("there is no selvedge"), "{said}");
        }
        for said in [
            "Can't open user config file nope: No such file or directory",
            "Can't open user config file selvedge: No such file or directory",
            "no such identity: /root/.ssh/selvedge: No such file or directory",
            "Warning: Identity file selvedge not accessible: No such file or directory.",
            "/bin/sh: 1: nc: not found\nkex_exchange_identification: Connection closed by remote host",
            "bash: line 1: my-selvedge: command not found",
        ] {
            let why = why(said, "exit status: 255", "selvedge");
            assert!(!why.contains("there is no selvedge") && why.contains(said.lines().next().unwrap()), "{why}");
        }
    }
}
