use super::*;
use crate::rdma::IpoibMode;
use crate::state::{Change, Origin, States};

fn file(path: &str) -> Object {
    Object::File { path: path.parse().unwrap() }
}

fn mode(link: &str) -> Object {
    Object::LinkMode { link: link.parse().unwrap() }
}

fn mtu(link: &str) -> Object {
    Object::LinkMtu { link: link.parse().unwrap() }
}

fn content(blobs: &mut Blobs, text: &str) -> State {
    State::File { digest: blobs.insert(text.into()), mode: 0o644 }
}

fn nothing(desired: &Desired) -> States {
    desired.items.keys().map(|object| (object.clone(), State::Absent)).collect()
}

fn changed(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| change.object.to_string()).collect()
}

#[test]
fn files_bring_reloads_and_come_before_what_runs() {
    let mut desired = Desired::default();
    let netplan = content(&mut desired.blobs, "network: {}");
    desired.want(mtu("ib0"), State::Mtu { bytes: 65520 }, "m");
    desired.want(mode("ib0"), State::Mode { mode: IpoibMode::Connected }, "m");
    desired.want(file("/etc/netplan/60-selvedge.yaml"), netplan, "m").disturbs = ["ib0".parse().unwrap()].into();
    let observed = Observed { states: nothing(&desired), ..Observed::default() };
    let changes = desired.changes(&observed, &Owned::default());
    assert_eq!(
        changed(&changes),
        [
            "file /etc/netplan/60-selvedge.yaml",
            "netplan configuration",
            "systemd-networkd configuration",
            "ib0 IPoIB mode",
            "ib0 MTU"
        ]
    );
    assert_eq!(changes[2].disturbs, ["ib0".parse().unwrap()].into());
}

#[test]
fn a_reload_disturbs_each_link_whose_file_changes() {
    let mut desired = Desired::default();
    for link in ["ib0", "ib1"] {
        let state = content(&mut desired.blobs, link);
        let path = format!("/etc/systemd/network/10-selvedge-{link}.network");
        desired.want(file(&path), state, "m").disturbs = [link.parse().unwrap()].into();
    }
    let observed = Observed { states: nothing(&desired), ..Observed::default() };
    let changes = desired.changes(&observed, &Owned::default());
    let route = |link: &str| Protected { link: link.parse().unwrap(), carries: "the default route".into() };
    let refusals = guard(&changes, &["ib0", "ib1", "eth0"].map(route));
    let refused: Vec<&str> = refusals.iter().map(|refusal| refusal.protected.link.as_str()).collect();
    assert_eq!(refused, ["ib0", "ib1"]);
}

fn sysctl(key: &str) -> Object {
    Object::Sysctl { key: key.parse().unwrap() }
}

fn value(number: u32) -> State {
    State::Value { text: number.to_string() }
}

#[test]
fn a_setting_changed_by_hand_is_found_by_name_and_a_larger_table_serves_too() {
    let (arp, table) = (sysctl("net/ipv4/conf/ib0/arp_ignore"), sysctl("net/ipv4/neigh/default/gc_thresh3"));
    let mut desired = Desired::default();
    desired.want(arp.clone(), value(1), "two ports");
    desired.want(table.clone(), value(4096), "many hosts");
    let found = |arp_ignore, most| {
        let observed = [(arp.clone(), value(arp_ignore)), (table.clone(), value(most))].into_iter().collect();
        changed(&diff(&desired, &observed, &Owned::default()))
    };
    assert_eq!(found(1, 4096), [""; 0]);
    assert_eq!(found(1, 65536), [""; 0], "somebody needs more");
    assert_eq!(found(2, 65536), ["sysctl net/ipv4/conf/ib0/arp_ignore"]);
    assert_eq!(found(0, 1024).len(), 2);
}

#[test]
fn a_setting_goes_back_to_what_it_was_and_not_where_its_link_is_gone() {
    let (arp, table) = (sysctl("net/ipv4/conf/ib0/arp_ignore"), sysctl("net/ipv4/neigh/default/gc_thresh3"));
    let owned = Owned::from(vec![(arp.clone(), Origin::of(value(0))), (table.clone(), Origin::of(value(1024)))]);
    let back = |arp_ignore| {
        let observed = [(arp.clone(), arp_ignore), (table.clone(), value(4096))].into_iter().collect();
        let changes = diff(&Desired::default(), &observed, &owned).into_iter();
        changes.map(|change| (change.object.to_string(), change.after)).collect::<Vec<_>>()
    };
    let table = (table.to_string(), value(1024));
    assert_eq!(back(value(1)), [(arp.to_string(), value(0)), table.clone()]);
    assert_eq!(back(State::Absent), [table]);
}

