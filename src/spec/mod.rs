//! The spec: from TOML text to checked values, or every fault at once.

pub mod model;

pub use model::*;
