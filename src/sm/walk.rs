//! Walks the fabric by directed routes, which need no LID, no manager and no
//! subnet administration: it works on exactly the day when those are broken.
//!
//! In: a way to ask, and bounds. Out: every end port with its address and
//! whether it claims a manager. The number of questions is linear in the
//! fabric's ports, and the walk ends at its deadline with what it has.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::mad::{Attribute, NodeDescription, NodeInfo, NodeType, PhysicalState, PortInfo, PortState};
use super::mads::{MadError, Mads, path_text};
use super::seen::{Coverage, CutShort};
use crate::rdma::Guid;

/// A directed route has 63 hops at most (14.2.1.2: entry 0 is unused).
const MOST_HOPS: usize = 63;

/// How far a walk may go.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// When it ends whatever is left.
    pub deadline: Instant,
    /// How long one answer may take; a silent one is asked once more.
    pub timeout: Duration,
    /// End ports, all told.
    pub most_ports: usize,
}

/// An end port on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndPort {
    /// What is at its node.
    pub node: NodeInfo,
    /// Its state.
    pub port: PortInfo,
    /// Its node's text.
    pub description: NodeDescription,
    /// How to get there.
    pub path: Vec<u8>,
}

/// What the walk found.
#[derive(Debug, Default)]
pub struct Walk {
    /// The local port first.
    pub ports: Vec<EndPort>,
    /// How much was looked at.
    pub coverage: Coverage,
}

struct Walker<'a, M> {
    mads: &'a mut M,
    bounds: Bounds,
    seen: HashSet<Guid>,
    ahead: VecDeque<Vec<u8>>,
    found: Walk,
}

/// Walks everything that the local port reaches.
///
/// # Errors
/// [`MadError`] when the local port itself can't be asked. Silence further out
/// is part of the result.
pub fn walk<M: Mads>(mads: &mut M, bounds: Bounds) -> Result<Walk, MadError> {
    let mut walker = Walker { mads, bounds, seen: HashSet::new(), ahead: VecDeque::new(), found: Walk::default() };
    walker.visit(&[])?;
    while let Some(path) = walker.ahead.pop_front() {
        if let Some(reason) = walker.out_of_bounds() {
            walker.found.coverage.cut_short = Some(reason);
            break;
        }
        match walker.visit(&path) {
            Ok(()) => {}
            Err(error @ MadError::Local(_)) => return Err(error),
            Err(MadError::Silent { .. } | MadError::Refused { .. }) => {
                walker.found.coverage.silent.push(path_text(&path));
            }
        }
    }
    Ok(walker.found)
}

impl<M: Mads> Walker<'_, M> {
    fn out_of_bounds(&self) -> Option<CutShort> {
        if Instant::now() >= self.bounds.deadline {
            Some(CutShort::Deadline)
        } else if self.found.ports.len() >= self.bounds.most_ports {
            Some(CutShort::TooManyPorts)
        } else {
            None
        }
    }

    fn visit(&mut self, path: &[u8]) -> Result<(), MadError> {
        let node = NodeInfo::decode(&self.ask(path, Attribute::NodeInfo, 0)?);
        match node.node_type {
            NodeType::Switch => self.visit_switch(path, node),
            NodeType::Ca | NodeType::Router | NodeType::Reserved(_) => self.visit_end(path, node),
        }
    }

    fn visit_end(&mut self, path: &[u8], node: NodeInfo) -> Result<(), MadError> {
        if !self.seen.insert(node.port_guid) {
            return Ok(());
        }
        let number = node.local_port;
        let port = PortInfo::decode(&self.ask(path, Attribute::PortInfo, u32::from(number))?);
        let leads_on = path.is_empty() && is_up(&port);
        self.keep(path, node, port)?;
        if leads_on {
            self.ahead.push_back(vec![number]);
        }
        Ok(())
    }

    fn visit_switch(&mut self, path: &[u8], node: NodeInfo) -> Result<(), MadError> {
        if !self.seen.insert(node.node_guid) {
            return Ok(());
        }
        self.found.coverage.switches += 1;
        let (ports, came_in_by) = (node.ports, node.local_port);
        // Managed switches run their manager on port 0.
        let own = PortInfo::decode(&self.ask(path, Attribute::PortInfo, 0)?);
        self.keep(path, node, own)?;
        for number in (1..=ports).filter(|n| *n != came_in_by || path.is_empty()) {
            if self.out_of_bounds().is_some() || path.len() >= MOST_HOPS {
                break;
            }
            let next: Vec<u8> = path.iter().copied().chain([number]).collect();
            match self.ask(path, Attribute::PortInfo, u32::from(number)) {
                Ok(block) if is_up(&PortInfo::decode(&block)) => self.ahead.push_back(next),
                Ok(_) => {}
                Err(error @ MadError::Local(_)) => return Err(error),
                Err(MadError::Silent { .. } | MadError::Refused { .. }) => {
                    self.found.coverage.silent.push(path_text(&next));
                }
            }
        }
        if self.out_of_bounds() == Some(CutShort::Deadline) {
            self.found.coverage.cut_short = Some(CutShort::Deadline);
        }
        Ok(())
    }

    fn keep(&mut self, path: &[u8], node: NodeInfo, port: PortInfo) -> Result<(), MadError> {
        // A switch's text matters only when a manager runs on it.
        let wanted = node.node_type != NodeType::Switch || port.is_sm();
        let description = match wanted.then(|| self.ask(path, Attribute::NodeDescription, 0)) {
            Some(Ok(block)) => NodeDescription::decode(&block),
            Some(Err(error @ MadError::Local(_))) => return Err(error),
            Some(Err(_)) | None => NodeDescription::default(),
        };
        self.found.ports.push(EndPort { node, port, description, path: path.to_vec() });
        Ok(())
    }

    /// Packets of subnet management are not acknowledged: one may get lost.
    fn ask(&mut self, path: &[u8], attribute: Attribute, modifier: u32) -> Result<super::mad::Block, MadError> {
        self.found.coverage.questions += 1;
        match self.mads.get_directed(path, attribute, modifier, self.bounds.timeout) {
            Err(MadError::Silent { .. }) => {
                self.found.coverage.questions += 1;
                self.mads.get_directed(path, attribute, modifier, self.bounds.timeout)
            }
            answer => answer,
        }
    }
}

/// Whether the port's link leads anywhere. A port in Initialize does: without a
/// manager that is as far as it gets.
fn is_up(port: &PortInfo) -> bool {
    let linked = matches!(port.physical_state, PhysicalState::LinkUp | PhysicalState::ErrorRecovery);
    linked && matches!(port.state, PortState::Initialize | PortState::Armed | PortState::Active)
}
