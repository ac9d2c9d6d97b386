//! What the pages say is so: the example, the commands, the tests behind the promises, the links.
#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
            assert!(all.contains(&format!("fn {test}(")), "there is no test {test}");
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