#[test]
fn what_was_made_with_the_whole_truth_stands_while_a_part_is_unknown() {
    let rules = || file("/etc/udev/rules.d/70-selvedge-ipoib.rules");
    let mut desired = Desired::default();
    let partial = content(&mut desired.blobs, "name");
    desired.want(rules(), partial, "m").provisional = true;
    let whole = content(&mut desired.blobs, "name and mode");
    let observed: States = [(rules(), whole)].into_iter().collect();
    let owned = Owned::from(vec![(rules(), Origin::of(State::Absent))]);
    assert!(diff(&desired, &observed, &owned).is_empty());
    assert_eq!(diff(&desired, &observed, &Owned::default())[0].object, rules(), "a stranger's file is replaced");
    assert_eq!(diff(&desired, &nothing(&desired), &owned)[0].object, rules());
}

#[test]
fn a_unit_that_leaves_is_not_told_of_its_files() {
    let unit: Object = Object::Unit { name: "selvedge-opensm-compute.service".parse().unwrap() };
    let conf = || file("/etc/selvedge/opensm/compute.conf");
    let mut blobs = Blobs::default();
    let there = content(&mut blobs, "a");
    let observed = Observed {
        states: [(unit.clone(), State::Running), (conf(), there)].into_iter().collect(),
        blobs,
        ..Observed::default()
    };
    let origin = Origin::of;
    let owned = Owned::from(vec![(unit.clone(), origin(State::Stopped)), (conf(), origin(State::Absent))]);
    let changes = Desired::default().changes(&observed, &owned);
    assert_eq!(changed(&changes), [unit.to_string(), conf().to_string()]);
}

#[test]
fn a_unit_that_waits_for_its_next_try_is_stopped() {
    let unit: Object = Object::Unit { name: "selvedge-opensm-compute.service".parse().unwrap() };
    let found = |state: State| [(unit.clone(), state)].into_iter().collect::<States>();
    let back = |before: State, now: State| diff_back(&found(before), &found(now)).len();
    for before in [State::Stopped, State::Failed] {
        assert_eq!(back(before.clone(), State::Restarting), 1, "systemd starts it again");
        assert_eq!(back(before.clone(), State::Running), 1);
        assert_eq!(back(before.clone(), State::Stopped) + back(before, State::Failed), 0);
    }
    // What failed before is stopped after, and that is as it was.
    assert_eq!((back(State::Restarting, State::Running), back(State::Restarting, State::Stopped)), (1, 0));
    let mut desired = Desired::default();
    desired.want(unit.clone(), State::Running, "the primary");
    let changes = diff(&desired, &found(State::Restarting), &Owned::default());
    assert_eq!(changes[0].before.to_string(), "failing again and again");
}

#[test]
fn other_permissions_alone_restart_nothing() {
    let conf = || file("/etc/selvedge/opensm/compute.conf");
    let network = || file("/etc/systemd/network/10-selvedge-ib0.network");
    let mut desired = Desired::default();
    let mut observed = States::default();
    for path in [conf(), network()] {
        let wanted = content(&mut desired.blobs, "a");
        let State::File { digest, .. } = wanted.clone() else { unreachable!() };
        observed.0.insert(path.clone(), State::File { digest, mode: 0o600 });
        desired.want(path, wanted, "m");
    }
    let observed = Observed { states: observed, ..Observed::default() };
    let changes = desired.changes(&observed, &Owned::default());
    // networkd is not root: it may not have been able to read the file.
    assert_eq!(changed(&changes), [conf().to_string(), network().to_string(), "systemd-networkd configuration".into()]);
}

#[test]
fn what_left_the_spec_goes_back_to_what_it_was() {
    let desired = Desired::default();
    let origin = Origin::of;
    let owned = Owned::from(vec![
        (mode("ib0"), origin(State::Mode { mode: IpoibMode::Datagram })),
        (mtu("ib1"), origin(State::Absent)),
    ]);
    let states = [(mode("ib0"), State::Mode { mode: IpoibMode::Connected }), (mtu("ib1"), State::Mtu { bytes: 2044 })]
        .into_iter()
        .collect();
    let observed = Observed { states, ..Observed::default() };
    let changes = desired.changes(&observed, &owned);
    assert_eq!(changed(&changes), ["ib0 IPoIB mode"]);
    assert_eq!(changes[0].after, State::Mode { mode: IpoibMode::Datagram });
}

#[test]
fn unknown_is_not_what_is_wanted() {
    let mut desired = Desired::default();
    desired.want(mtu("ib0"), State::Mtu { bytes: 2044 }, "m");
    let changes = diff(&desired, &States::default(), &Owned::default());
    assert!(matches!(changes[0].before, State::Unknown { .. }));
}

#[test]
fn a_protected_link_is_guarded() {
    let link: IfName = "ib0".parse().unwrap();
    let protected = [Protected { link: link.clone(), carries: "the default route".into() }];
    let mut desired = Desired::default();
    desired.want(Object::Address { link, address: "10.0.0.1/16".parse().unwrap() }, State::Present, "a");
    let only_adds = diff(&desired, &nothing(&desired), &Owned::default());
    assert!(guard(&only_adds, &protected).is_empty());
    desired.want(mtu("ib0"), State::Mtu { bytes: 65520 }, "m");
    let resets = diff(&desired, &nothing(&desired), &Owned::default());
    assert_eq!(guard(&resets, &protected)[0].change.object, mtu("ib0"));
}
