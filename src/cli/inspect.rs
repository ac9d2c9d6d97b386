//! Commands that only look or print: check, show, render, schema, completions.

use clap::CommandFactory;

use super::args::{Arguments, Check, Completions, Format, Offline, Render, Schema, SchemaOf};
use super::facts;
use super::host::{is_stdin, is_this, load, read_spec};
use super::out::write_below;
use super::shown::{Rendered, Shown};
use super::{Outcome, Stop, exit, look, print, tell, write_out};
use crate::compile::compile;
use crate::count::counted;
use crate::facts::Facts;
use crate::facts::by_host::FactsByHost;
use crate::hosts::Interface;
use crate::name::HostName;
use crate::node::PlanReport;
use crate::plan::Desired;
use crate::resolve::resolve;
use crate::sm::report::StatusReport;
use crate::spec::{FaultRecord, Spec};
use crate::verify::Report;

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
    if args.facts.as_deref().is_some_and(is_stdin) && is_stdin(&args.spec.path) {
        return Err(Stop::failed("the spec and --facts cannot both be standard input: name a file for one of them"));
    }
    let spec = load(&read_spec(&args.spec.path)?)?;
    let host = args.reach.name()?;
    let intent = compile(&spec, &host).map_err(|error| args.reach.stop(error.into()))?;
    let facts = match &args.facts {
        Some(path) => {
            let (name, facts) = facts::read_one(path)?;
            if let Some(warning) = others_facts(&host, &facts, &name) {
                tell(&warning);
            }
            facts
        }
        None => facts::of_node(&args.reach, Some(&spec))?,
    };
    let desired = resolve(&intent, &facts).map_err(|error| Stop::failed(error.to_string()))?;
    Ok((intent.host, desired))
}

/// What to say of facts that are another host's: its GUIDs would be in the files.
fn others_facts(host: &HostName, facts: &Facts, name: &str) -> Option<String> {
    let other = facts.hostname.as_ref().filter(|other| !is_this(host, other))?;
    Some(format!("warning: {name} are the facts of {other}, and what is shown is for {host}"))
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
        SchemaOf::FactsByHost => schemars::schema_for!(FactsByHost).into(),
        SchemaOf::Hosts => schemars::schema_for!(Vec<Interface>).into(),
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
