//! Asks the fabric who manages it.
//!
//! In: a way to ask, what the spec expects, and how long it may take. Out: what
//! was seen. It sets nothing, starts nothing, and judges nothing: that is
//! [`super::verdict`].
//!
//! The fabric's own record of managers (`SMInfoRecord`) is not used: it comes
//! from the manager in question, and can be stale.

use std::thread;
use std::time::{Duration, Instant};

use super::mad::{Attribute, SmInfo};
use super::mads::{MadError, Mads};
use super::seen::{Expected, LocalPort, Reading, Says, Seen, SeenPort, names_host};
use super::walk::{Bounds, EndPort, walk};

/// How long asking may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For one answer.
    pub timeout: Duration,
    /// For the walk over the fabric.
    pub walk: Duration,
    /// Between the two readings of a manager.
    pub between: Duration,
    /// End ports to look at, all told.
    pub most_ports: usize,
}

impl Default for Patience {
    /// A management agent answers within microseconds, and a manager in the
    /// middle of a heavy sweep within a few hundred milliseconds.
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(300),
            walk: Duration::from_secs(60),
            between: Duration::from_millis(500),
            most_ports: 50_000,
        }
    }
}

/// Asks.
///
/// # Errors
/// [`MadError`] when the local port itself can't be asked.
pub fn ask<M: Mads>(mads: &mut M, expected: &Expected, patience: &Patience) -> Result<Seen, MadError> {
    let deadline = Instant::now() + patience.walk;
    let found = walk(mads, Bounds { deadline, timeout: patience.timeout, most_ports: patience.most_ports })?;
    let mut coverage = found.coverage;
    let Some(local) = found.ports.first().map(local_port) else {
        return Err(MadError::Local("its node is neither a channel adapter nor a router".into()));
    };
    let mut ports = Vec::with_capacity(found.ports.len());
    for end in found.ports {
        let claims = end.port.is_sm() || is_expected(&end, expected) || points_at(&local, &end);
        let first = if claims { read(mads, &end, patience, &mut coverage.questions)? } else { None };
        ports.push((end, first));
    }
    if ports.iter().any(|(_, first)| first.is_some()) {
        thread::sleep(patience.between);
    }
    let mut seen = Seen { local, ports: Vec::with_capacity(ports.len()), coverage };
    for (end, first) in ports {
        let says = match first {
            Some(first) => {
                let second = read(mads, &end, patience, &mut seen.coverage.questions)?;
                Says::Manager(reading(&first, second.as_ref()))
            }
            None if end.port.is_sm() => Says::Silence,
            None => Says::Nothing,
        };
        seen.ports.push(seen_port(end, says));
    }
    Ok(seen)
}

/// SMInfo of a port. Nothing and silence both are `None`: a port without a
/// manager does not answer, or refuses the attribute.
fn read<M: Mads>(
    mads: &mut M,
    end: &EndPort,
    patience: &Patience,
    questions: &mut usize,
) -> Result<Option<SmInfo>, MadError> {
    // A claim that goes unanswered is asked again; without a claim once is enough.
    let tries = if end.port.is_sm() { 3 } else { 1 };
    for _ in 0..tries {
        *questions += 1;
        match mads.get_directed(&end.path, Attribute::SmInfo, 0, patience.timeout) {
            Ok(block) => return Ok(Some(SmInfo::decode(&block))),
            Err(error @ MadError::Local(_)) => return Err(error),
            Err(MadError::Silent { .. } | MadError::Refused { .. }) => {}
        }
    }
    Ok(None)
}

fn is_expected(end: &EndPort, expected: &Expected) -> bool {
    expected.managers.iter().any(|m| match m.guid {
        Some(guid) => guid == end.node.port_guid,
        None => names_host(&end.description, &m.host),
    })
}

/// Whether the local port was told that its master is there.
fn points_at(local: &LocalPort, end: &EndPort) -> bool {
    let first = u32::from(end.port.lid);
    let last = first + (1 << end.port.lmc) - 1;
    first != 0 && (first..=last).contains(&u32::from(local.master_sm_lid))
}

fn reading(first: &SmInfo, second: Option<&SmInfo>) -> Reading {
    let latest = second.unwrap_or(first);
    Reading {
        state: latest.state,
        priority: latest.priority,
        act_count: latest.act_count,
        moved_by: second.map(|s| s.act_count.wrapping_sub(first.act_count)),
    }
}

fn local_port(end: &EndPort) -> LocalPort {
    LocalPort {
        guid: end.node.port_guid,
        description: end.description.clone(),
        lid: end.port.lid,
        master_sm_lid: end.port.master_sm_lid,
        state: end.port.state,
        physical_state: end.port.physical_state,
    }
}

fn seen_port(end: EndPort, says: Says) -> SeenPort {
    let EndPort { node, port, description, path } = end;
    SeenPort {
        guid: node.port_guid,
        node_type: node.node_type,
        description,
        lid: port.lid,
        master_sm_lid: port.master_sm_lid,
        path,
        says,
    }
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;
