//! Commands that only look or print: check, facts, show, render, init, schema, completions.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;

use super::args::{Arguments, Check, Completions, Format, Init, Offline, Reach, Render, Schema, SchemaOf};
use super::host::{MOST_FACTS_BYTES, Target, connect, is_this, load, read_file, read_spec};
use super::out::write_below;
use super::shown::{Rendered, Shown};
use super::{Outcome, Stop, exit, look, print, tell, write_out};
use crate::compile::compile;
use crate::count::counted;
use crate::facts::Facts;
use crate::name::HostName;
use crate::node::protocol::{Reply, Request};
use crate::node::{PlanReport, Session};
use crate::plan::Desired;
use crate::resolve::resolve;
use crate::sm::report::StatusReport;
use crate::spec::{FaultRecord, Spec};
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
    let (networks, fabrics) = (counted(spec.networks.len(), "network"), counted(spec.fabrics.len(), "fabric"));
    format!("{}, {networks}, {fabrics}", counted(hosts, "host"))
}

pub(super) fn facts(args: &Reach) -> Outcome {
    let facts = facts_of(args, None)?;
    print(Format::Json, &facts, String::new)?;
    Ok(exit::OK)
}

fn facts_of(reach: &Reach, spec: Option<&Spec>) -> Result<Facts, Stop> {
    match reach.target() {
        Target::Here => Ok(Session::live().facts()?),
        Target::There(host) => {
            let mut remote = connect(&host, spec, &reach.by.ssh())?;
            match remote.call(Request::Facts {}, DEADLINE, &mut |_| {})? {
                Reply::Facts(facts) => Ok(facts),
                _ => Err(remote.out_of_turn().into()),
            }
        }
    }
}

pub(super) fn show(args: &Offline) -> Outcome {
    let (host, desired) = desired(args)?;
    let shown = Shown::new(host, &desired);
    print(args.report.format, &shown, || shown.to_text())?;
    Ok(exit::OK)
}

pub(super) fn render(args: &Render) -> Outcome {
    let (host, desired) = desired(&args.offline)?;
    let rendered = Rendered::new(host, &desired);
    if let Some(folder) = &args.out {
        let files = desired.items.iter().filter(|(object, _)| object.is_persistent());
        let files = files.map(|(object, wanted)| (object.clone(), wanted.state.clone())).collect();
        write_below(folder, &files, &desired.blobs)?;
    }
    print(args.offline.report.format, &rendered, || match &args.out {
        Some(folder) => rendered.paths().map(|path| format!("{}\n", path.under(folder).display())).collect(),
        None => rendered.to_text(),
    })?;
    Ok(exit::OK)
}

fn desired(args: &Offline) -> Result<(HostName, Desired), Stop> {
    let spec = load(&read_spec(&args.spec.path)?)?;
    let host = args.reach.name()?;
    let intent = compile(&spec, &host).map_err(|error| args.reach.stop(error.into()))?;
    let facts = match &args.facts {
        Some(path) => {
            let facts = read_facts(path)?;
            if let Some(warning) = others_facts(&host, &facts, path) {
                tell(&warning);
            }
            facts
        }
        None => facts_of(&args.reach, Some(&spec))?,
    };
    let desired = resolve(&intent, &facts).map_err(|error| Stop::failed(error.to_string()))?;
    Ok((intent.host, desired))
}

/// What to say of facts that are another host's: its GUIDs would be in the files.
fn others_facts(host: &HostName, facts: &Facts, path: &Path) -> Option<String> {
    let other = facts.hostname.as_ref().filter(|other| !is_this(host, other))?;
    Some(format!("warning: {} are the facts of {other}, and what is shown is for {host}", path.display()))
}

/// Facts as `selvedge facts` printed them.
pub(super) fn read_facts(path: &Path) -> Result<Facts, Stop> {
    let text = read_file(path, MOST_FACTS_BYTES)
        .map_err(|error| Stop::failed(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Stop::failed(format!("{} is not what `selvedge facts` prints: {error}", path.display())))
}

pub(super) fn init(args: &Init) -> Outcome {
    let Some(path) = &args.path else {
        write_out(crate::spec::STARTER.as_bytes())?;
        return Ok(exit::OK);
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(crate::spec::STARTER.as_bytes()));
    written.map_err(|error| {
        Stop::failed(if error.kind() == std::io::ErrorKind::AlreadyExists {
            format!("{} exists, and is never overwritten: name another file", path.display())
        } else {
            format!("cannot write {}: {error}", path.display())
        })
    })?;
    let (name, done) = (path.display(), format!("{} is written", path.display()));
    let line = format!("{name}: written; change it to your cluster, then `selvedge check {name}`\n");
    write_out(line.as_bytes()).map_err(|stop| stop.after(&done))?;
    Ok(exit::OK)
}

pub(super) fn schema(args: &Schema) -> Outcome {
    let schema = match args.of {
        SchemaOf::Spec => crate::spec::schema(),
        SchemaOf::Plan => schemars::schema_for!(PlanReport).into(),
        SchemaOf::Check => schemars::schema_for!(Vec<FaultRecord>).into(),
        SchemaOf::Show => schemars::schema_for!(Shown).into(),
        SchemaOf::Render => schemars::schema_for!(Rendered).into(),
        SchemaOf::Report => schemars::schema_for!(Report).into(),
        SchemaOf::Facts => schemars::schema_for!(Facts).into(),
        SchemaOf::SmStatus => schemars::schema_for!(Vec<StatusReport>).into(),
    };
    print(Format::Json, &schema, String::new)?;
    Ok(exit::OK)
}

pub(super) fn completions(args: &Completions) -> Outcome {
    // Into memory first: clap_complete panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "selvedge", &mut script);
    write_out(&script)?;
    Ok(exit::OK)
}
