//! SIGKILL and refused system calls, by strace, at moments spread over the whole apply.

use std::collections::BTreeMap;

use crate::lab_support::{ok, ssh};
use crate::{NODE, assert_same, expect, prepared, sh, snapshot};

/// The calls by which an apply has an effect, keeps its record, or starts what has one.
const CALLS: &str = "fdatasync,fsync,renameat,rename,symlinkat,unlinkat,mkdirat,write,sendto,sendmsg,connect,execve";

/// How many moments are tried; a sweep of all of them takes hours and is for SELVEDGE_LAB_SAFETY_MOMENTS=1000.
const MOMENTS: usize = 8;

/// A call of the apply's own process: which, and the how-manieth of its kind.
#[derive(Debug, Clone)]
struct Moment {
    call: String,
    nth: usize,
    /// The line of strace.
    line: String,
}

/// The calls between the first record of the journal and the last, from a clean run that is undone again.
fn moments() -> Vec<Moment> {
    let traced = sh(&format!(
        "strace -f --seccomp-bpf -qq -o /run/trace -e trace={CALLS} selvedge apply /root/light.toml >/dev/null && \
         selvedge rollback >/dev/null && cat /run/trace"
    ));
    let own = traced.split(' ').next().unwrap_or_default().to_owned();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut moments = Vec::new();
    for line in traced.lines().filter(|line| line.split(' ').next() == Some(own.as_str())) {
        let Some((call, _)) = line[own.len()..].trim_start().split_once('(') else { continue };
        if !CALLS.split(',').any(|name| name == call) {
            continue;
        }
        let nth = counts.entry(call.to_owned()).or_default();
        *nth += 1;
        moments.push(Moment { call: call.to_owned(), nth: *nth, line: line.to_owned() });
    }
    let is_record = |moment: &Moment| moment.call == "fdatasync";
    let first = moments.iter().position(is_record).unwrap_or_default();
    let last = moments.iter().rposition(is_record).unwrap_or_default();
    assert!(last > first + 40, "too little was traced:\n{traced}");
    // The call before the first record is its write; after the last one comes the journal's new name.
    moments[first - 1..(last + 3).min(moments.len())].to_vec()
}

/// Moments all over the apply; of those close together, one of the call that was chosen least.
fn spread(all: &[Moment], count: usize) -> Vec<Moment> {
    let count = count.clamp(2, all.len());
    let mut chosen: Vec<Moment> = Vec::new();
    for index in 0..count {
        let place = index * (all.len() - 1) / (count - 1);
        let near = &all[place.saturating_sub(3)..(place + 4).min(all.len())];
        let uses = |call: &str| chosen.iter().filter(|moment| moment.call == call).count();
        let Some(moment) = near.iter().min_by_key(|moment| uses(&moment.call)) else { continue };
        chosen.push(moment.clone());
    }
    chosen
}

fn count() -> usize {
    std::env::var("SELVEDGE_LAB_SAFETY_MOMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(MOMENTS)
}

pub(crate) fn kills() {
    prepared(NODE);
    sh("by_hand");
    let before = snapshot();
    let moments = spread(&moments(), count());
    assert_same("after an apply and its rollback", &before, &snapshot());
    let mut stayed = 0;
    for moment in moments {
        let Moment { call, nth, line } = moment;
        eprintln!("      SIGKILL at {call} {nth}: {line:.100}");
        let inject = format!("strace -f -qq -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={nth}");
        // strace dies of what its child died of, and the shell says 137.
        expect(&format!("{inject} selvedge apply /root/light.toml; echo ended with $?"), 0, "ended with 137");
        let found = sh("selvedge recover >/dev/null && snapshot");
        if found.contains("10.0.0.1") {
            // After its last record: all of it, and nothing more to do.
            expect("selvedge drift /root/light.toml", 0, "");
            ok(NODE, "selvedge rollback");
            assert_same(&format!("{call} {nth}, rolled back"), &before, &snapshot());
            stayed += 1;
        } else {
            assert_same(&format!("{call} {nth}"), &before, &found);
        }
    }
    assert!(stayed <= 3, "{stayed} kills left the changes in place");
}

pub(crate) fn errors() {
    prepared(NODE);
    sh("by_hand");
    let before = snapshot();
    let moments = moments();
    let at = |call: &str, share: usize| {
        let of_call: Vec<&Moment> = moments.iter().filter(|moment| moment.call == call).collect();
        assert!(!of_call.is_empty(), "no {call} in an apply");
        of_call[(of_call.len() - 1) * share / 100].nth
    };
    let cases = [
        ("fdatasync", "EIO", at("fdatasync", 0)),
        ("write", "ENOSPC", at("write", 40)),
        ("fsync", "EIO", at("fsync", 60)),
        ("renameat", "EPERM", at("renameat", 70)),
        ("symlinkat", "ENOSPC", at("symlinkat", 0)),
        ("sendto", "EPERM", at("sendto", 60)),
        ("sendmsg", "EPIPE", at("sendmsg", 70)),
        ("fdatasync", "EIO", at("fdatasync", 100)),
    ];
    for (call, error, nth) in cases {
        eprintln!("      {error} at {call} {nth}");
        let inject = format!("strace -qq -o /dev/null -e trace={call} -e inject={call}:error={error}:when={nth}");
        let refused = ssh(NODE, &format!("{inject} selvedge apply /root/light.toml"));
        eprintln!("      {}", refused.stderr.trim());
        assert_eq!(refused.code, 1, "{call} {error} {nth}: {}{}", refused.stdout, refused.stderr);
        assert!(
            refused.stderr.contains("as it was") || refused.stderr.contains("nothing was changed"),
            "{call} {error} {nth}: {}",
            refused.stderr
        );
        assert_same(&format!("{call} {error} {nth}"), &before, &snapshot());
    }
}

/// Every renameat refused from the rollback on: the journal is named, and what is left can be done later.
pub(crate) fn a_torn_rollback() {
    prepared(NODE);
    sh("by_hand");
    let before = snapshot();
    ok(NODE, "selvedge apply /root/light.toml");
    let inject = "strace -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:error=EIO";
    expect(&format!("{inject} selvedge rollback"), 4, "/var/lib/selvedge/journal/");
    // The next command that touches the node takes it up again.
    expect("selvedge recover", 0, "undone");
    assert_same("after the second try", &before, &snapshot());
    expect("selvedge rollback", 1, "undone already");
}
