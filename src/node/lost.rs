//! What to do when a node cannot be reached, from what ssh said of it.
//!
//! The last lines of standard error come in, and one sentence goes out. What
//! ssh said is kept: a sentence for each of its many reasons is not tried.

/// What is wrong and what to do, in one line, and under it what was said.
#[must_use]
pub(super) fn why(said: &str, status: &str) -> String {
    let said = said.trim();
    let lines: String = said.lines().map(|line| format!("\n  ssh: {}", line.trim())).collect();
    match advice(said) {
        Some(advice) => format!("{advice}{lines}"),
        None if said.is_empty() => format!("it ended ({status}) and said nothing"),
        None if said.lines().count() == 1 => said.to_owned(),
        None => format!("ssh or the node's selvedge ended ({status}){lines}"),
    }
}

/// In this order: a line of a lower one can be a consequence of a higher one.
fn advice(said: &str) -> Option<&'static str> {
    const KNOWN: [(&[&str], &str); 8] = [
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
            &["not found", "No such file or directory"],
            "there is no selvedge in its PATH; install it there, or say where it is with --program",
        ),
        (
            &["Connection reset", "Connection closed", "closed by remote host", "Broken pipe"],
            "the connection was cut; look whether it went down or its sshd turns connections away",
        ),
    ];
    let known = KNOWN.iter().find(|(signs, _)| signs.iter().any(|sign| said.contains(sign)));
    known.map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_to_do() {
        for (said, first) in [
            ("Host key for n1 has changed\nHost key verification failed.", "its host key"),
            ("ssh: connect to host 127.0.0.1 port 1: Connection refused", "nothing listens"),
            ("bash: line 1: selvedge: command not found", "there is no selvedge"),
            ("bash: line 1: /opt/selvedge: No such file or directory", "there is no selvedge"),
            ("sudo: a password is required", "its sudo asks"),
            ("ops@n1: Permission denied (publickey).", "it does not take this user's key"),
        ] {
            let why = why(said, "exit status: 255");
            assert!(why.starts_with(first), "{why}");
            assert!(why.ends_with(&format!("ssh: {}", said.lines().last().unwrap())), "{why}");
        }
        assert_eq!(why("kex_exchange", "1"), "kex_exchange");
        assert_eq!(why(" ", "exit status: 255"), "it ended (exit status: 255) and said nothing");
    }
}
