//! plan, drift, apply, confirm, rollback and recover: here, on an image, or on another node.

use std::io::IsTerminal;
use std::time::Duration;

use super::args::{self, Apply, Elsewhere, OnNode, Reach, Recover};
use super::facts;
use super::host::{Target, connect, in_the_spec, load, read_spec};
use super::text::{self, Tense};
use super::{Outcome, Stop, exit, print, tell, write_out};
use crate::apply::Rollback;
use crate::apply::recover::Recovered;
use crate::apply::rollback::When;
use crate::name::HostName;
use crate::node::protocol::{Reply, Request};
use crate::node::remote::{CallError, Remote};
use crate::node::{PlanReport, Session, SpecText};
use crate::state::{Change, Object};

/// A plan is seconds of work; the rest is the network.
const PLAN_DEADLINE: Duration = Duration::from_secs(120);
/// Units that start slowly and links that settle take their time.
const APPLY_DEADLINE: Duration = Duration::from_secs(900);

pub(super) fn plan(args: &OnNode) -> Outcome {
    report(args, planned(args)?, Tense::Future)
}

pub(super) fn drift(args: &OnNode) -> Outcome {
    let mut found = planned(args)?;
    // What has to be read again once its files are repaired is a step of the way, not a difference.
    found.changes.retain(|row| !matches!(row.change.object, Object::Reload { .. }));
    report(args, found, Tense::Present)
}

fn report(args: &OnNode, report: PlanReport, tense: Tense) -> Outcome {
    let lay_out = if args.root.is_some() { text::plan_of_image } else { text::plan };
    print(args.report.format, &report, || lay_out(&report, tense))?;
    Ok(if report.changes.is_empty() { exit::OK } else { exit::DIFFERS })
}

fn planned(args: &OnNode) -> Result<PlanReport, Stop> {
    let spec = read_spec(&args.spec.path)?;
    match place(args)? {
        Place::Session(mut session, host) => session.plan(&spec, &host).map_err(|error| args.reach.stop(error)),
        Place::There(host) => {
            let mut remote = reach(&spec, &host, &args.reach)?;
            let request = Request::Plan { spec, node: host };
            let reply = remote_call(&mut remote, request, PLAN_DEADLINE, &mut |_| {})?;
            as_plan(&remote, reply)
        }
    }
}

pub(super) fn apply(args: &Apply) -> Outcome {
    let on = &args.on;
    let spec = read_spec(&on.spec.path)?;
    let mut watch = |change: &Change| {
        if std::io::stderr().is_terminal() {
            // A terminal that is gone does not stop the apply half way.
            tell(&text::progress(change));
        }
    };
    let applied = match place(on)? {
        Place::Session(mut session, host) => {
            let confirm = args.confirm.map(Duration::from_secs);
            session.apply(&spec, &host, confirm, &mut watch).map_err(|error| on.reach.stop(error))?
        }
        Place::There(host) => {
            let mut remote = reach(&spec, &host, &on.reach)?;
            let request = Request::Apply { spec, node: host, confirm_seconds: args.confirm };
            let reply = remote_call(&mut remote, request, APPLY_DEADLINE, &mut watch)?;
            as_plan(&remote, reply)?
        }
    };
    let confirm = on.confirm_command();
    let printed = print(on.report.format, &applied, || {
        let waits = applied.confirm_by.zip(args.confirm);
        let waits = waits.map(|(deadline, seconds)| text::unconfirmed(deadline, seconds, &confirm));
        text::plan(&applied, Tense::Past) + &waits.unwrap_or_default()
    });
    printed.map_err(|stop| stop.after(&done(&applied, &confirm)))?;
    Ok(exit::OK)
}

/// An apply that is done, in one sentence.
fn done(applied: &PlanReport, confirm: &str) -> String {
    let node = &applied.node;
    match (applied.changes.len(), applied.confirm_by) {
        (0, _) => format!("{node} is in sync, nothing was changed"),
        (_, None) => format!("the apply on {node} is done and stays"),
        (_, Some(deadline)) => {
            format!("the apply on {node} is done, and UNDONE unless you give `{confirm}` by {}", text::clock(deadline))
        }
    }
}

pub(super) fn confirm(args: &Elsewhere) -> Outcome {
    match args.reach.target() {
        Target::Here => Session::live().confirm()?,
        Target::There(host) => drop(ask(args, &host, Request::Confirm {})?),
    }
    say("confirmed: the last apply stays")?;
    Ok(exit::OK)
}

