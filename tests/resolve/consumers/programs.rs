//! Programs that a test needs, and running them.

use std::path::Path;
use std::process::Command;

/// Those of `needs` that are not there; `root` stands for the rights of root.
pub(crate) fn missing(needs: &[&'static str]) -> Vec<&'static str> {
    let there = |need: &str| match need {
        "root" => nix::unistd::geteuid().is_root(),
        path if path.starts_with('/') => Path::new(path).exists(),
        name => ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|folder| Path::new(folder).join(name).exists()),
    };
    needs.iter().copied().filter(|need| !there(need)).collect()
}

/// What a program said: both streams, and whether it succeeded.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<(bool, String, String), String> {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
}

/// Runs a script in a network and mount namespace of its own, `/run` empty and `/sys` read-only.
pub(crate) fn in_sandbox(script: &str, arguments: &[&str]) -> Result<(bool, String, String), String> {
    let script = format!("set -e\nmount -t tmpfs tmpfs /run\nmount -t sysfs -o ro sysfs /sys\n{script}");
    let before = ["--net", "--mount", "--propagation", "private", "bash", "-c", &script, "sandbox"];
    run("unshare", &[&before, arguments].concat())
}
