//! The arguments of each command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::hostlist::HostList;
use crate::name::HostName;
use crate::state::FilePath;

/// Declarative network configuration for RDMA clusters.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 in sync or done; 1 could not be done; 2 there are differences; \
                          3 the verdict is bad; 4 a rollback failed; 64 wrong usage";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented starter spec, on request filled from what hosts have
    Init(Init),
    /// Check a spec and report every fault at once
    Check(Check),
    /// Print what this host has, or other hosts by SSH, as JSON for use elsewhere
    Facts(Facts),
    /// Print a line for /etc/hosts for each interface of the cluster
    ///
    /// Each is called HOST-INTERFACE, such as node17-ib0, or HOST-NETWORK where the spec does not pin the interface's
    /// name. Of a host with a domain the first label gets the ending: gpu017-ib0.site2.example. A dot in the name of an
    /// interface becomes `-`.
    Hosts(Hosts),
    /// Show the state that the spec asks of a node
    Show(Offline),
    /// Print or write the files that apply would write
    Render(Render),
    /// Show the changes that apply would make, in order, each with its reason
    Plan(OnNode),
    /// Make a node as the spec says, as a transaction
    Apply(Apply),
    /// Keep the last apply that waits for its confirmation
    Confirm(Elsewhere),
    /// Undo the last apply; files that somebody else changed since are kept under another name
    Rollback(Rollback),
    /// Show what differs from the spec, without changing anything
    Drift(OnNode),
    /// Check the nodes, then measure RDMA between them
    Verify(Verify),
    /// Ask the fabric for its subnet managers
    Sm(Sm),
    /// Print the JSON Schema of the spec or of a report
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page, or write those of all commands
    Man(Man),
    /// The node's end of the controller's protocol, on standard input and output
    #[command(hide = true)]
    Node,
    /// A measuring process, on standard input and output
    #[command(name = crate::perf::worker::SUBCOMMAND, hide = true)]
    PerfWorker,
    /// Undo an apply that was cut off or not confirmed in time
    #[command(hide = true)]
    Recover(Recover),
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Spec {
    /// The spec; `-` is standard input
    #[arg(value_name = "SPEC", default_value = "/etc/selvedge/cluster.toml")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// How other nodes are reached.
#[derive(Debug, Args)]
pub(crate) struct BySsh {
    /// Another ssh configuration than the user's own
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_config: Option<PathBuf>,
    /// Run selvedge by `sudo -n` on other nodes
    #[arg(long)]
    pub(crate) sudo: bool,
    /// Where selvedge is on other nodes, when not in their PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<FilePath>,
}

#[derive(Debug, Args)]
pub(crate) struct Reach {
    #[command(flatten)]
    pub(crate) by: BySsh,
    /// The node; this host without it
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<HostName>,
}

#[derive(Debug, Args)]
pub(crate) struct Facts {
    /// The hosts, such as node01,gpu[01-16], asked by SSH; this host without any
    #[arg(value_name = "HOSTS")]
    pub(crate) hosts: Vec<HostList>,
    /// The same, as other commands take them
    #[arg(long, value_name = "HOSTS")]
    pub(crate) node: Vec<HostList>,
    /// A spec that says how hosts are reached by ssh, when their names are not enough; without HOSTS, all of its hosts
    #[arg(long, value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) by: BySsh,
    /// How to print it; JSON is one object for one host, and facts or an error by host for several
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Elsewhere {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// The spec that says how the node is reached by ssh, when its name is not enough
    #[arg(long, value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) on: Elsewhere,
    /// In a mounted image instead of on a running node
    #[arg(long, value_name = "DIR", conflicts_with_all = ["node", "spec"])]
    pub(crate) root: Option<PathBuf>,
    /// Undo it even if that disturbs a link that carries your connection, the default route or a mounted file system, or
    /// stops the fabric's last subnet manager
    #[arg(long)]
    pub(crate) allow_cut: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to write it; standard output without it
    #[arg(value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "path")]
    pub(crate) force: bool,
    /// Fill it from the HCAs of this host
    #[arg(long, conflicts_with_all = ["node", "from_facts"])]
    pub(crate) from_host: bool,
    /// Fill it from those of these hosts, such as node01,gpu[01-16], asked by SSH
    #[arg(long, value_name = "HOSTS", conflicts_with = "from_facts")]
    pub(crate) node: Vec<HostList>,
    /// Fill it from what `selvedge facts` printed of one host or of many, or of several one after the other; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_facts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) by: BySsh,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) spec: Spec,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Hosts {
    #[command(flatten)]
    pub(crate) spec: Spec,
    /// Only these hosts, such as node01,gpu[01-16]; all of the spec without it
    #[arg(long, value_name = "NAMES")]
    pub(crate) node: Vec<HostList>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = HostsFormat::Hosts)]
    pub(crate) format: HostsFormat,
}

