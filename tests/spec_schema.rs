//! The JSON Schema in `schemas/` is the one the code makes, takes each example, and has the decoder's keys.
//!
//! `SELVEDGE_BLESS=1 cargo test --test spec_schema` writes it anew: read the diff.

#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use selvedge::spec::{FaultRecord, load, schema};
use serde_json::Value;

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn examples() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            all.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!all.is_empty());
    all
}

fn json(toml: &str) -> Value {
    let value: toml::Value = toml::from_str(toml).unwrap();
    serde_json::to_value(value).unwrap()
}

#[test]
fn the_schema_is_current() {
    let path = folder("schemas/spec.schema.json");
    let made = format!("{:#}\n", schema());
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), made, "run with SELVEDGE_BLESS=1");
}

#[test]
fn each_example_is_valid_for_the_schema_and_for_load() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for (name, text) in examples() {
        let errors: Vec<_> = validator.iter_errors(&json(&text)).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let checked = load(&name, &text).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(checked.warnings.faults.is_empty(), "{}", checked.warnings);
    }
}

#[test]
fn what_the_schema_refuses_load_refuses_too() {
    // Patterns in the schema may be wider than the decoder, never narrower. These codes it can see.
    let seen = ["unknown-key", "missing-key", "wrong-type", "unknown-word", "bad-guid", "bad-pci-address", "bad-speed"];
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(folder("tests/invalid")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let Ok(value) = toml::from_str::<toml::Value>(&text) else { continue };
        let valid = validator.is_valid(&serde_json::to_value(value).unwrap());
        let records = faults(&text);
        if !valid {
            assert!(records.iter().any(|r| r.code != "no-standby"), "{}: only the schema refuses it", path.display());
        }
        if records.iter().any(|record| seen.contains(&record.code)) {
            assert!(!valid, "{}: only load refuses it", path.display());
            count += 1;
        }
    }
    assert!(count >= seen.len());
}

fn faults(text: &str) -> Vec<FaultRecord> {
    load("spec.toml", text).map_or_else(|faults| faults.records(), |checked| checked.warnings.records())
}

/// A table of the schema: the headers that lead to it, and its keys.
type Tables = Vec<(Vec<String>, BTreeSet<String>)>;

/// Walks the schema; `headers` are the TOML lines so far, the last one that of `object`.
fn tables(object: &Value, path: &str, headers: &[String], out: &mut Tables) {
    let Some(properties) = object["properties"].as_object() else { return };
    out.push((headers.to_vec(), properties.keys().cloned().collect()));
    for (key, property) in properties {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let below = |header: String| [headers, &[header]].concat();
        if property["type"] == "array" {
            tables(&property["items"], &path, &below(format!("[[{path}]]")), out);
        } else if property.get("propertyNames").is_some() {
            tables(&property["additionalProperties"], &format!("{path}.x"), &below(format!("[{path}.x]")), out);
        } else {
            tables(property, &path, &below(format!("[{path}]")), out);
        }
    }
}

#[test]
fn the_schema_has_the_decoders_keys() {
    let mut all = Vec::new();
    tables(&schema(), "", &[], &mut all);
    assert_eq!(all.len(), 10, "{all:?}");
    for (headers, keys) in all {
        let header = headers.join("\n");
        // The help for a key that is like no other lists those there are.
        let unknown = format!("{header}\nqqqqqqqqqqqqqqqqqqqqqqqq = 1\n");
        let fault = faults(&unknown).into_iter().find(|fault| fault.code == "unknown-key").unwrap();
        let help = fault.help.unwrap();
        let decoders: BTreeSet<_> = help.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(decoders, keys, "{header}");
        // And the decoder reads each: a date is of no key's type.
        for key in &keys {
            let dated = format!("{header}\n{key} = 1979-05-27\n");
            let line = headers.len() + 1 + usize::from(headers.is_empty());
            let read = faults(&dated).into_iter().any(|fault| fault.code == "wrong-type" && fault.line == line);
            assert!(read, "{header} {key}: {:?}", faults(&dated));
        }
    }
}
