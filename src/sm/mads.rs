//! The seam to the fabric: questions of subnet management and their answers.
//!
//! In: an address or a directed route, and an attribute. Out: its 64 bytes, or
//! why there is none. An implementation asks only (SubnGet) and keeps to the
//! timeout that it is given.

use std::time::Duration;

use thiserror::Error;

use super::mad::{Attribute, Block};

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum MadError {
    /// Nobody answered in time.
    #[error("no answer to {} from {target}", attribute.as_str())]
    Silent {
        /// What was asked.
        attribute: Attribute,
        /// Who: a LID, or a directed route.
        target: String,
    },
    /// The other side answered with an error.
    #[error("{target} refused {} with status {status:#06x}", attribute.as_str())]
    Refused {
        /// What was asked.
        attribute: Attribute,
        /// Who: a LID, or a directed route.
        target: String,
        /// `MADHeader:Status`.
        status: u16,
    },
    /// This host's own end failed: nothing else can be asked either.
    #[error("the local port can't be asked")]
    Local(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Asks the fabric.
pub trait Mads {
    /// SubnGet by LID.
    ///
    /// # Errors
    /// See [`MadError`].
    fn get(&mut self, dlid: u16, attribute: Attribute, modifier: u32, timeout: Duration) -> Result<Block, MadError>;

    /// SubnGet by directed route: the port to leave by at each hop, the local
    /// port first. An empty route is the local port itself.
    ///
    /// # Errors
    /// See [`MadError`].
    fn get_directed(
        &mut self,
        path: &[u8],
        attribute: Attribute,
        modifier: u32,
        timeout: Duration,
    ) -> Result<Block, MadError>;
}

/// A directed route as infiniband-diags writes it: `0,1,17`.
#[must_use]
pub fn path_text(path: &[u8]) -> String {
    path.iter().fold("0".to_owned(), |text, hop| format!("{text},{hop}"))
}