/// How the names of interfaces are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostsFormat {
    /// Lines of /etc/hosts
    Hosts,
    /// A table with host, network and interface
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Offline {
    #[command(flatten)]
    pub(crate) spec: Spec,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// The node's facts, as `selvedge facts` printed them, instead of asking the node; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) offline: Offline,
    /// Write the files below this folder instead of printing them
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OnNode {
    #[command(flatten)]
    pub(crate) spec: Spec,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// A mounted image, or a tree that is a root file system, instead of a running node: files only, nothing is started
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// For an image: facts of the node, or of one with the same HCAs, as `selvedge facts` printed them
    #[arg(long, value_name = "FILE", requires = "root")]
    pub(crate) facts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: Report,
}

impl OnNode {
    /// The command that confirms an apply which was given with these arguments.
    pub(crate) fn confirm_command(&self) -> String {
        let by = &self.reach.by;
        let path = |path: &PathBuf| path.display().to_string();
        // The spec may say by which address the node is reached; from standard input it can't be read again.
        let spec = Some(&self.spec.path).filter(|path| self.reach.node.is_some() && path.as_os_str() != "-");
        let options = [
            ("--node", self.reach.node.as_ref().map(ToString::to_string)),
            ("--spec", spec.map(path)),
            ("--ssh-config", by.ssh_config.as_ref().map(path)),
            ("--program", by.program.as_ref().map(ToString::to_string)),
        ];
        let options = options.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", quoted(&value?))));
        format!("selvedge confirm{}{}", options.collect::<String>(), if by.sudo { " --sudo" } else { "" })
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) on: OnNode,
    /// Undo everything unless `selvedge confirm` comes within so many seconds after the last change
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=86_400))]
    pub(crate) confirm: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// At boot, before the network comes up
    #[arg(long)]
    pub(crate) boot: bool,
    /// The time to confirm this transaction is over
    #[arg(long, value_name = "NUMBER", conflicts_with = "boot", requires = "deadline")]
    pub(crate) due: Option<u64>,
    /// Until when that transaction could be confirmed, in seconds since the epoch
    #[arg(long, value_name = "SECONDS", requires = "due")]
    pub(crate) deadline: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) spec: Spec,
    /// Only these nodes, such as node01,gpu[01-16]; all of the spec without it
    #[arg(long, value_name = "NAMES")]
    pub(crate) node: Vec<HostList>,
    #[command(flatten)]
    pub(crate) by: BySsh,
    /// Only these kinds of check, such as node,sm
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Only>,
    /// Show the checks that passed as well
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) report: Report,
}

/// A kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Only {
    /// Each node on its own
    Node,
    /// Full-MTU pings between nodes
    Ping,
    /// RDMA bandwidth and latency between nodes
    Perf,
    /// The subnet managers of each fabric
    Sm,
}

#[derive(Debug, Args)]
pub(crate) struct Sm {
    #[command(subcommand)]
    pub(crate) command: SmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SmCommand {
    /// Each manager's node, port, priority and state, asked through a port of this host
    Status(SmStatus),
}

#[derive(Debug, Args)]
pub(crate) struct SmStatus {
    #[command(flatten)]
    pub(crate) spec: Spec,
    /// The fabric; all InfiniBand fabrics of the spec without it
    #[arg(long, value_name = "NAME")]
    pub(crate) fabric: Option<crate::name::Label>,
    /// Ask through this port of this host: DEVICE or DEVICE:PORT
    #[arg(long, value_name = "DEVICE[:PORT]")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Which
    #[arg(value_enum, default_value_t = SchemaOf::Spec)]
    pub(crate) of: SchemaOf,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each command into this folder instead: selvedge.1, selvedge-apply.1 and so on
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// What `check` reads
    Spec,
    /// What `plan`, `drift` and `apply` report
    Plan,
    /// What `check` reports
    Check,
    /// What `show` reports
    Show,
    /// What `render` reports
    Render,
    /// What `verify` reports
    Report,
    /// What `facts` prints of one host
    Facts,
    /// What `facts` prints of several hosts
    FactsByHost,
    /// What `hosts` reports
    Hosts,
    /// What `sm status` reports
    SmStatus,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(arguments: &[&str]) -> Verify {
        let words = ["selvedge", "verify"].iter().chain(arguments);
        match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
            Ok(Command::Verify(verify)) => verify,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn the_command_that_confirms_has_the_options_of_the_apply() {
        let command = |arguments: &[&str]| {
            let words = ["selvedge", "apply"].iter().chain(arguments);
            match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
                Ok(Command::Apply(apply)) => apply.on.confirm_command(),
                other => panic!("{arguments:?}: {other:?}"),
            }
        };
        assert_eq!(command(&["a.toml", "--confirm", "60"]), "selvedge confirm");
        assert_eq!(command(&["-", "--node", "node01", "--confirm", "60"]), "selvedge confirm --node node01");
        assert_eq!(
            command(&["a.toml", "--node", "node01", "--ssh-config", "my lab", "--sudo", "--program", "/opt/selvedge"]),
            "selvedge confirm --node node01 --spec a.toml --ssh-config 'my lab' --program /opt/selvedge --sudo"
        );
    }

    #[test]
    fn an_option_takes_one_value_and_leaves_the_spec_alone() {
        for words in [
            &["--only", "node", "--node", "node01", "lab.toml"][..],
            &["lab.toml", "--only", "node,sm", "--node", "node01,node02"],
            &["--node", "node[01-04]", "lab.toml", "--only", "sm", "--only", "perf", "--node", "gpu1"],
        ] {
            assert_eq!(verify(words).spec.path, PathBuf::from("lab.toml"), "{words:?}");
        }
        let both = verify(&["--only", "node,sm", "--only", "ping", "--node", "node[01-04]", "--node", "gpu1"]);
        assert_eq!(both.only, [Only::Node, Only::Sm, Only::Ping]);
        assert_eq!(both.node.iter().map(HostList::count).collect::<Vec<_>>(), [4, 1]);
    }
}
