//! The spec: from TOML text to checked values, or every fault at once.

mod build;
mod check;
mod decode;
mod draft;
pub mod fault;
pub mod keys;
pub mod model;
mod nearest;
mod pci;
pub mod quantity;
mod report;
mod schema;

pub use decode::VERSION;
pub use fault::{Code, Fault, Located, Severity, Span};
pub use model::*;
pub use report::{FaultRecord, Look};
pub use schema::schema;

/// A commented spec to start from: what `selvedge init` writes.
pub const STARTER: &str = include_str!("../../examples/quickstart.toml");

/// A spec that can be used, and what was noticed on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The spec.
    pub spec: Spec,
    /// Warnings; often none.
    pub warnings: Faults,
}

/// All faults of a text, in its order. Printed, they are plain messages; `render` has others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// What the text is called in messages: its path, or `<stdin>`.
    pub name: String,
    /// The text.
    pub text: String,
    /// The faults.
    pub faults: Vec<Fault>,
}

/// Reads and checks a spec. `name` is what messages call it.
///
/// # Errors
/// All faults at once, if one of them is an error.
pub fn load(name: &str, text: &str) -> Result<Checked, Faults> {
    let decode::Decoded { draft, mut faults, whole } = decode::decode(text);
    if whole {
        faults.extend(check::check(&draft));
    }
    faults.sort_by_key(|fault| (fault.span, fault.code));
    let refused = faults.iter().any(|fault| fault.severity() == Severity::Error);
    let faults = Faults { name: name.to_owned(), text: text.to_owned(), faults };
    match build::build(draft) {
        Some(spec) if !refused => Ok(Checked { spec, warnings: faults }),
        _ => Err(faults),
    }
}
