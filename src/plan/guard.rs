//! Refuses changes that would cut the branch one sits on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::IfName;
use crate::state::{Change, Object};

/// A link that must not be disturbed without a way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Protected {
    /// The link.
    pub link: IfName,
    /// What it carries: "the default route", "this SSH connection from 10.0.2.2".
    pub carries: String,
}

/// A change that is not made without `--confirm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first change that would disturb the link.
    pub change: Change,
    /// The link and what it carries.
    pub protected: Protected,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, protected } = self;
        write!(f, "{} carries {}, and changing {} would disturb it", protected.link, protected.carries, change.object)
    }
}

/// The protected links that `changes` would disturb, each with its first change.
#[must_use]
pub fn guard(changes: &[Change], protected: &[Protected]) -> Vec<Refusal> {
    let refusal = |protected: &Protected| {
        let disturbing = |change: &&Change| disturbs(change) && change.disturbs.contains(&protected.link);
        changes.iter().find(disturbing).map(|change| Refusal { change: change.clone(), protected: protected.clone() })
    };
    protected.iter().filter_map(refusal).collect()
}

/// Adding an address or writing a file does not disturb a link; all else on it can.
fn disturbs(change: &Change) -> bool {
    match change.object {
        Object::Address { .. } | Object::Route { .. } => change.removes(),
        Object::File { .. } => false,
        _ => true,
    }
}

/// What an apply of `changes` would refuse, in words; `None` when it would not.
#[must_use]
pub fn refused(changes: &[Change], protected: &[Protected]) -> Option<String> {
    let refusals: Vec<String> = guard(changes, protected).iter().map(Refusal::to_string).collect();
    (!refusals.is_empty()).then(|| format!("apply would refuse this without --confirm: {}", refusals.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Reason, State};

    #[test]
    fn a_plan_says_what_an_apply_would_refuse() {
        let link = |name: &str| -> IfName { name.parse().unwrap() };
        let change = Change {
            object: Object::LinkMtu { link: link("ib0") },
            before: State::Mtu { bytes: 2044 },
            after: State::Mtu { bytes: 65520 },
            reason: Reason("test".into()),
            disturbs: [link("ib0"), link("ib1")].into(),
            condition: None,
        };
        let carries = |name: &str| Protected { link: link(name), carries: "the default route".into() };
        assert_eq!(refused(std::slice::from_ref(&change), &[carries("eth0")]), None);
        assert_eq!(
            refused(std::slice::from_ref(&change), &[carries("ib0")]).unwrap(),
            "apply would refuse this without --confirm: ib0 carries the default route, and changing ib0 MTU would disturb it"
        );
        assert!(refused(&[change], &[carries("ib1")]).unwrap().contains("ib1 carries the default route"));
    }
}
