//! 10,000 hosts of 8 ports are read and checked in well under a second, and 100,000 in about ten times that.
//!
//! Times are of this thread's CPU, so that a busy machine does not matter. Run
//! with `--release -- --nocapture` for the numbers that count.

#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::fmt::Write;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use selvedge::spec::load;

const RAILS: usize = 8;

/// An unoptimised build is some ten times slower, and the ratio is the same.
const SMALL: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };

fn cpu() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
}

fn head() -> String {
    let mut text = "version = 1\n[cluster]\nname = \"scale\"\n\
         [fabrics.compute]\ntransport = \"infiniband\"\nspeed = \"NDR\"\ntopology = \"fat-tree\"\n\
         [fabrics.compute.subnet-manager]\nprimary = \"n000001\"\nstandby = [\"n000002\"]\n"
        .to_owned();
    for rail in 0..RAILS {
        write!(text, "[networks.rail{rail}]\nfabric = \"compute\"\ncidr = \"10.{}.0.0/13\"\n", rail * 8).unwrap();
    }
    text
}

fn group(text: &mut String, hosts: &str) {
    write!(text, "[[nodes]]\nhosts = \"{hosts}\"\n").unwrap();
    for rail in 0..RAILS {
        write!(text, "[[nodes.ports]]\ndevice = \"mlx5_{rail}\"\ninterface = \"ib{rail}\"\nnetwork = \"rail{rail}\"\n")
            .unwrap();
    }
}

/// All hosts in one group.
fn folded(count: usize) -> String {
    let mut text = head();
    group(&mut text, &format!("n[000001-{count:06}]"));
    text
}

/// Each host in a group of its own, with all its ports: the longest spec of so many hosts.
fn spelt_out(count: usize) -> String {
    let mut text = head();
    for host in 1..=count {
        group(&mut text, &format!("n{host:06}"));
    }
    text
}

/// The least of three: what the machine can, without what else it had to do.
fn time(text: &str, count: usize) -> Duration {
    let run = || {
        let start = cpu();
        let spec = load("scale.toml", text).unwrap().spec;
        let took = cpu() - start;
        assert_eq!(spec.nodes.iter().map(|group| group.hosts.count()).sum::<usize>(), count);
        took
    };
    (0..3).map(|_| run()).min().unwrap()
}

fn linear(name: &str, spec: fn(usize) -> String) {
    let count = SMALL;
    let small = time(&spec(count), count);
    let large = time(&spec(10 * count), 10 * count);
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    println!("{name}: {count} hosts {small:?}, ten times as many {large:?}, ratio {ratio:.1}");
    // Ten would be exactly linear; caches and sorting cost something, quadratic would be a hundred.
    assert!(ratio < 25.0, "{name}: ten times the hosts take {ratio:.1} times as long");
    if !cfg!(debug_assertions) {
        assert!(small < Duration::from_secs(1), "{name}: {small:?}");
    }
}

#[test]
fn one_group_of_all_hosts_is_linear() {
    linear("folded", folded);
}

#[test]
fn a_group_for_each_host_is_linear() {
    linear("spelt out", spelt_out);
}

/// All hosts in one group, each with its GUIDs, and an address that is not what its number says.
fn with_exceptions(count: usize) -> String {
    let mut text = folded(count).replace("device = ", "# ");
    text.push_str("[hosts]\n");
    for host in 1..=count {
        for rail in 0..RAILS {
            writeln!(text, "n{host:06}.guids.ib{rail} = \"0x{:016x}\"", 0x0002_c903_0000_0000 + host * RAILS + rail)
                .unwrap();
        }
        let address = 0x0a04_0000 + u32::try_from(host).unwrap();
        writeln!(text, "n{host:06}.addresses.rail0 = \"{}\"", std::net::Ipv4Addr::from(address)).unwrap();
    }
    text
}

#[test]
fn exceptions_for_each_host_are_linear() {
    linear("exceptions", with_exceptions);
}

#[test]
fn a_fault_in_each_of_many_groups_is_still_quick() {
    let text = spelt_out(5_000).replace("network = \"rail7\"", "network = \"rial7\"");
    let start = cpu();
    let faults = load("scale.toml", &text).unwrap_err();
    let rendered = faults.render(selvedge::spec::Look::Plain);
    let took = cpu() - start;
    println!("5,000 faults of 5,000 groups: {took:?}");
    assert_eq!(faults.faults.len(), 5_000);
    assert!(rendered.ends_with("scale.toml: 5000 errors, the first 100 of them shown\n"));
    assert_eq!(faults.records().len(), 5_000);
}
