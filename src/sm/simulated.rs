//! A fabric in memory that answers as management agents do, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::election::Priority;
use super::mad::{
    Attribute, Block, CAPABILITY_IS_SM, NodeInfo, NodeType, PhysicalState, PortInfo, PortState, SmInfo, SmKey, SmState,
};
use super::mads::{MadError, Mads, path_text};
use crate::rdma::Guid;

/// Nodes by number; asked from the first channel adapter's port 1.
#[derive(Default)]
pub(crate) struct Fabric {
    nodes: Vec<Node>,
    links: BTreeMap<(usize, u8), (usize, u8)>,
    managers: BTreeMap<Guid, (SmState, Priority, u32)>,
    /// Ports that say that they have a manager, which is deaf.
    pub(crate) deaf: BTreeSet<Guid>,
    /// Nodes that answer nothing.
    pub(crate) dead: BTreeSet<usize>,
    /// All questions so far.
    pub(crate) questions: usize,
    /// The LID that each port was told of.
    pub(crate) master_sm_lid: u16,
    /// Every n-th question gets lost.
    pub(crate) loses_every: Option<usize>,
}

struct Node {
    node_type: NodeType,
    ports: u8,
    text: String,
}

impl Fabric {
    pub(crate) fn ca(&mut self, text: &str, ports: u8) -> usize {
        self.nodes.push(Node { node_type: NodeType::Ca, ports, text: text.to_owned() });
        self.nodes.len() - 1
    }

    pub(crate) fn switch(&mut self, text: &str, ports: u8) -> usize {
        self.nodes.push(Node { node_type: NodeType::Switch, ports, text: text.to_owned() });
        self.nodes.len() - 1
    }

    pub(crate) fn link(&mut self, a: (usize, u8), b: (usize, u8)) {
        self.links.insert(a, b);
        self.links.insert(b, a);
    }

    pub(crate) fn unlink(&mut self, a: (usize, u8)) {
        if let Some(b) = self.links.remove(&a) {
            self.links.remove(&b);
        }
    }

    pub(crate) fn guid(&self, node: usize, port: u8) -> Guid {
        let port = if self.nodes[node].node_type == NodeType::Switch { 0 } else { port };
        Guid(0x100 * (node as u64 + 1) + u64::from(port))
    }

    pub(crate) fn lid(node: usize, port: u8) -> u16 {
        u16::try_from(node).unwrap() * 4 + u16::from(port) + 1
    }

    pub(crate) fn manage(&mut self, node: usize, port: u8, state: SmState, priority: u8) {
        let guid = self.guid(node, port);
        self.managers.insert(guid, (state, Priority::new(priority).unwrap(), 0));
    }

    pub(crate) fn kill(&mut self, node: usize, port: u8) {
        self.managers.remove(&self.guid(node, port));
    }

    /// Where a directed route ends, and the port by which it came in.
    fn follow(&self, path: &[u8]) -> Option<(usize, u8)> {
        let (mut at, mut came_in_by) = (0, 1);
        for (hop, out) in path.iter().enumerate() {
            if hop > 0 && self.nodes[at].node_type != NodeType::Switch || self.dead.contains(&at) {
                return None;
            }
            (at, came_in_by) = *self.links.get(&(at, *out))?;
        }
        (!self.dead.contains(&at)).then_some((at, came_in_by))
    }

    fn node_info(&self, node: usize, local_port: u8) -> Block {
        NodeInfo {
            base_version: 1,
            class_version: 1,
            node_type: self.nodes[node].node_type,
            ports: self.nodes[node].ports,
            system_image_guid: self.guid(node, 0),
            node_guid: self.guid(node, 0),
            port_guid: self.guid(node, local_port),
            partition_cap: 8,
            device_id: 0,
            revision: 0,
            local_port,
            vendor_id: 0,
        }
        .encode()
    }

    fn port_info(&self, node: usize, number: u8, local_port: u8) -> Block {
        let switch = self.nodes[node].node_type == NodeType::Switch;
        let guid = self.guid(node, number);
        let up = self.links.contains_key(&(node, number)) || switch && number == 0;
        let endport = !switch || number == 0;
        let is_sm = endport && (self.managers.contains_key(&guid) || self.deaf.contains(&guid));
        PortInfo {
            lid: if endport { Self::lid(node, number) } else { 0 },
            master_sm_lid: if endport { self.master_sm_lid } else { 0 },
            capability_mask: if is_sm { CAPABILITY_IS_SM } else { 0 },
            local_port,
            state: if up { PortState::Active } else { PortState::Down },
            physical_state: if up { PhysicalState::LinkUp } else { PhysicalState::Polling },
            ..PortInfo::default()
        }
        .encode()
    }

    fn sm_info(&mut self, guid: Guid) -> Option<Block> {
        let (state, priority, act_count) = self.managers.get_mut(&guid)?;
        *act_count += 1;
        let (act_count, priority, state) = (*act_count, *priority, *state);
        Some(SmInfo { guid, key: SmKey::new(1), act_count, priority, state }.encode())
    }
}

impl Mads for Fabric {
    fn get(&mut self, dlid: u16, attribute: Attribute, _modifier: u32, _timeout: Duration) -> Result<Block, MadError> {
        Err(MadError::Silent { attribute, target: format!("LID {dlid}") })
    }

    fn get_directed(
        &mut self,
        path: &[u8],
        attribute: Attribute,
        modifier: u32,
        _timeout: Duration,
    ) -> Result<Block, MadError> {
        self.questions += 1;
        let lost = self.loses_every.is_some_and(|n| self.questions.is_multiple_of(n));
        let silent = || MadError::Silent { attribute, target: path_text(path) };
        let (node, came_in_by) = self.follow(path).filter(|_| !lost).ok_or_else(silent)?;
        let text = self.nodes[node].text.clone();
        match attribute {
            Attribute::NodeInfo => Ok(self.node_info(node, came_in_by)),
            Attribute::PortInfo => Ok(self.port_info(node, u8::try_from(modifier).unwrap(), came_in_by)),
            Attribute::NodeDescription => {
                let mut block = [0; 64];
                block[..text.len()].copy_from_slice(text.as_bytes());
                Ok(block)
            }
            Attribute::SmInfo => self.sm_info(self.guid(node, came_in_by)).ok_or_else(silent),
        }
    }
}
