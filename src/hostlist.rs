//! Host lists as ClusterShell and Slurm write them: `gpu[001-128,200]`.
/// A host list, not yet expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostList {}
