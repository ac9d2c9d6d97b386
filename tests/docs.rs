//! What the pages say is so: the example, the commands, the tests behind the promises, the links.
#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge::spec::keys::{self, Need, Shape};

/// What the reference begins with.
const REFERENCE: &str = "\
# The spec, key by key

One TOML file says what a cluster's network is. Each table and each key that selvedge takes is
here, made from the same list that the decoder and `selvedge schema` use; anything else is refused
with its line and a suggestion. `selvedge check` reports all faults at once, `selvedge show` what
one host gets, with the line that each value is from. [examples/](../examples/README.md) has whole
files, [GLOSSARY.md](../GLOSSARY.md) the words.

Hosts are written as ClusterShell or Slurm host lists: `node[01-16]`, `rack[1-3]n[01-08]`,
`gpu[1-4,7]`. A host's address is the network's base and its number, which by default is the last
number in its name: in `10.0.0.0/16`, `node07` has `10.0.0.7`. Names of fabrics and networks are
yours to choose.

What is special about single hosts takes a line each, however many hosts a group has:

```toml
[hosts]
node0017.guids.ib0 = \"0x0002c90300000017\"           # the port that is to be ib0
node0018.guids.ib0 = \"0x0002c90300000018\"
node0018.addresses.compute = \"10.0.200.18\"          # not what its number says
```
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The pages of the repository, by their path.
fn pages() -> Vec<(PathBuf, String)> {
    let folders = [".", "docs", "examples", "schemas", "tests/lab"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let pages: Vec<_> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    assert!(pages.len() > 6, "{pages:?}");
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// What stands between single backticks, and the lines of code blocks.
fn code(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            found.push(line.to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_readme_has_the_quickstart_word_for_word() {
    let block = format!("```toml\n{}```\n", read("examples/quickstart.toml"));
    assert!(read("README.md").contains(&block), "copy examples/quickstart.toml into README.md");
}

/// What a comment of the example calls a key or table of another place is one.
#[test]
fn the_quickstart_promises_what_there_is() {
    let quickstart = read("examples/quickstart.toml");
    let exceptions = quickstart.lines().find_map(|line| line.strip_suffix(" in [hosts.NAME]")).unwrap();
    let key = exceptions.rsplit(' ').next().unwrap();
    assert!(keys::HOST_EXCEPTION.key(key).is_some(), "[hosts.NAME] has no {key}");
    let tables = keys::FABRIC.keys.iter().filter(|key| matches!(key.shape, Shape::One(_)));
    let tables: Vec<&str> = tables.map(|key| key.name).collect();
    let promised = quickstart.contains("with a table of its own");
    assert_eq!(promised, tables.contains(&"fat-tree"), "[fabrics.NAME] has the tables {tables:?}");
}

#[test]
fn each_command_in_the_pages_is_one() {
    let mut seen = BTreeSet::new();
    for (path, page) in pages() {
        for line in code(&page) {
            let mut words = line.split_whitespace();
            if words.next() != Some("selvedge") {
                continue;
            }
            let mut arguments: Vec<&str> =
                words.take(2).filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect();
            if arguments.first() != Some(&"sm") {
                arguments.truncate(1);
            }
            if arguments.is_empty() || !seen.insert(arguments.join(" ")) {
                continue;
            }
            let binary = env!("CARGO_BIN_EXE_selvedge");
            let output = Command::new(binary).args(&arguments).arg("--help").output().unwrap();
            assert!(output.status.success(), "{}: there is no `selvedge {}`", path.display(), arguments.join(" "));
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn each_option_in_the_pages_is_one() {
    for (path, page) in pages() {
        for line in code(&page) {
            // What follows a pipe, another command or a comment is not ours.
            let line = line.split([';', '|', '#', '>']).next().unwrap_or_default();
            let mut words = line.split_whitespace();
            if words.next() != Some("selvedge") {
                continue;
            }
            let rest: Vec<&str> = words.collect();
            let command: Vec<&str> =
                rest.iter().take(if rest.first() == Some(&"sm") { 2 } else { 1 }).copied().collect();
            let output = Command::new(env!("CARGO_BIN_EXE_selvedge")).args(&command).arg("--help").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            for option in rest.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or_default();
                assert!(help.contains(option), "{}: `{line}`: there is no {option}", path.display());
            }
        }
    }
}

/// All Rust sources, as one text.
fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn each_promise_names_tests_that_are_there() {
    let mut all = String::new();
    sources(&root().join("src"), &mut all);
    sources(&root().join("tests"), &mut all);
    let readme = read("README.md");
    let promises = readme.split("## Promises").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = promises.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10);
    for row in rows {
        let tests = code(row.rsplit('|').nth(1).unwrap());
        assert!(!tests.is_empty(), "a promise without a test: {row}");
        for test in tests {
            // A function, or one of those that a test program of its own lists by name.
            let is_there = [format!("fn {test}("), format!("(\"{test}\",")].iter().any(|form| all.contains(form));
            assert!(is_there, "there is no test {test}");
        }
    }
}

#[test]
fn links_inside_the_repository_lead_somewhere() {
    for (path, page) in pages() {
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if link.contains("://") || file.is_empty() {
                continue;
            }
            assert!(path.parent().unwrap().join(file).exists(), "{}: {link} leads nowhere", path.display());
        }
    }
}

#[test]
fn each_example_is_described() {
    let readme = read("examples/README.md");
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || readme.contains(&format!("]({name})")), "examples/README.md leaves out {name}");
    }
}

/// The reference of the spec's keys, as Markdown.
fn reference() -> String {
    let mut page = REFERENCE.to_owned();
    for table in keys::TABLES {
        let title = if table.title.starts_with('[') { format!("`{}`", table.title) } else { "The file".to_owned() };
        writeln!(page, "\n## {title}\n\n{}\n\n| Key | Takes | Meaning |\n|---|---|---|", table.doc).unwrap();
        for key in table.keys {
            let need = if matches!(key.need, Need::Required) { "**Required.** " } else { "" };
            writeln!(page, "| `{}` | {} | {need}{} |", key.name, takes(&key.shape), key.doc).unwrap();
        }
    }
    page
}

fn takes(shape: &Shape) -> String {
    match shape {
        Shape::Words(words) => words().iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        Shape::Text(_, example) => format!("text such as `\"{example}\"`"),
        Shape::Texts(_, _, example) => format!("a list such as `[\"{example}\"]`"),
        Shape::Integer(from, to) => format!("{from} to {to}"),
        Shape::Integers(all) => all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", "),
        Shape::Any(shapes) => shapes.iter().map(takes).collect::<Vec<_>>().join(", or "),
        Shape::Option => "a number, a text, `true` or `false`".to_owned(),
        Shape::One(table) | Shape::Named(_, table) => format!("`{}`", table.title),
        Shape::Rows(table) => format!("`{}`, once or more", table.title),
        Shape::Map(_, example, shape) => format!("a table by such keys as `{example}`: {}", takes(shape)),
        Shape::Free(_, shape) => format!("tables by name, with keys of your choice: {}", takes(shape)),
    }
}

#[test]
fn the_reference_of_the_spec_has_each_key() {
    let made = reference();
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        fs::write(root().join("docs/spec.md"), &made).unwrap();
    }
    assert!(read("docs/spec.md") == made, "docs/spec.md is not current: run with SELVEDGE_BLESS=1");
}
