//! The fabric asked through a port of this host.
//!
//! In: an RDMA device and port, and what the spec expects. Out: the report of
//! `selvedge sm status`. It needs write permission on `/dev/infiniband/umadN`,
//! and only ever sends SubnGet.

use std::time::Duration;

use thiserror::Error;

use super::mad::{Attribute, Block};
use super::mads::{MadError, Mads, path_text};
use super::report::StatusReport;
use super::seen::Expected;
use super::status::{Patience, ask};
use super::verdict::judge;
use crate::name::DeviceName;
use crate::verbs::mad::Mad;
use crate::verbs::umad::{Umad, UmadError};

/// Why there is no report.
#[derive(Debug, Error)]
pub enum StatusError {
    /// The port can't be opened.
    #[error("the managers of fabric {fabric} can't be asked")]
    Open {
        /// The fabric.
        fabric: String,
        /// What was wrong with the port.
        #[source]
        source: UmadError,
    },
    /// The port can't be asked.
    #[error("the managers of fabric {fabric} can't be asked")]
    Ask {
        /// The fabric.
        fabric: String,
        /// What was wrong.
        #[source]
        source: MadError,
    },
}

/// Asks the fabric through one port, and judges.
///
/// # Errors
/// [`StatusError`] when the port itself is the trouble; what is wrong with the
/// fabric is in the report.
pub fn status(
    device: &DeviceName,
    port: u8,
    expected: &Expected,
    patience: &Patience,
) -> Result<StatusReport, StatusError> {
    let fabric = || expected.fabric.to_string();
    let mut umad = Umad::open(device, port).map_err(|source| StatusError::Open { fabric: fabric(), source })?;
    let seen = ask(&mut umad, expected, patience).map_err(|source| StatusError::Ask { fabric: fabric(), source })?;
    Ok(StatusReport::new(&seen, expected, &judge(&seen, expected)))
}

impl Mads for Umad {
    fn get(&mut self, dlid: u16, attribute: Attribute, modifier: u32, timeout: Duration) -> Result<Block, MadError> {
        let answer = Self::get(self, dlid, attribute.id(), modifier, timeout);
        block(answer, attribute, || format!("LID {dlid}"))
    }

    fn get_directed(
        &mut self,
        path: &[u8],
        attribute: Attribute,
        modifier: u32,
        timeout: Duration,
    ) -> Result<Block, MadError> {
        let answer = Self::get_directed(self, path, attribute.id(), modifier, timeout);
        block(answer, attribute, || path_text(path))
    }
}

fn block(answer: Result<Mad, UmadError>, attribute: Attribute, target: impl Fn() -> String) -> Result<Block, MadError> {
    match answer {
        Ok(mad) => {
            let mut block = [0; 64];
            block.copy_from_slice(mad.data());
            Ok(block)
        }
        Err(UmadError::Timeout { .. }) => Err(MadError::Silent { attribute, target: target() }),
        Err(UmadError::Status { status, .. }) => Err(MadError::Refused { attribute, target: target(), status }),
        Err(error) => Err(MadError::Local(Box::new(error))),
    }
}
