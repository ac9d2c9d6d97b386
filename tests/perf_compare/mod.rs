//! Side by side with perftest on the same device, in turns, and the ratios.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use selvedge::perf::model::{Measured, Run};

const ROUNDS: usize = 3;
/// perftest's port for the exchange of queue pair data.
const PORT: u16 = 18515;
/// Enough for a second of soft-RoCE under emulation.
const WRITES: u64 = 1000;
const READS: u64 = 2000;

/// Runs both tools in turns and prints their medians and the ratio of ours to perftest's.
pub(crate) fn compare() {
    let (mut bandwidth, mut latency) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let theirs = perftest("ib_write_bw", &["-s", "65536"], WRITES, 3);
        let ours = write_mib_per_s();
        let their_lat = perftest("ib_read_lat", &["-s", "2"], READS, 4);
        let our_lat = read_typical_us();
        println!(
            "round {round}: WRITE ib_write_bw {theirs:.2}, selvedge {ours:.2} MiB/s; \
             READ t_typical ib_read_lat {their_lat:.2}, selvedge {our_lat:.2} us"
        );
        bandwidth.push((theirs, ours));
        latency.push((their_lat, our_lat));
    }
    for (name, pairs) in [("WRITE bandwidth, MiB/s", bandwidth), ("READ latency, t_typical us", latency)] {
        let (theirs, ours) = (median(pairs.iter().map(|p| p.0)), median(pairs.iter().map(|p| p.1)));
        println!("{name}: perftest {theirs:.2}, selvedge {ours:.2}, ratio {:.3}", ours / theirs);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both ends of a perftest program; the column of its result line.
fn perftest(program: &str, arguments: &[&str], iterations: u64, column: usize) -> f64 {
    let common = |command: &mut Command| {
        command.args(["-d", "rxe0", "-x", "1", "-F", "-n", &iterations.to_string()]).args(arguments);
    };
    let mut server = Command::new(program);
    common(&mut server);
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !listening(PORT) {
        assert!(server.try_wait().unwrap().is_none(), "the server of {program} ended");
        sleep(Duration::from_millis(100));
    }
    let mut client = Command::new(program);
    common(&mut client);
    let output = client.arg("10.0.0.1").output().unwrap();
    if !output.status.success() {
        let _ = server.kill();
    }
    server.wait().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().skip_while(|line| !line.contains("#bytes")).nth(1).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().nth(column).unwrap().parse().unwrap()
}

/// Whether someone listens on a TCP port: state 0A in the kernel's tables.
fn listening(port: u16) -> bool {
    let local = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        std::fs::read_to_string(table).unwrap_or_default().lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            fields.next().is_some_and(|address| address.ends_with(&local)) && fields.nth(1) == Some("0A")
        })
    })
}

fn write_mib_per_s() -> f64 {
    let ((mut a, _), _b) = super::pair();
    let run = Run { iterations: Some(WRITES), ..Run::write_bw() };
    let Measured::WriteBw(bandwidth) = a.run(&run, Duration::from_secs(60)).unwrap().measured else { panic!() };
    bandwidth.mib_per_s()
}

fn read_typical_us() -> f64 {
    let ((mut a, _), _b) = super::pair();
    let run = Run { iterations: Some(READS), ..Run::read_lat() };
    let Measured::ReadLat(latency) = a.run(&run, Duration::from_secs(60)).unwrap().measured else { panic!() };
    latency.typical_us
}
