//! The lines of `selvedge hosts` before the C library's own resolver, and how long they take for a large cluster.
//!
//! `getent` reads them as /etc/hosts in a mount namespace of its own. Where that cannot be made, its tests are left out
//! by name; with SELVEDGE_LAB=1 they fail.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

/// Two families, pinned and unpinned interfaces, domains, an address of its own, a number beyond one byte.
const SPEC: &str = "
version = 1
cluster.name = \"test\"
fabrics.f = { transport = \"roce\", speed = \"25G\" }
networks.rail0 = { fabric = \"f\", cidr = \"10.0.0.0/16\" }
networks.rail1 = { fabric = \"f\", cidr = \"fd00:1::/64\" }
hosts.n2.addresses.rail1 = \"fd00:1::beef\"
[[nodes]]
hosts = \"n[1-3,300],gpu017.site2.example\"
ports = [
  { device = \"a\", interface = \"ib0.x\", network = \"rail0\" },
  { device = \"b\", network = \"rail1\" },
]
";

/// Replaces /etc/hosts by the file `$1` and looks up the names that follow.
const LOOK_UP: &str = "mount --bind \"$1\" /etc/hosts && shift && exec getent -s files ahosts \"$@\"";

fn main() {
    let must = std::env::var_os("SELVEDGE_LAB").is_some_and(|value| value == "1");
    let can = in_a_namespace("true", &[]).is_ok();
    let resolver: [(&str, fn()); 2] = [
        ("each_line_is_what_the_resolver_finds", each_line_is_what_the_resolver_finds),
        ("a_name_that_is_not_there_is_not_found", a_name_that_is_not_there_is_not_found),
    ];
    if !can && !must {
        eprintln!(
            "the resolver: left out, for want of a mount namespace (root, unshare): its tests are marked as ignored"
        );
    }
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let mut trials: Vec<Trial> = resolver.into_iter().map(|one| trial(one).with_ignored_flag(!can && !must)).collect();
    trials.push(trial(("a_hundred_thousand_hosts_take_as_much_longer", a_hundred_thousand_hosts_take_as_much_longer)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn in_a_namespace(script: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("unshare").args(["-m", "sh", "-c", script, "sh"]).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn hosts(spec: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let output = command.arg("hosts").arg(spec).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn each_line_is_what_the_resolver_finds() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, file) = (folder.path().join("spec.toml"), folder.path().join("hosts"));
    std::fs::write(&spec, SPEC).unwrap();
    std::fs::write(&file, hosts(&spec, &[])).unwrap();
    let report: Value = serde_json::from_str(&hosts(&spec, &["--format", "json"])).unwrap();
    let wanted: BTreeMap<&str, &str> = report
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["address"].as_str().unwrap()))
        .collect();
    assert_eq!(wanted["n2-rail1"], "fd00:1::beef");
    assert_eq!(wanted["gpu017-ib0-x.site2.example"], "10.0.0.17");
    assert_eq!(wanted.len(), 10);
    for (name, address) in wanted {
        let found = in_a_namespace(LOOK_UP, &[file.to_str().unwrap(), name]);
        let found = found.unwrap_or_else(|error| panic!("{name} is not found: {error}"));
        let addresses: Vec<&str> = found.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(!addresses.is_empty() && addresses.iter().all(|found| *found == address), "{name}: {found}");
    }
}

fn a_name_that_is_not_there_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, file) = (folder.path().join("spec.toml"), folder.path().join("hosts"));
    std::fs::write(&spec, SPEC).unwrap();
    std::fs::write(&file, hosts(&spec, &["--node", "n1"])).unwrap();
    let look_up = |name| in_a_namespace(LOOK_UP, &[file.to_str().unwrap(), name]);
    assert!(look_up("n1-rail1").is_ok());
    assert!(look_up("n2-rail1").is_err(), "--node n1 has no n2");
}

fn a_hundred_thousand_hosts_take_as_much_longer() {
    const RAILS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let time = |count: usize, alone: bool| {
        let spec = folder.path().join("spec.toml");
        let mut text =
            "version = 1\ncluster.name = \"t\"\nfabrics.f = { transport = \"roce\", speed = \"25G\" }\n".to_owned();
        for rail in 0..RAILS {
            writeln!(text, "networks.rail{rail} = {{ fabric = \"f\", cidr = \"10.{}.0.0/13\" }}", rail * 8).unwrap();
        }
        let ports = (0..RAILS).map(|rail| format!("{{ device = \"d{rail}\", network = \"rail{rail}\" }}"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let lists: Vec<String> = match alone {
            false => vec![format!("n[000001-{count:06}]")],
            true => (1..=count).map(|host| format!("n{host:06}")).collect(),
        };
        for list in lists {
            writeln!(text, "[[nodes]]\nhosts = \"{list}\"\nports = [{ports}]").unwrap();
        }
        std::fs::write(&spec, &text).unwrap();
        // The least of three: what the machine can, without what else it had to do.
        let run = || {
            let spec = selvedge::spec::load("spec", &text).unwrap().spec;
            let start = Instant::now();
            let all = selvedge::hosts::interfaces(&spec).unwrap();
            let lines = selvedge::hosts::lines(&spec.cluster.name, &all);
            assert_eq!(lines.lines().count(), 1 + count * RAILS);
            start.elapsed()
        };
        (0..3).map(|_| run()).min().unwrap()
    };
    for alone in [false, true] {
        let (few, many) = if alone { (1_000, 10_000) } else { (10_000, 100_000) };
        let [small, large] = [few, many].map(|count| time(count, alone));
        eprintln!("{few} hosts {small:?}, {many} hosts {large:?}");
        assert!(large < small * 25, "{few} hosts {small:?}, {many} hosts {large:?}: not linear");
        let most = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 2 });
        assert!(large < most, "{many} hosts take {large:?}");
    }
}
