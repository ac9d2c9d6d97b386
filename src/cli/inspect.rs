//! Commands that only look or print: check, facts, show, render, init, schema, completions, man.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;
use serde::Serialize;

use super::args::{Arguments, Check, Completions, Format, Init, Offline, Reach, Render, Schema, SchemaOf};
use super::host::{Target, connect, load, read_spec, this};
use super::{Outcome, Stop, exit, look, print};
use crate::compile::compile;
use crate::facts::Facts;
use crate::name::HostName;
use crate::node::protocol::{Reply, Request};
use crate::node::{PlanReport, Session};
use crate::plan::{Deferred, Desired};
use crate::resolve::resolve;
use crate::sm::report::StatusReport;
use crate::spec::Spec;
use crate::state::{FilePath, Object, State};
use crate::verify::Report;

const DEADLINE: Duration = Duration::from_secs(60);

pub(super) fn check(args: &Check) -> Outcome {
    let text = read_spec(&args.spec.path)?;
    let (spec, faults) = match text.load() {
        Ok(checked) => (Some(checked.spec), checked.warnings),
        Err(faults) => (None, faults),
    };
    let summary = spec.as_ref().map(summary);
    print(args.report.format, &faults.records(), || match (&summary, faults.faults.is_empty()) {
        (Some(summary), true) => format!("{}: valid: {summary}\n", faults.name),
        (Some(summary), false) => {
            format!("{}\n{}: valid, with warnings: {summary}\n", exit::rendered(&faults, look()), faults.name)
        }
        (None, _) => exit::rendered(&faults, look()),
    })?;
    Ok(if spec.is_some() { exit::OK } else { exit::FAILED })
}

fn summary(spec: &Spec) -> String {
    let hosts: usize = spec.nodes.iter().map(|group| group.hosts.count()).sum();
    format!("{} hosts, {} networks, {} fabrics", hosts, spec.networks.len(), spec.fabrics.len())
}

pub(super) fn facts(args: &Reach) -> Outcome {
    let facts = facts_of(args, None)?;
    print(Format::Json, &facts, String::new)?;
    Ok(exit::OK)
}

fn facts_of(reach: &Reach, spec: Option<&Spec>) -> Result<Facts, Stop> {
    match reach.target()? {
        Target::Here(_) => Ok(Session::live().facts()?),
        Target::There(host) => {
            let mut remote = connect(&host, spec, &reach.by.ssh())?;
            match remote.call(Request::Facts {}, DEADLINE, &mut |_| {})? {
                Reply::Facts(facts) => Ok(facts),
                _ => Err(remote.out_of_turn().into()),
            }
        }
    }
}

/// What a node is to be, object by object.
#[derive(Debug, Serialize)]
struct Shown {
    node: HostName,
    objects: Vec<ShownObject>,
    deferred: Vec<Deferred>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShownObject {
    object: Object,
    state: State,
    reason: String,
}

pub(super) fn show(args: &Offline) -> Outcome {
    let (host, desired) = desired(args)?;
    let objects = desired.items.iter().map(|(object, wanted)| ShownObject {
        object: object.clone(),
        state: wanted.state.clone(),
        reason: wanted.reason.to_string(),
    });
    let shown = Shown {
        node: host,
        objects: objects.collect(),
        deferred: desired.deferred.clone(),
        notes: desired.notes.clone(),
    };
    print(args.report.format, &shown, || shown_text(&shown))?;
    Ok(exit::OK)
}

fn shown_text(shown: &Shown) -> String {
    let mut lines = vec![format!("{} is to be", shown.node)];
    let state = |state: &State| match state {
        State::File { mode, .. } => format!("as rendered, mode {mode:04o}"),
        other => other.to_string(),
    };
    let line = |row: &ShownObject| format!("  {}: {}  ({})", row.object, state(&row.state), row.reason);
    lines.extend(shown.objects.iter().map(line));
    lines.extend(
        shown.deferred.iter().map(|deferred| format!("  later: {}; waits until {}", deferred.what, deferred.until)),
    );
    lines.extend(shown.notes.iter().map(|note| format!("  note: {note}")));
    lines.join("\n") + "\n"
}

pub(super) fn render(args: &Render) -> Outcome {
    let (_, desired) = desired(&args.offline)?;
    let files = desired.items.iter().filter_map(|(object, wanted)| match (object, &wanted.state) {
        (Object::File { path }, State::File { digest, mode }) => Some((path, desired.blobs.get(digest)?, *mode)),
        _ => None,
    });
    let mut stdout = std::io::stdout().lock();
    for (path, bytes, mode) in files {
        match &args.out {
            Some(folder) => write_below(folder, path, bytes, mode)?,
            None => {
                let shown = writeln!(stdout, "# ==> {path} (mode {mode:04o})").and_then(|()| stdout.write_all(bytes));
                if shown.is_err() {
                    break;
                }
            }
        }
    }
    Ok(exit::OK)
}

fn write_below(folder: &Path, path: &FilePath, bytes: &[u8], mode: u32) -> Result<(), Stop> {
    let target = path.under(folder);
    let parent = target.parent().map_or(Ok(()), fs::create_dir_all);
    let file =
        parent.and_then(|()| OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&target));
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| Stop::failed(format!("cannot write {}: {error}", target.display())))?;
    println!("{}", target.display());
    Ok(())
}

fn desired(args: &Offline) -> Result<(HostName, Desired), Stop> {
    let spec = load(&read_spec(&args.spec.path)?)?;
    let host = args.reach.node.clone().map_or_else(this, Ok)?;
    let intent = compile(&spec, &host).map_err(|error| Stop::failed(error.to_string()))?;
    let facts = match &args.facts {
        Some(path) => read_facts(path)?,
        None => facts_of(&args.reach, Some(&spec))?,
    };
    let desired = resolve(&intent, &facts).map_err(|error| Stop::failed(error.to_string()))?;
    Ok((intent.host, desired))
}

fn read_facts(path: &Path) -> Result<Facts, Stop> {
    let text =
        fs::read_to_string(path).map_err(|error| Stop::failed(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Stop::failed(format!("{} is not what `selvedge facts` prints: {error}", path.display())))
}

pub(super) fn init(args: &Init) -> Outcome {
    let Some(path) = &args.path else {
        print!("{}", crate::spec::STARTER);
        return Ok(exit::OK);
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(crate::spec::STARTER.as_bytes()));
    written.map_err(|error| Stop::failed(format!("cannot write {}: {error}", path.display())))?;
    println!("{}: written; change it to your cluster, then `selvedge check {0}`", path.display());
    Ok(exit::OK)
}

pub(super) fn schema(args: &Schema) -> Outcome {
    let schema = match args.of {
        SchemaOf::Spec => crate::spec::schema(),
        SchemaOf::Plan => schemars::schema_for!(PlanReport).into(),
        SchemaOf::Report => schemars::schema_for!(Report).into(),
        SchemaOf::Facts => schemars::schema_for!(Facts).into(),
        SchemaOf::SmStatus => schemars::schema_for!(Vec<StatusReport>).into(),
    };
    print(Format::Json, &schema, String::new)?;
    Ok(exit::OK)
}

pub(super) fn completions(args: &Completions) -> Outcome {
    clap_complete::generate(args.shell, &mut Arguments::command(), "selvedge", &mut std::io::stdout());
    Ok(exit::OK)
}

pub(super) fn man() -> Outcome {
    let man = clap_mangen::Man::new(Arguments::command());
    man.render(&mut std::io::stdout()).map_err(|error| Stop::failed(format!("cannot write the page: {error}")))?;
    Ok(exit::OK)
}
