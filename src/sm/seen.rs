//! What the spec expects of a fabric's managers, and what the fabric showed.
//!
//! Values only, with the questions that a verdict asks of them.

use crate::name::{HostName, Label};
use crate::rdma::Guid;
use crate::spec::SubnetManager;

use super::election::{Priority, PriorityError};
use super::mad::{NodeDescription, NodeType, PhysicalState, PortState, SmState};

/// The managers of a fabric by the spec, the primary first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The fabric.
    pub fabric: Label,
    /// In the order of the spec.
    pub managers: Vec<ExpectedManager>,
}

/// One manager by the spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedManager {
    /// The host.
    pub host: HostName,
    /// Its port on this fabric, where facts or the spec tell it. The host's
    /// name in the node description does as well.
    pub guid: Option<Guid>,
    /// See [`Priority::of_place`].
    pub priority: Priority,
}

impl Expected {
    /// From the spec. `guid_of` tells a host's port on the fabric where it is
    /// known.
    ///
    /// # Errors
    /// When there are more managers than distinct priorities.
    pub fn of(
        fabric: &Label,
        managers: &SubnetManager,
        guid_of: impl Fn(&HostName) -> Option<Guid>,
    ) -> Result<Self, PriorityError> {
        let hosts = std::iter::once(&managers.primary).chain(&managers.standby);
        let managers = hosts.enumerate().map(|(place, host)| {
            Ok(ExpectedManager { host: host.clone(), guid: guid_of(host), priority: Priority::of_place(place)? })
        });
        Ok(Self { fabric: fabric.clone(), managers: managers.collect::<Result<_, _>>()? })
    }
}

/// What was seen from one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The port that asked.
    pub local: LocalPort,
    /// End ports: of channel adapters, routers, and port 0 of switches.
    pub ports: Vec<SeenPort>,
    /// How much of the fabric was looked at.
    pub coverage: Coverage,
}

/// The port that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPort {
    /// Its GUID.
    pub guid: Guid,
    /// Its node's text.
    pub description: NodeDescription,
    /// 0 until a manager gave one.
    pub lid: u16,
    /// Where it was told that the master is; 0 for nowhere.
    pub master_sm_lid: u16,
    /// Of its link.
    pub state: PortState,
    /// Of its cable.
    pub physical_state: PhysicalState,
}

/// An end port of the fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPort {
    /// Its GUID.
    pub guid: Guid,
    /// What it is on.
    pub node_type: NodeType,
    /// Its node's text.
    pub description: NodeDescription,
    /// Its address.
    pub lid: u16,
    /// Where it was told that the master is.
    pub master_sm_lid: u16,
    /// The directed route to it.
    pub path: Vec<u8>,
    /// What its manager says.
    pub says: Says,
}

/// What a port said when asked for its manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It does not claim to have one.
    Nothing,
    /// It claims to have one (IsSM), and that one does not answer.
    Silence,
    /// A manager runs there.
    Manager(Reading),
}

/// A manager's SMInfo, read twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Its place in the election.
    pub state: SmState,
    /// Its priority.
    pub priority: Priority,
    /// `ActCount` at the second reading.
    pub act_count: u32,
    /// What it grew by between the two; opensm also counts its answers to us.
    /// `None` when the second reading had no answer.
    pub moved_by: Option<u32>,
}

/// How much of the fabric was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Switches passed.
    pub switches: usize,
    /// Questions asked.
    pub questions: usize,
    /// Ends of live links that did not answer, as directed routes.
    pub silent: Vec<String>,
    /// Why the walk ended early.
    pub cut_short: Option<CutShort>,
}

impl Coverage {
    /// Whether every live link was followed and answered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.silent.is_empty() && self.cut_short.is_none()
    }
}

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutShort {
    /// The time was up.
    Deadline,
    /// More end ports than the bound.
    TooManyPorts,
}

impl SeenPort {
    /// The reading, where a manager answered.
    #[must_use]
    pub fn reading(&self) -> Option<&Reading> {
        match &self.says {
            Says::Manager(reading) => Some(reading),
            Says::Nothing | Says::Silence => None,
        }
    }

    /// Whether its manager says that it is master.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.reading().is_some_and(|r| r.state == SmState::Master)
    }
}

impl Seen {
    /// The ports whose managers say that they are master.
    pub fn masters(&self) -> impl Iterator<Item = &SeenPort> {
        self.ports.iter().filter(|p| p.is_master())
    }

    /// The port of a manager of the spec: by GUID, or by its host's name. Of
    /// several ports of the host, the one where a manager runs.
    #[must_use]
    pub fn port_of(&self, expected: &ExpectedManager) -> Option<&SeenPort> {
        let is_named = |p: &&SeenPort| p.node_type == NodeType::Ca && names_host(&p.description, &expected.host);
        let known = self.ports.iter().filter(|p| Some(p.guid) == expected.guid);
        let of_host = || known.clone().chain(self.ports.iter().filter(is_named));
        of_host().find(|p| p.says != Says::Nothing).or_else(|| of_host().next())
    }
}

/// Whether a node's text names the host: `node01 mlx5_0` and
/// `node01.cluster HCA-1` both name `node01`, and `node01.cluster` too.
#[must_use]
pub fn names_host(description: &NodeDescription, host: &HostName) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let Some(named) = description.host() else { return false };
    let both_qualified = named.contains('.') && host.as_str().contains('.');
    if both_qualified { named.eq_ignore_ascii_case(host.as_str()) } else { short(named) == short(host.as_str()) }
}
