//! The lab's nodes, for tests that need whole machines: see tests/lab/README.md.
//!
//! A test that uses it has its own main and makes its trials with [`trial`]:
//! without `SELVEDGE_LAB=1` they are left out by name, with it they run or fail.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]
#![expect(clippy::expect_used, reason = "a test's helpers fail by panicking")]
#![allow(dead_code, clippy::allow_attributes, reason = "each test that includes this uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A command on a node, or a selvedge that works on one.
const COMMAND_S: u32 = 180;
/// Booting a pair of nodes for the first time on a busy machine.
const BOOT_S: u32 = 400;

/// One claim.
pub(crate) fn trial(name: &str, test: fn()) -> Trial {
    let run = move || {
        let started = Instant::now();
        let ended = std::panic::catch_unwind(test);
        eprintln!("      {:.1} s", started.elapsed().as_secs_f64());
        ended.map_err(|_| Failed::from("see the panic above"))
    };
    let trial = Trial::test(name, run);
    if std::env::var("SELVEDGE_LAB").is_ok_and(|value| value == "1") {
        trial
    } else {
        trial.with_kind("needs SELVEDGE_LAB=1").with_ignored_flag(true)
    }
}

/// Runs the trials one after the other, in their order: they share a pair of nodes.
pub(crate) fn run(trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What a program did.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Panics, with all that was said, unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert!(self.code == code, "exit {} instead of {code}\n{}\n{}", self.code, self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Panics unless the text is in what was said.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "{text:?} is not in\n{}\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Runs a program; after `seconds` it is killed, and its code is 124.
#[track_caller]
pub(crate) fn program(command: &[&str], seconds: u32) -> Output {
    let output = Command::new("timeout")
        .args(["-k", "5", &seconds.to_string()])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .expect("timeout, of coreutils");
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A command of the lab, which must succeed; its standard output.
#[track_caller]
pub(crate) fn lab(arguments: &[&str]) -> String {
    let script = format!("{ROOT}/tests/lab/lab");
    program(&[&[script.as_str()], arguments].concat(), BOOT_S).exits(0).stdout.trim().to_owned()
}

/// Starts what is not up yet; as `lab up`, options and all.
#[track_caller]
pub(crate) fn up(nodes: &[&str]) {
    lab(&[&["up"], nodes].concat());
}

/// As after the first boot, with selvedge installed.
#[track_caller]
pub(crate) fn fresh(nodes: &[&str]) {
    lab(&[&["reset"], nodes].concat());
    std::thread::scope(|threads| {
        for node in nodes {
            threads.spawn(|| install(node));
        }
    });
}

/// Copies the binary under test to a node's PATH, whatever is there already.
#[track_caller]
pub(crate) fn install(node: &str) {
    lab(&["put", node, stripped().to_str().unwrap(), "/usr/local/bin/selvedge.new"]);
    // Synced: a power cut soon after must not take the program with it.
    ok(node, "mv /usr/local/bin/selvedge.new /usr/local/bin/selvedge; sync -f /usr/local/bin/selvedge");
}

/// A command on a node, by its shell, as root, whatever comes of it. `ops@node01` is another user.
#[track_caller]
pub(crate) fn ssh(node: &str, script: &str) -> Output {
    program(&["ssh", "-F", ssh_config(), node, script], COMMAND_S)
}

/// A command on a node that must succeed; its standard output.
#[track_caller]
pub(crate) fn ok(node: &str, script: &str) -> String {
    let output = ssh(node, script);
    assert!(output.code == 0, "on {node}: `{script}` ended with {}\n{}\n{}", output.code, output.stdout, output.stderr);
    output.stdout.trim().to_owned()
}

/// A command on a node that prints JSON.
#[track_caller]
pub(crate) fn json(node: &str, script: &str) -> Value {
    let text = ok(node, script);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("on {node}: `{script}`: {error}: {text}"))
}

/// Waits until `holds`, for at most `seconds`.
#[track_caller]
pub(crate) fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Runs selvedge here, with the lab's ssh configuration.
#[track_caller]
pub(crate) fn selvedge(arguments: &[&str]) -> Output {
    let binary = binary();
    let command = [&[binary.to_str().unwrap()], arguments, &["--ssh-config", ssh_config()]].concat();
    program(&command, COMMAND_S)
}

/// The lab's ssh configuration.
pub(crate) fn ssh_config() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| lab(&["ssh-config"]))
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("SELVEDGE_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_selvedge")), PathBuf::from)
}

/// A copy without symbols: a tenth of the size, and the nodes are slow.
fn stripped() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("selvedge-{}", std::process::id()));
        program(&["strip", "-o", copy.to_str().unwrap(), binary().to_str().unwrap()], 60).exits(0);
        copy
    })
}

/// A file of this checkout.
pub(crate) fn here(path: &str) -> String {
    format!("{ROOT}/{path}")
}

/// A spec made from examples/lab.toml by replacing texts; its path. Each text must be there.
#[track_caller]
pub(crate) fn spec(name: &str, replaced: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(here("examples/lab.toml")).unwrap();
    for (from, to) in replaced {
        assert!(text.contains(from), "{from:?} is not in examples/lab.toml");
        text = text.replace(from, to);
    }
    let path = format!("{}/{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, text).unwrap();
    path
}
