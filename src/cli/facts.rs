//! facts: what this host has, or many hosts, asked by SSH at the same time.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::args::{self, Reach};
use super::host::{Target, connect, expand, load, read_given, read_spec, target, this};
use super::{Outcome, Stop, exit, print, tell};
use crate::count::counted;
use crate::facts::by_host::{Answer, FactsByHost, NoAnswer};
use crate::facts::{Facts, by_host, text};
use crate::hostlist::HostList;
use crate::name::HostName;
use crate::node::Session;
use crate::node::protocol::{Reply, Request};
use crate::node::remote::Ssh;
use crate::spec::Spec;

const DEADLINE: Duration = Duration::from_secs(60);
/// More hosts than this are asked a part at a time.
const MOST_HOSTS: usize = 10_000;
/// How many are asked at the same time: each is a process and a connection.
const AT_ONCE: usize = 32;
/// The facts of so many hosts are far below, bytes.
const MOST_BYTES: u64 = 256 << 20;

pub(super) fn facts(args: &args::Facts) -> Outcome {
    let spec = args.spec.as_ref().map(|path| read_spec(path).and_then(|text| load(&text))).transpose()?;
    let ssh = args.by.ssh();
    let asked: Vec<&HostList> = args.hosts.iter().chain(&args.node).collect();
    let hosts = match &spec {
        Some(spec) if asked.is_empty() => {
            expand_few(&spec.nodes.iter().map(|group| &group.hosts).collect::<Vec<_>>(), "the spec has")?
        }
        _ => expand_few(&asked, "the lists have")?,
    };
    match hosts.as_slice() {
        [] | [_] => {
            let facts = of(&target(hosts.first()), spec.as_ref(), &ssh)?;
            let name = || hosts.first().or(facts.hostname.as_ref()).cloned().map_or_else(|| this(""), Ok);
            let name = name()?;
            print(args.format, &facts, || text::table(&name, &facts))?;
            Ok(exit::OK)
        }
        hosts => {
            let answers = of_all(hosts, spec.as_ref(), &ssh);
            print(args.format, &answers, || {
                let table = |host: &HostName| answers.get(host).map(|answer| as_text(host, answer));
                hosts.iter().filter_map(table).collect::<Vec<_>>().join("\n")
            })?;
            Ok(code(&answers))
        }
    }
}

fn expand_few(lists: &[&HostList], what: &str) -> Result<Vec<HostName>, Stop> {
    expand(lists, MOST_HOSTS, what, &format!("ask up to {MOST_HOSTS} of them at a time"))
}

fn as_text(host: &HostName, answer: &Answer) -> String {
    match answer {
        Answer::Facts(facts) => text::table(host, facts),
        Answer::None(NoAnswer { error }) => format!("{host}: no answer: {error}\n"),
    }
}

/// 1 when some host did not answer, and a word on how many.
pub(super) fn code(answers: &FactsByHost) -> u8 {
    let silent = answers.values().filter(|answer| matches!(answer, Answer::None(_))).count();
    if silent == 0 {
        return exit::OK;
    }
    tell(&format!("{silent} of {} did not answer", counted(answers.len(), "host")));
    exit::FAILED
}

/// What the node of a command has.
pub(super) fn of_node(reach: &Reach, spec: Option<&Spec>) -> Result<Facts, Stop> {
    of(&reach.target(), spec, &reach.by.ssh())
}

/// What one host has.
pub(super) fn of(target: &Target, spec: Option<&Spec>, ssh: &Ssh) -> Result<Facts, Stop> {
    let host = match target {
        Target::Here => return Ok(Session::live().facts()?),
        Target::There(host) => host,
    };
    let mut remote = connect(host, spec, ssh)?;
    match remote.call(Request::Facts {}, DEADLINE, &mut |_| {})? {
        Reply::Facts(facts) => Ok(facts),
        _ => Err(remote.out_of_turn().into()),
    }
}

