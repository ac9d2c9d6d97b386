//! The JSON Schemas in `schemas/` are those that `selvedge schema` prints, and take real reports.
//!
//! `SELVEDGE_BLESS=1 cargo test --test schemas_current` writes them anew: read
//! the diff. `tests/reports/` has what the commands printed on the lab's nodes; in that of two hosts, the second is made up.
#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const SCHEMAS: [&str; 10] =
    ["spec", "check", "show", "render", "plan", "report", "facts", "facts-by-host", "hosts", "sm-status"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn printed(of: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge")).args(["schema", of]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn errors(of: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&printed(of)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path())).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_schema_is_what_the_command_prints() {
    for of in SCHEMAS {
        let path = folder("schemas").join(format!("{of}.schema.json"));
        let made = printed(of);
        if std::env::var_os("SELVEDGE_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "{} is not current: run with SELVEDGE_BLESS=1", path.display());
    }
}

#[test]
fn no_other_schemas_lie_about() {
    let count = fs::read_dir(folder("schemas"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "json"));
    assert_eq!(count.count(), SCHEMAS.len());
}

/// `NAME.OF.json` is a report that the schema OF describes.
#[test]
fn real_reports_are_valid_and_strange_ones_are_not() {
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder("tests/reports")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(of) = name.strip_suffix(".json").and_then(|name| name.rsplit('.').next()) else { continue };
        let report = json(&path);
        assert_eq!(errors(of, &report), [""; 0], "{name}");
        // Without one of its fields it is none.
        let mut broken = report;
        let part = match of {
            "facts-by-host" => broken.as_object_mut().unwrap().values_mut().next().unwrap(),
            _ if broken.is_array() => &mut broken[0],
            _ => &mut broken,
        };
        let field = ["node", "cluster", "kernel", "fabric", "code", "address"]
            .iter()
            .find(|field| part.get(field).is_some())
            .unwrap();
        part.as_object_mut().unwrap().remove(*field);
        assert!(!errors(of, &broken).is_empty(), "{name} without {field} passes");
        seen.push(of.to_owned());
    }
    for of in SCHEMAS.iter().filter(|of| **of != "spec") {
        assert!(seen.iter().any(|seen| seen == of), "no report of {of} in tests/reports");
    }
}

#[test]
fn the_facts_of_the_golden_cases_are_valid() {
    for entry in fs::read_dir(folder("tests/cases")).unwrap() {
        let path = entry.unwrap().path().join("facts.json");
        assert_eq!(errors("facts", &json(&path)), [""; 0], "{}", path.display());
    }
}

#[test]
fn the_facts_of_this_host_are_valid() {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge")).arg("facts").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(errors("facts", &facts), [""; 0], "{facts:#}");
}
