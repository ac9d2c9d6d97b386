//! The simulated kernel against the real one: both walk through the same random changes and must agree at each step.

use std::collections::{BTreeMap, BTreeSet};

use selvedge::machine::Machine;
use selvedge::machine::real::RealMachine;
use selvedge::machine::sim::{SimMachine, SimPort};
use selvedge::rdma::{IpoibMode, PKey};
use selvedge::state::{Blobs, Change, Object, Reason, State};
use selvedge::tag::Tag;

use crate::Test;
use crate::ipoib::{GUID, Hca};
use crate::oracle::{mode, mtu, up};

pub(crate) const TESTS: &[Test] =
    &[("the_simulated_kernel_is_as_the_real_one", the_simulated_kernel_is_as_the_real_one)];

const WALKS: u64 = 12;
const STEPS: usize = 40;
const ADDRESSES: [&str; 3] = ["10.0.0.1/16", "10.1.0.1/24", "fd00::1/64"];
const CHILD: &str = "ib0.8001";
const LINKS: [&str; 2] = ["ib0", CHILD];
const MTUS: [u32; 11] = [67, 68, 72, 1279, 1280, 1500, 2044, 4092, 4093, 65_520, 65_521];

fn the_simulated_kernel_is_as_the_real_one() {
    for seed in 1..=WALKS {
        // A link of its own for each walk: what was asked of an earlier one is not remembered.
        let _hca = Hca::plug_in("");
        let mut real = RealMachine::live();
        let mut sim = simulated();
        let mut random = Random(seed);
        let mut taken = Vec::new();
        for step in 0..STEPS {
            let change = random.change();
            taken.push(format!("{} -> {}", change.object, change.after));
            let [real_said, sim_said] = [said(&mut real, &change), said(&mut sim, &change)];
            let place = || format!("walk {seed}, step {step}: {}", taken.join(", "));
            assert_eq!(real_said.is_ok(), sim_said.is_ok(), "{real_said:?} and simulated {sim_said:?} at {}", place());
            assert_eq!(seen(&mut real), seen(&mut sim), "states (real, simulated) at {}", place());
        }
    }
}

/// Without a subnet manager no multicast group limits the datagram MTU.
fn simulated() -> SimMachine {
    let port = SimPort {
        guid: GUID,
        kernel_name: "ib0".parse().unwrap(),
        connected_capable: true,
        max_mtu: 4096,
        multicast_mtu: 4096,
    };
    let mut sim = SimMachine { ports: vec![port], ..SimMachine::default() };
    let module = Object::Module { name: "ib_ipoib".parse().unwrap() };
    said(&mut sim, &change(module, State::Present)).unwrap();
    sim
}

fn said(machine: &mut impl Machine, change: &Change) -> Result<(), String> {
    machine.perform(change, &Blobs::default()).map_err(|error| error.to_string())
}

fn address(link: &str, text: &str) -> Object {
    Object::Address { link: link.parse().unwrap(), address: text.parse().unwrap() }
}

fn child() -> Object {
    let tag = Tag::Pkey(PKey::new(1).unwrap());
    Object::Child { link: CHILD.parse().unwrap(), parent: "ib0".parse().unwrap(), tag }
}

fn arp() -> Object {
    Object::Sysctl { key: "net/ipv4/conf/ib0/arp_ignore".parse().unwrap() }
}

fn seen(machine: &mut impl Machine) -> BTreeMap<String, String> {
    let mut scope = vec![child(), arp()];
    scope.extend(LINKS.into_iter().flat_map(|link| [mode(link), mtu(link), up(link)]));
    scope.extend(LINKS.into_iter().flat_map(|link| ADDRESSES.map(|text| address(link, text))));
    let states = machine.observe(&scope).unwrap().states;
    states.0.iter().map(|(object, state)| (object.to_string(), state.to_string())).collect()
}

fn change(object: Object, after: State) -> Change {
    let reason = Reason("a step of the walk".into());
    Change { object, before: State::Absent, after, reason, disturbs: BTreeSet::new(), condition: None }
}

/// Steele and Vigna's splitmix64: the same walk for the same seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    fn change(&mut self) -> Change {
        let link = LINKS[self.below(LINKS.len())];
        match self.below(10) {
            0 => change(child(), [State::Present, State::Present, State::Absent][self.below(3)].clone()),
            9 => change(arp(), State::Value { text: ["0", "1"][self.below(2)].to_owned() }),
            1 | 2 => {
                let mode_after = [IpoibMode::Datagram, IpoibMode::Connected][self.below(2)];
                change(mode(link), State::Mode { mode: mode_after })
            }
            3 | 4 => change(mtu(link), State::Mtu { bytes: MTUS[self.below(MTUS.len())] }),
            5 | 6 => change(up(link), [State::Up, State::Down][self.below(2)].clone()),
            _ => {
                let object = address(link, ADDRESSES[self.below(ADDRESSES.len())]);
                change(object, [State::Present, State::Absent][self.below(2)].clone())
            }
        }
    }
}
