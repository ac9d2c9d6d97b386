//! One thing that is wrong with a fabric's managers: how bad, what, and the next step. Values only.

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The fabric is not managed, managed twice, or not by whom the spec says and for good.
    Bad,
    /// It is managed, and not as the spec says.
    Warning,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The port that asks has no link.
    LocalPortDown,
    /// Nobody says that it is master.
    NoMaster,
    /// More than one says so.
    TwoMasters,
    /// A manager that the spec does not name is the one master.
    ForeignMaster,
    /// A manager that the spec does not name, and that is not the one master.
    UnknownManager,
    /// Two managers with one priority: the lower GUID wins.
    EqualPriorities,
    /// Another manager of the spec than the primary is master.
    PrimaryNotMaster,
    /// No manager runs on the port of one of the spec.
    ManagerMissing,
    /// The port of a manager of the spec is not on the fabric.
    PortMissing,
    /// A manager is there, claims its place, and does not answer.
    ManagerSilent,
    /// A standby is in another state than standby.
    NotStandby,
    /// A manager has another priority than the spec gives it.
    WrongPriority,
    /// Ports were told of a master that is not the one.
    StaleMasterLid,
    /// A part of the fabric was not looked at.
    WalkIncomplete,
}

impl Problem {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LocalPortDown => "local-port-down",
            Self::NoMaster => "no-master",
            Self::TwoMasters => "two-masters",
            Self::ForeignMaster => "foreign-master",
            Self::UnknownManager => "unknown-manager",
            Self::EqualPriorities => "equal-priorities",
            Self::PrimaryNotMaster => "primary-not-master",
            Self::ManagerMissing => "manager-missing",
            Self::PortMissing => "port-missing",
            Self::ManagerSilent => "manager-silent",
            Self::NotStandby => "not-standby",
            Self::WrongPriority => "wrong-priority",
            Self::StaleMasterLid => "stale-master-lid",
            Self::WalkIncomplete => "walk-incomplete",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub problem: Problem,
    /// The object: a host, a port, a fabric.
    pub object: String,
    /// One sentence on what was seen.
    pub message: String,
    /// What to do next.
    pub next: String,
}

impl Finding {
    pub(super) fn bad(problem: Problem, object: impl Into<String>, message: String, next: String) -> Self {
        Self { severity: Severity::Bad, problem, object: object.into(), message, next }
    }

    pub(super) fn warning(problem: Problem, object: impl Into<String>, message: String, next: String) -> Self {
        Self { severity: Severity::Warning, problem, object: object.into(), message, next }
    }
}
