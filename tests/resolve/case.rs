//! A golden case: spec, facts and a node's name from one folder.

use std::path::Path;
use std::{fs, io};

use selvedge::compile::compile;
use selvedge::facts::Facts;
use selvedge::name::HostName;
use selvedge::plan::Desired;
use selvedge::resolve::resolve;
use selvedge::spec::{Look, Spec, load};

/// A case, read.
pub(crate) struct Case {
    pub(crate) spec: Spec,
    pub(crate) facts: Facts,
    pub(crate) node: HostName,
}

impl Case {
    /// Reads the case in `folder`; without a spec of its own it has that of the quickstart.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let own = folder.join("spec.toml");
        let path = if own.exists() { own } else { Path::new("examples/quickstart.toml").to_owned() };
        let spec = load("spec.toml", &fs::read_to_string(path)?)
            .map_err(|faults| io::Error::other(faults.render(Look::Plain)))?
            .spec;
        let facts = serde_json::from_str(&fs::read_to_string(folder.join("facts.json"))?)?;
        let node = fs::read_to_string(folder.join("node"))?.trim().parse().map_err(io::Error::other)?;
        Ok(Self { spec, facts, node })
    }

    /// What is to be, or the message that an administrator reads.
    pub(crate) fn resolve(&self) -> Result<Desired, String> {
        let intent = compile(&self.spec, &self.node).map_err(|error| error.to_string())?;
        resolve(&intent, &self.facts).map_err(|faults| faults.to_string())
    }
}