/// What the hosts of some lists have.
pub(super) fn of_lists(lists: &[HostList], ssh: &Ssh) -> Result<FactsByHost, Stop> {
    let hosts = expand_few(&lists.iter().collect::<Vec<_>>(), "--node names")?;
    Ok(of_all(&hosts, None, ssh))
}

/// What each host has, or why it did not say.
fn of_all(hosts: &[HostName], spec: Option<&Spec>, ssh: &Ssh) -> FactsByHost {
    let answer = |host: &HostName| match of(&target(Some(host)), spec, ssh) {
        Ok(facts) => Answer::Facts(Box::new(facts)),
        Err(stop) => Answer::None(NoAnswer { error: stop.message }),
    };
    at_once(hosts, &answer, &mut progress(hosts.len()))
}

/// Asks `AT_ONCE` hosts at a time, and tells `done` how many have been.
fn at_once(
    hosts: &[HostName],
    ask: &(impl Fn(&HostName) -> Answer + Sync),
    done: &mut dyn FnMut(usize),
) -> FactsByHost {
    let next = AtomicUsize::new(0);
    let (sender, answers) = channel();
    thread::scope(|scope| {
        for _ in 0..hosts.len().min(AT_ONCE) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(host) = hosts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((host.clone(), ask(host))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut all = BTreeMap::new();
        for (host, answer) in answers {
            all.insert(host, answer);
            done(all.len());
        }
        all
    })
}

/// A line that counts the hosts, where somebody sees it.
fn progress(all: usize) -> impl FnMut(usize) {
    let watched = std::io::stderr().is_terminal();
    move |done| {
        if watched {
            let end = if done == all { "\n" } else { "" };
            // A terminal that is gone is no reason to stop.
            let _ = write!(std::io::stderr(), "\rasked {done} of {all} hosts{end}");
        }
    }
}

/// Reads what `selvedge facts` printed of one host.
pub(super) fn read_one(path: &Path) -> Result<(String, Facts), Stop> {
    let (name, text) = read_text(path)?;
    let facts = serde_json::from_str(&text)
        .map_err(|error| Stop::failed(format!("{name} is not what `selvedge facts` prints of one host: {error}")))?;
    Ok((name, facts))
}

/// Reads what it printed of one host or of many.
pub(super) fn read_any(path: &Path) -> Result<FactsByHost, Stop> {
    let (name, text) = read_text(path)?;
    by_host::read(&text).map_err(|error| Stop::failed(format!("{name}: {error}")))
}

fn read_text(path: &Path) -> Result<(String, String), Stop> {
    let (name, text) = read_given(path, MOST_BYTES);
    match text {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(Stop::failed(format!("cannot read {name}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_host_is_asked_once_and_not_too_many_at_the_same_time() {
        let list: HostList = "n[001-200]".parse().unwrap();
        let hosts: Vec<HostName> = list.iter().collect();
        // How many are asked now, and the most that were.
        let now = Mutex::new((0, 0));
        let ask = |host: &HostName| {
            {
                let mut now = now.lock().unwrap();
                now.0 += 1;
                now.1 = now.1.max(now.0);
            }
            thread::sleep(Duration::from_millis(2));
            now.lock().unwrap().0 -= 1;
            Answer::None(NoAnswer { error: host.to_string() })
        };
        let mut seen = Vec::new();
        let answers = at_once(&hosts, &ask, &mut |done| seen.push(done));
        assert_eq!(seen, (1..=200).collect::<Vec<_>>());
        assert!(answers.iter().all(|(host, answer)| *answer == Answer::None(NoAnswer { error: host.to_string() })));
        let most = now.lock().unwrap().1;
        assert!((2..=AT_ONCE).contains(&most), "{most}");
        assert_eq!(code(&answers), exit::FAILED);
        assert!(at_once(&[], &ask, &mut |_| {}).is_empty());
    }
}