pub(super) fn roll_back(args: &args::Rollback) -> Outcome {
    let here = |mut session: Session| match session.roll_back(args.allow_cut)? {
        (_, rollback @ Rollback::Failed { .. }) => Err(Stop { message: rollback.to_string(), code: exit::TORN }),
        (which, rollback) => Ok((which, rollback.saved().to_vec())),
    };
    let (which, saved) = match (&args.root, args.on.reach.target()) {
        (Some(root), _) => here(Session::image(root, None)?)?,
        (None, Target::Here) => here(Session::live())?,
        (None, Target::There(host)) => {
            let (remote, reply) = ask(&args.on, &host, Request::RollBack { allow_cut: args.allow_cut })?;
            match reply {
                Reply::RolledBack { which, saved } => (which, saved),
                _ => return Err(remote.out_of_turn().into()),
            }
        }
    };
    let which = which.map_or_else(
        || "the last apply".to_owned(),
        |which| format!("apply {} of {}", which.number, text::date(which.at)),
    );
    let what = if args.root.is_some() { "image" } else { "node" };
    say(&format!("rolled back {which}: the {what} is as it was before it"))?;
    for saved in saved {
        say(&format!("  note: {saved}"))?;
    }
    Ok(exit::OK)
}

pub(super) fn recover(args: &Recover) -> Outcome {
    let mut session = Session::live();
    let recovered = match (args.due, args.boot) {
        (Some(due), _) => session.recover_due(due, args.deadline.unwrap_or_default())?,
        (None, true) => session.recover(When::Boot)?,
        (None, false) => session.recover(When::Running)?,
    };
    match recovered {
        Recovered::Nothing => Ok(exit::OK),
        Recovered::Awaiting(deadline) => {
            say(&format!("an apply waits for its confirmation until {}", text::clock(deadline)))?;
            Ok(exit::OK)
        }
        Recovered::Undone { cause, rollback } => {
            let said = say(&format!("an apply was {cause} and is undone: {rollback}"));
            match exit::of_rollback(&rollback) {
                exit::OK => said.map(|()| exit::OK),
                code => Ok(code),
            }
        }
    }
}

enum Place {
    Session(Box<Session>, HostName),
    There(HostName),
}

fn place(args: &OnNode) -> Result<Place, Stop> {
    if let Some(root) = &args.root {
        let hardware = args.facts.as_deref().map(|path| facts::read_one(path).map(|(_, facts)| facts)).transpose()?;
        return Ok(Place::Session(Box::new(Session::image(root, hardware)?), args.reach.name()?));
    }
    Ok(match args.reach.target() {
        Target::Here => Place::Session(Box::new(Session::live()), args.reach.name()?),
        Target::There(host) => Place::There(host),
    })
}

/// The spec is checked here first: its faults, and a host that it does not have, need no node.
fn reach(text: &SpecText, host: &HostName, reach: &Reach) -> Result<Remote, Stop> {
    let spec = load(text)?;
    in_the_spec(&spec, host)?;
    Ok(connect(host, Some(&spec), &reach.by.ssh())?)
}

fn remote_call(
    remote: &mut Remote,
    request: Request,
    deadline: Duration,
    watch: &mut dyn FnMut(&Change),
) -> Result<Reply, Stop> {
    remote.call(request, deadline, watch).map_err(|error| {
        // What the node itself says does not say which node it is.
        let refused = matches!(error, CallError::Refused { .. });
        let mut stop = Stop::from(error);
        if refused {
            stop.message = format!("{}: {}", remote.host(), stop.message);
        }
        stop
    })
}

fn as_plan(remote: &Remote, reply: Reply) -> Result<PlanReport, Stop> {
    match reply {
        Reply::Plan(report) => Ok(report),
        _ => Err(remote.out_of_turn().into()),
    }
}

fn ask(args: &Elsewhere, host: &HostName, request: Request) -> Result<(Remote, Reply), Stop> {
    let spec = args.spec.as_ref().map(|path| read_spec(path).and_then(|text| load(&text))).transpose()?;
    let mut remote = connect(host, spec.as_ref(), &args.reach.by.ssh())?;
    let reply = remote_call(&mut remote, request, APPLY_DEADLINE, &mut |_| {})?;
    Ok((remote, reply))
}

/// What was done, in a line for the reader.
fn say(line: &str) -> Result<(), Stop> {
    write_out(format!("{line}\n").as_bytes()).map_err(|stop| stop.after(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_report_does_not_hide_what_was_done() {
        let node = "node01".parse().unwrap();
        let mut report = PlanReport {
            node,
            changes: vec![],
            deferred: vec![],
            notes: vec![],
            undid_earlier: false,
            confirm_by: None,
        };
        assert_eq!(done(&report, "-"), "node01 is in sync, nothing was changed");
        let object = Object::Module { name: "ib_ipoib".parse().unwrap() };
        let (before, after) = (crate::state::State::Absent, crate::state::State::Present);
        let reason = crate::state::Reason("test".into());
        let change =
            Change { object, before, after, reason, disturbs: std::collections::BTreeSet::new(), condition: None };
        report.changes.push(crate::node::ChangeReport { change, diff: None });
        let stop = Stop::failed("cannot write to standard output: no space").after(&done(&report, "-"));
        assert_eq!(
            stop.message,
            "the apply on node01 is done and stays; only the report of it could not be written: \
             cannot write to standard output: no space"
        );
        assert_eq!(stop.code, exit::FAILED);
        report.confirm_by = Some(1);
        let lost = done(&report, "selvedge confirm --node node01");
        assert!(lost.ends_with("UNDONE unless you give `selvedge confirm --node node01` by 00:00:01 UTC"), "{lost}");
    }
}
