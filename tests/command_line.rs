//! The command as it is run: what it writes where, its exit codes, and images that it must not leave.
#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A spec that needs no HCA.
const SPEC: &str = r#"
version = 1
[cluster]
name = "test"
[fabrics.compute]
transport = "infiniband"
speed = "HDR"
[[nodes]]
hosts = "node[01-02]"
config = "networkd"
"#;

fn selvedge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    selvedge(arguments).output().unwrap()
}

fn full(arguments: &[&str]) -> Output {
    let full = File::options().write(true).open("/dev/full").unwrap();
    selvedge(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

#[track_caller]
fn ends(output: &Output, code: i32, says: &str) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    assert!(out.contains(says) || err.contains(says), "no {says:?} in\n{out}\n{err}");
}

/// A folder with a spec and an image that selvedge can be applied to.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("spec.toml"), SPEC).unwrap();
        for folder in ["img/usr/bin", "img/etc/systemd/system/multi-user.target.wants"] {
            fs::create_dir_all(place.at(folder)).unwrap();
        }
        let wants = place.at("img/etc/systemd/system/multi-user.target.wants/systemd-networkd.service");
        symlink("/usr/lib/systemd/system/systemd-networkd.service", wants).unwrap();
        fs::write(place.at("img/usr/bin/selvedge"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(place.at("img/usr/bin/selvedge"), Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn words(&self, command: &str) -> Vec<String> {
        let [spec, image] = ["spec.toml", "img"].map(|path| self.at(path).display().to_string());
        [command, &spec, "--node", "node01", "--root", &image].map(str::to_owned).to_vec()
    }

    fn on_image(&self, command: &str) -> Output {
        let words = self.words(command);
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn what_cannot_be_printed_is_an_error_and_no_panic() {
    let facts = ["--node", "node01", "--facts", "tests/cases/quickstart-node01/facts.json"];
    let with_facts = |command| [&[command, "examples/quickstart.toml"][..], &facts].concat();
    for arguments in [
        vec!["--help"],
        vec!["help", "apply"],
        vec!["--version"],
        vec!["completions", "bash"],
        vec!["completions", "zsh"],
        vec!["man"],
        vec!["schema"],
        vec!["init"],
        vec!["facts"],
        vec!["check", "examples/quickstart.toml"],
        with_facts("show"),
        with_facts("render"),
    ] {
        let output = full(&arguments);
        ends(&output, 1, "cannot write to standard output: No space left on device");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    ends(&run(&["man", "--out", out.to_str().unwrap()]), 0, "");
    let main = fs::read_to_string(out.join("selvedge.1")).unwrap();
    for part in [".SH EXAMPLES", ".SH FILES", "Exit codes"] {
        assert!(main.contains(part), "{part}: {main}");
    }
    let named: Vec<String> = main
        .lines()
        .filter(|line| line.starts_with("selvedge\\-") && line.ends_with("(1)"))
        .map(|line| line.replace("\\-", "-").replace("(1)", ".1"))
        .collect();
    assert!(named.len() > 10, "{main}");
    for page in named {
        assert!(out.join(&page).exists(), "there is no {page}");
    }
    assert!(out.join("selvedge-sm-status.1").exists() && !out.join("selvedge-recover.1").exists());
}

#[test]
fn what_init_and_render_are_given_by_mistake_is_told() {
    ends(&run(&["init", "README.md"]), 1, "README.md exists, and is never overwritten");
    let facts = ["--facts", "tests/cases/quickstart-node01/facts.json"];
    for (node, warned) in [("node01", false), ("node02", true)] {
        let output = run(&[&["render", "examples/quickstart.toml", "--node", node][..], &facts].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told.contains("are the facts of node01, and what is shown is for node02"), warned, "{told}");
    }
}

#[test]
fn facts_are_taken_from_standard_input_too() {
    let facts = File::open("tests/cases/quickstart-node01/facts.json").unwrap();
    let words = ["render", "examples/quickstart.toml", "--node", "node01", "--facts"];
    let given = selvedge(&[&words[..], &["-"]].concat()).stdin(facts).output().unwrap();
    ends(&given, 0, "");
    let named = run(&[&words[..], &["tests/cases/quickstart-node01/facts.json"]].concat());
    assert_eq!(given.stdout, named.stdout);
    ends(&run(&["show", "-", "--node", "node01", "--facts", "-"]), 1, "cannot both be standard input");
    ends(&run(&[&words[..], &["-"]].concat()), 1, "<stdin> is not what `selvedge facts` prints of one host");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    for arguments in [&["--help"][..], &["completions", "bash"], &["man"], &["schema"], &["init"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = selvedge(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        ends(&output, 0, "");
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_spec_without_end_is_refused() {
    ends(&run(&["check", "/dev/zero"]), 1, "larger than 16 MiB");
    ends(&run(&["show", "examples/quickstart.toml", "--node", "node01", "--facts", "/dev/zero"]), 1, "larger than");
    let mut check = selvedge(&["check", "-"]);
    check.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = check.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = "# comment\n".repeat(1000);
    while stdin.write_all(lines.as_bytes()).is_ok() {}
    ends(&child.wait_with_output().unwrap(), 1, "cannot read the spec <stdin>: it is larger than 16 MiB");
}

#[test]
fn files_are_rendered_as_json_too() {
    let facts = ["--node", "node01", "--facts", "tests/cases/quickstart-node01/facts.json", "--format", "json"];
    let folder = tempfile::tempdir().unwrap();
    let out = ["--out", folder.path().to_str().unwrap()];
    let output = run(&[&["render", "examples/quickstart.toml"][..], &facts, &out].concat());
    ends(&output, 0, "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    assert!(!files.is_empty());
    let enabled = "/etc/systemd/system/sysinit.target.wants/selvedge-recover.service";
    let links = report["links"].as_array().unwrap();
    assert!(links.iter().any(|link| link["path"] == enabled), "{links:?}");
    for link in links {
        let path = folder.path().join(link["path"].as_str().unwrap().trim_start_matches('/'));
        assert_eq!(fs::read_link(&path).unwrap().to_str(), link["target"].as_str());
    }
    for file in files {
        let path = folder.path().join(file["path"].as_str().unwrap().trim_start_matches('/'));
        assert_eq!(fs::read_to_string(&path).unwrap(), file["content"].as_str().unwrap());
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(u64::from(mode), file["mode"].as_u64().unwrap(), "{}", path.display());
    }
}

#[test]
fn rendered_files_stay_below_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), folder.path().join("etc")).unwrap();
    let facts = ["--node", "node01", "--facts", "tests/cases/quickstart-node01/facts.json"];
    let out = ["--out", folder.path().to_str().unwrap()];
    ends(
        &run(&[&["render", "examples/quickstart.toml"][..], &facts, &out].concat()),
        1,
        &format!("cannot write {}/etc/", folder.path().display()),
    );
    assert!(is_empty(outside.path()));
}

/// As on a full disk: no file may be longer than 512 bytes. A shell's `ulimit -f` counts in those, or in twice as many.
fn on_a_small_disk(words: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_selvedge")]).args(words);
    shell.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn pages_and_rendered_files_are_all_there_or_none() {
    let facts = ["--node", "node01", "--facts", "tests/cases/quickstart-node01/facts.json"];
    let render = [&["render", "examples/quickstart.toml"][..], &facts].concat();
    for command in [render, vec!["man"]] {
        let top = tempfile::tempdir().unwrap();
        let out = top.path().join("a/b");
        let words = [&command[..], &["--out", out.to_str().unwrap()]].concat();
        let said = format!("cannot write {}/", out.display());
        let output = on_a_small_disk(&words);
        ends(&output, 1, &said);
        ends(&output, 1, "File too large (os error 27); all is as it was");
        assert!(is_empty(top.path()), "{command:?}");
        // What was there stays, and nothing is beside it.
        fs::create_dir_all(out.join("etc/modules-load.d")).unwrap();
        for file in ["etc/modules-load.d/selvedge.conf", "selvedge-apply.1", "mine"] {
            fs::write(out.join(file), "mine\n").unwrap();
        }
        ends(&on_a_small_disk(&words), 1, &said);
        let left: Vec<String> = ["etc/modules-load.d/selvedge.conf", "selvedge-apply.1", "mine"]
            .map(|file| fs::read_to_string(out.join(file)).unwrap())
            .to_vec();
        assert_eq!(left, ["mine\n"; 3], "{command:?}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 3, "{command:?}");
        assert_eq!(fs::read_dir(out.join("etc")).unwrap().count(), 1, "{command:?}");
        ends(&run(&words), 0, "");
    }
}

#[test]
fn an_image_is_applied_to_and_in_sync_after() {
    let place = Place::new();
    ends(&place.on_image("plan"), 2, "to make, in this order");
    assert!(!place.at("img/var").exists(), "a plan makes nothing");
    ends(&place.on_image("apply"), 0, "made, each read back");
    assert!(place.at("img/var/lib/selvedge/journal/00000001.done").exists());
    assert_eq!(place.at("img/var/lib").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(place.at("img/var/lib/selvedge").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    ends(&place.on_image("plan"), 0, "in sync");
}

#[test]
fn the_journals_of_an_image_stay_in_it() {
    let place = Place::new();
    fs::create_dir_all(place.at("outside/lib")).unwrap();
    symlink("../outside", place.at("img/var")).unwrap();
    ends(&place.on_image("apply"), 1, "/var is a link to a folder that the image does not have");
    fs::remove_file(place.at("img/var")).unwrap();
    symlink(place.at("outside"), place.at("img/var")).unwrap();
    for command in ["plan", "apply"] {
        ends(&place.on_image(command), 1, "/var is a link to a folder that the image does not have");
    }
    assert!(is_empty(&place.at("outside/lib")));
    fs::remove_file(place.at("img/var")).unwrap();
    for folder in ["img/var/lib", "img/persist"] {
        fs::create_dir_all(place.at(folder)).unwrap();
    }
    symlink("/persist", place.at("img/var/lib/selvedge")).unwrap();
    ends(&place.on_image("apply"), 0, "made, each read back");
    assert!(place.at("img/persist/journal/00000001.done").exists(), "its own links hold");
    ends(&place.on_image("plan"), 0, "in sync");
}

#[test]
fn a_link_among_the_journals_of_an_image_is_refused() {
    for link in ["lock", "journal", "blobs", "journal/00000001.open"] {
        let place = Place::new();
        let link = place.at("img/var/lib/selvedge").join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir(place.at("outside")).unwrap();
        symlink(place.at("outside"), &link).unwrap();
        ends(&place.on_image("apply"), 1, "is a symbolic link");
        assert!(is_empty(&place.at("outside")), "{}", link.display());
    }
}

#[test]
fn an_apply_that_is_done_says_so_when_its_report_is_lost() {
    let place = Place::new();
    let words = place.words("apply");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ends(&full(&words), 1, "the apply on node01 is done and stays; only the report of it could not be written");
    ends(&full(&words), 1, "node01 is in sync, nothing was changed; only the report of it could not be written");
    ends(&place.on_image("plan"), 0, "in sync");
}

#[test]
fn an_image_without_selvedge_says_how_it_gets_there() {
    let place = Place::new();
    fs::remove_file(place.at("img/usr/bin/selvedge")).unwrap();
    let output = place.on_image("plan");
    ends(&output, 1, "copy the `selvedge` binary there first");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("package selvedge"));
}

#[test]
fn a_node_that_is_not_reached_is_code_1_with_its_report() {
    let place = Place::new();
    let config = place.at("ssh_config");
    fs::write(&config, "Host *\n  ProxyCommand false\n").unwrap();
    let [spec, config] = [place.at("spec.toml"), config].map(|path| path.display().to_string());
    let words = ["verify", "--only", "node", "--node", "node[01-02]", &spec, "--ssh-config", &config];
    let output = run(&words);
    ends(&output, 1, "node02: unreachable");
    assert!(String::from_utf8_lossy(&output.stdout).contains("node01: unreachable"));
    let missing = place.at("nope").display().to_string();
    let output = run(&["plan", &spec, "--node", "node01", "--ssh-config", &missing]);
    ends(&output, 1, &format!("cannot read the ssh configuration {missing}: No such file or directory"));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no selvedge in its PATH"));
}

#[test]
fn a_host_outside_the_spec_is_told_how_to_go_on() {
    let place = Place::new();
    let spec = place.at("spec.toml").display().to_string();
    let text = SPEC.replace("node[01-02]", "elsewhere[01-02]");
    fs::write(&spec, text).unwrap();
    for command in ["plan", "drift", "show", "render"] {
        ends(&run(&[command, &spec]), 1, "it has 2 hosts; give --node NAME");
    }
    ends(&run(&["sm", "status", &spec]), 1, "it has 2 hosts; run this on a host of the spec, or name a port");
    let other = run(&["plan", &spec, "--node", "elsewhere03", "--root", &place.at("img").display().to_string()]);
    assert!(!String::from_utf8_lossy(&other.stderr).contains("--node"), "{other:?}");
}

#[test]
fn sm_status_takes_only_what_it_can_do() {
    for option in [&["--node", "node01"][..], &["--sudo"], &["--ssh-config", "f"], &["--program", "/x"]] {
        ends(&run(&[&["sm", "status", "examples/lab.toml"][..], option].concat()), 64, "unexpected argument");
    }
}

#[test]
fn one_of_a_kind_is_singular() {
    let place = Place::new();
    ends(&run(&["check", &place.at("spec.toml").display().to_string()]), 0, "2 hosts, 0 networks, 1 fabric\n");
}
