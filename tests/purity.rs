//! The pure core stays pure: what its modules name is read from their source.
//!
//! A pure module names no file, socket, process, environment or clock, and of
//! ours only modules that are pure themselves. Tests inside a module are not
//! looked at. A new module that only computes belongs into the list.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Modules below `src/`; a name that ends with `::*` stands for all modules below it too.
const PURE: &[&str] = &[
    "addressing",
    "apply::journal",
    "columns",
    "compile::*",
    "count",
    "facts",
    "facts::by_host",
    "facts::text",
    "hostlist::*",
    "hosts",
    "init::*",
    "intent",
    "name",
    "node::report",
    "perf::model",
    "perf::pattern",
    "perf::proof",
    "perf::snapshot",
    "perf::stats",
    "perf::units",
    "plan::*",
    "rdma",
    "render::*",
    "resolve::*",
    "sm::config",
    "sm::document",
    "sm::election",
    "sm::finding",
    "sm::mad::*",
    "sm::mads",
    "sm::report",
    "sm::seen",
    "sm::verdict",
    "spec::*",
    "state::*",
    "tag",
    "verbs::mad",
    "verify::checks",
    "verify::judge",
    "verify::model",
    "verify::pairs",
    "verify::rate",
    "verify::text",
];

/// Effects, as paths begin. `std::net` has addresses too, so its sockets are named one by one.
const EFFECTS: &[&str] = &[
    "std::fs",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "std::time::Instant",
    "std::time::SystemTime",
    "nix",
    "libc",
    "tokio",
    "rtnetlink",
    "zbus",
    "libloading",
    "tempfile",
];

/// What a module that passes its facts on does with an effect below it: the door is the shell's.
const DOORS: &[(&str, &str)] = &[
    ("facts", "gather::FactsError"),
    ("facts", "gather::gather"),
    ("facts", "gather::hardware_for"),
    ("facts", "gather::look_into"),
];

fn all_modules() -> Vec<(String, String)> {
    let mut all = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut all);
    all
}

/// Every module with its source.
fn collect(folder: &Path, prefix: &str, all: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{stem}::"), all);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            let module =
                if stem == "mod" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{stem}") };
            all.push((module, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn is_pure(module: &str) -> bool {
    PURE.iter().any(|pure| match pure.strip_suffix("::*") {
        Some(above) => module == above || module.strip_prefix(above).is_some_and(|rest| rest.starts_with("::")),
        None => module == *pure,
    })
}

/// The code without comments, without the contents of texts, and without the tests at its end.
fn code(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut code = String::new();
    for line in source.lines() {
        // A text with `//` in it loses its rest, which names nothing.
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// The paths that the code names: `use` trees spread out, and others as they stand.
fn paths(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        // Alone on its line but for its visibility: in a text, other words stand before it.
        let before = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_item = before.is_empty() || before == "pub" || before.starts_with("pub(");
        rest = &rest[at + 4..];
        if is_item && let Some(end) = rest.find(';') {
            spread("", &rest[..end].split_whitespace().collect::<Vec<_>>().join(" "), &mut found);
        }
    }
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named = code.split(|c: char| !is_path(c)).map(|word| word.trim_matches(':')).filter(|word| word.contains("::"));
    found.extend(named.map(str::to_owned));
    found
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn spread(above: &str, tree: &str, found: &mut BTreeSet<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim_end_matches("::self");
        found.insert(format!("{above}{path}").trim_end_matches("::self").to_owned());
        return;
    };
    let above = format!("{above}{}", &tree[..open]);
    let inside = tree[open + 1..].strip_suffix('}').unwrap_or_else(|| panic!("`use` without an end: {tree}"));
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inside[start..at].trim().is_empty() {
                    spread(&above, &inside[start..at], found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The module of ours that a path in `module` leads to, if it is one.
fn leads_to(module: &str, path: &str, modules: &BTreeSet<&str>) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut base: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    match parts[0] {
        "crate" => {
            base.clear();
            parts.remove(0);
        }
        "self" => drop(parts.remove(0)),
        "super" => {
            while parts.first() == Some(&"super") {
                base.pop();
                parts.remove(0);
            }
        }
        // A module below this one is named without a prefix.
        first if modules.contains([&base[..], &[first]].concat().join("::").as_str()) => {}
        _ => return None,
    }
    let whole = [base, parts].concat();
    (1..=whole.len()).rev().map(|count| whole[..count].join("::")).find(|name| modules.contains(name.as_str()))
}

fn violations(module: &str, source: &str, modules: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in paths(&code(source)) {
        let effect = EFFECTS.iter().any(|effect| path == *effect || path.starts_with(&format!("{effect}::")));
        let to = leads_to(module, &path, modules).filter(|to| to != module && !is_pure(to));
        let is_door = DOORS.contains(&(module, path.as_str()));
        match to {
            _ if effect => wrong.push(format!("{module} names the effect {path}")),
            Some(to) if !is_door => wrong.push(format!("{module} names {path}, and {to} is not pure")),
            _ => {}
        }
    }
    wrong
}

#[test]
fn pure_modules_name_no_effects() {
    let all = all_modules();
    let modules: BTreeSet<&str> =
        all.iter().map(|(module, _)| module.as_str()).filter(|name| !name.is_empty()).collect();
    for pure in PURE {
        assert!(modules.contains(pure.trim_end_matches("::*")), "no module {pure}: correct the list");
    }
    let pure = all.iter().filter(|(module, _)| is_pure(module));
    let wrong: Vec<_> = pure.flat_map(|(module, source)| violations(module, source, &modules)).collect();
    assert!(wrong.is_empty(), "move the effect out, or the value in:\n{}", wrong.join("\n"));
}

#[test]
fn an_effect_is_seen_however_it_is_named() {
    let modules = BTreeSet::from(["plan", "plan::diff", "cli", "facts", "facts::gather", "sm", "sm::umad", "state"]);
    for source in [
        "use std::fs;",
        "use std::{collections::BTreeMap, env};",
        "use std::time::{\n    Duration,\n    Instant,\n};",
        "fn f() { std::process::exit(1) }",
        "use std::net::{IpAddr, UdpSocket as Socket};",
        "pub(crate) use crate::cli::exit;",
        "use crate::{state::Change, sm::umad::ask};",
        "use super::super::facts::gather::gather;",
        "fn f() { crate::cli::main(); }",
    ] {
        assert_eq!(violations("plan::diff", source, &modules).len(), 1, "{source}");
    }
    for source in [
        "//! See std::fs.\nuse std::net::IpAddr;",
        "use std::time::Duration; // not Instant, std::time::Instant",
        "use crate::state::{self, Change};\nuse super::Desired;",
        "use crate::facts::Facts;",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
    ] {
        assert_eq!(violations("plan::diff", source, &modules), [""; 0], "{source}");
    }
}
