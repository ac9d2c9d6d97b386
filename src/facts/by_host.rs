//! Facts of many hosts: what each host answered, as `selvedge facts` prints it, and read back.
//!
//! Text comes in, facts or errors by host go out. Nothing here asks a host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::Facts;
use crate::name::HostName;

/// What `selvedge facts` prints of several hosts: by the name that each was asked by.
pub type FactsByHost = BTreeMap<HostName, Answer>;

/// What came of asking one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    /// What it has.
    Facts(Box<Facts>),
    /// It did not answer.
    None(NoAnswer),
}

/// Why there are no facts of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoAnswer {
    /// In words.
    pub error: String,
}

/// Why a text is not what `selvedge facts` prints.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Neither of its two shapes.
    #[error("it is not what `selvedge facts` prints: {0}")]
    Shape(#[from] serde_json::Error),
    /// Nothing says which host these are the facts of.
    #[error("these facts have no `hostname`; put them below a name of your choice: {{\"NAME\": ...}}")]
    Nameless,
    /// A host has facts twice.
    #[error("the facts of {host} are there twice: keep one")]
    Twice {
        /// The host.
        host: HostName,
    },
}

/// Reads the facts of one host, which has its own name then, or of many: also one after the other, as `cat` makes
/// them of several files.
///
/// # Errors
/// When the text is neither, or has a host twice.
pub fn read(text: &str) -> Result<FactsByHost, ReadError> {
    if text.trim().is_empty() {
        return Err(serde_json::Error::custom("it is empty").into());
    }
    let mut all = FactsByHost::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        for (host, answer) in one(value?)? {
            if all.insert(host.clone(), answer).is_some() {
                return Err(ReadError::Twice { host });
            }
        }
    }
    Ok(all)
}

fn one(value: Value) -> Result<FactsByHost, ReadError> {
    // Facts have a version, and no version of a host is a number.
    if value.get("version").is_none_or(|version| !version.is_number()) {
        let by_host: BTreeMap<HostName, Value> = serde_json::from_value(value)?;
        let read = by_host
            .into_iter()
            .map(|(host, value)| answer(value).map_err(|error| of_host(&host, &error)).map(|answer| (host, answer)));
        return Ok(read.collect::<Result<_, _>>()?);
    }
    let facts: Facts = serde_json::from_value(value)?;
    let host = facts.hostname.clone().ok_or(ReadError::Nameless)?;
    Ok(BTreeMap::from([(host, Answer::Facts(Box::new(facts)))]))
}

fn answer(value: Value) -> serde_json::Result<Answer> {
    fn of<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
        serde_json::from_value(value)
    }
    if value.get("error").is_some() { of(value).map(Answer::None) } else { of(value).map(Answer::Facts) }
}

fn of_host(host: &HostName, error: &serde_json::Error) -> serde_json::Error {
    serde_json::Error::custom(format!("{host}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE01: &str = include_str!("../../tests/reports/node01.facts.json");

    #[test]
    fn one_host_has_its_own_name_and_many_have_those_they_were_asked_by() {
        let one = read(NODE01).unwrap();
        assert_eq!(one.keys().map(HostName::as_str).collect::<Vec<_>>(), ["node01"]);
        let many = read(&format!("{{\"n1\": {NODE01}, \"n2\": {{\"error\": \"it is off\"}}}}")).unwrap();
        assert_eq!(many["n1"], one["node01"]);
        assert_eq!(many["n2"], Answer::None(NoAnswer { error: "it is off".to_owned() }));
        assert_eq!(read(&serde_json::to_string(&many).unwrap()).unwrap(), many, "what is written is read back");
        let other = NODE01.replace("\"node01\"", "\"node02\"");
        let both = read(&format!("{NODE01}\n{other}")).unwrap();
        assert_eq!(both.keys().map(HostName::as_str).collect::<Vec<_>>(), ["node01", "node02"]);
        assert!(matches!(read(&format!("{NODE01}{NODE01}")), Err(ReadError::Twice { .. })));
        let newer = read(&NODE01.replace("\"version\": 1", "\"version\": 2")).unwrap_err().to_string();
        assert!(newer.contains("facts of version 2, and this selvedge reads 1"), "{newer}");
        assert!(read(&format!("{NODE01} nonsense")).is_err() && read("\n").is_err());
    }

    #[test]
    fn what_is_not_read_is_named_with_its_host() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert!(said("[]").starts_with("it is not what `selvedge facts` prints"), "{}", said("[]"));
        let wrong = said("{\"n1\": {\"version\": 1}}");
        assert!(wrong.contains("n1: missing field"), "{wrong}");
        assert!(said("{\"n1\": {\"error\": \"x\", \"more\": 1}}").contains("unknown field `more`"));
        assert!(said("{\"a b\": {}}").contains("`a b` is not a host name"));
        let nameless = NODE01.replace("\"hostname\": \"node01\"", "\"hostname\": null");
        assert!(said(&nameless).contains("have no `hostname`"));
    }
}
