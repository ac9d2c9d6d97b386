//! RDMA measurements over soft-RoCE: real verbs on a real kernel, in the lab.
//!
//! With `SELVEDGE_LAB=1` it boots the lab's kernel and runs this same binary
//! there, which is the measuring process too. With the argument `compare`, it
//! measures side by side with perftest and prints the ratios.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

mod perf_compare;
mod place;

use std::io::{stdin, stdout};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use selvedge::perf::model::{Check, Measured, Open, Run};
use selvedge::perf::proof::{Direction, Proof, prove};
use selvedge::perf::worker::parent::End;
use selvedge::perf::worker::{SUBCOMMAND, Worker, WorkerError, serve};

/// For emulation on a busy machine; nothing that works takes so long.
const SOON: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has(SUBCOMMAND) {
        serve(stdin().lock(), stdout().lock()).unwrap();
    } else if place::is_guest() {
        soft_roce();
        if has("compare") { perf_compare::compare() } else { guest() }
    } else if has("--list") {
        println!("soft_roce: test");
    } else if place::must_run() || has("compare") {
        return in_the_lab(has("compare"));
    } else {
        println!("test soft_roce ... ignored, boots the lab's kernel: with SELVEDGE_LAB=1");
        println!("test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
    }
    ExitCode::SUCCESS
}

fn in_the_lab(compare: bool) -> ExitCode {
    let passed = place::on_kernel(if compare { &["compare"] } else { &[] });
    let (verdict, count) = if passed { ("ok", "1 passed; 0 failed") } else { ("FAILED", "0 passed; 1 failed") };
    println!("test soft_roce ... {verdict}\n\ntest result: {verdict}. {count}; 0 ignored; 0 measured; 0 filtered out");
    place::code(passed)
}

fn sh(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

/// One soft-RoCE device that talks to itself.
fn soft_roce() {
    sh("modprobe rdma_rxe; ip link set lo up; ip link set eth0 up mtu 1500; ip addr add 10.0.0.1/24 dev eth0
        rdma link add rxe0 type rxe netdev eth0");
    let gids = Path::new("/sys/class/infiniband/rxe0/ports/1/gids/1");
    let deadline = Instant::now() + SOON;
    while !std::fs::read_to_string(gids).is_ok_and(|gid| gid.contains("ffff:0a00:0001")) {
        assert!(Instant::now() < deadline, "rxe0 took no GID from eth0's address");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn open() -> Open {
    let mut open = Open::new("rxe0".parse().unwrap(), 1);
    open.subnet = Some("10.0.0.0/24".parse().unwrap());
    open
}

/// Two connected workers with the endpoints that they opened.
fn pair() -> ((Worker, u64), (Worker, u64)) {
    let (mut a, mut b) = (Worker::spawn().unwrap(), Worker::spawn().unwrap());
    let at_a = a.open(&open(), SOON).unwrap();
    let at_b = b.open(&open(), SOON).unwrap();
    assert_eq!((at_a.gid_index, at_a.mtu, at_a.lid), (Some(1), 1024, 0), "{at_a:?}");
    b.connect(&at_a, SOON).unwrap();
    a.connect(&at_b, SOON).unwrap();
    ((a, at_a.seed), (b, at_b.seed))
}

fn guest() {
    for (name, test) in [
        ("writes_arrive_and_are_measured", writes as fn()),
        ("reads_arrive_and_are_measured", reads),
        ("a_vanished_peer_is_a_clear_error", vanished_peer),
        ("a_worker_that_hangs_is_killed_and_reported", hung_worker),
        ("what_cannot_be_done_is_said", refusals),
    ] {
        let start = Instant::now();
        test();
        println!("test {name} ... ok in {:.1} s", start.elapsed().as_secs_f64());
    }
}

fn writes() {
    let ((mut a, seed_a), (mut b, _)) = pair();
    let before = b.check(Check { seed: seed_a, size: 65_536 }, SOON).unwrap();
    assert!(!before.is_right(), "nothing was written yet");
    let run = Run { duration_ms: Some(1500), ..Run::write_bw() };
    let outcome = a.run(&run, SOON).unwrap();
    let Measured::WriteBw(bandwidth) = outcome.measured else { panic!("{outcome:?}") };
    println!("  {bandwidth}");
    assert!(bandwidth.messages > 16 && bandwidth.elapsed_ns >= 1_500_000_000, "{bandwidth}");
    let checked = b.check(Check { seed: seed_a, size: 65_536 }, SOON).unwrap();
    assert!(checked.is_right(), "{checked:?}");
    let again = b.check(Check { seed: seed_a, size: 65_536 }, SOON).unwrap();
    assert!(!again.is_right(), "a check clears what it checked");

    let proof = prove(&outcome.before, &outcome.after, Direction::Sent, bandwidth.bytes(), 1024);
    println!("  {proof}");
    assert!(matches!(proof, Proof::Software { .. }), "{proof:?} {outcome:?}");
    let nothing = prove(&outcome.before, &outcome.before, Direction::Sent, bandwidth.bytes(), 1024);
    assert!(!nothing.holds());

    // A count that is no multiple of the list, a queue hardly longer than the list, and one message.
    for (iterations, depth, post_list, size) in [(53, 17, 16, 65_536), (5, 8, 8, 1), (1, 1, 1, 4096)] {
        let run = Run { iterations: Some(iterations), depth, post_list, size, ..Run::write_bw() };
        let Measured::WriteBw(bandwidth) = a.run(&run, SOON).unwrap().measured else { panic!() };
        assert_eq!(bandwidth.messages, iterations);
        assert!(b.check(Check { seed: seed_a, size }, SOON).unwrap().is_right());
    }
    a.close(SOON).unwrap();
    b.close(SOON).unwrap();
}

fn reads() {
    let ((mut a, _), (b, seed_b)) = pair();
    let Measured::ReadLat(latency) = a.run(&Run::read_lat(), SOON).unwrap().measured else { panic!() };
    println!("  {latency}");
    assert_eq!(latency.samples, 1000);
    assert!(0.0 < latency.min_us && latency.min_us <= latency.typical_us && latency.typical_us <= latency.p99_us);
    assert!(a.check(Check { seed: seed_b, size: 2 }, SOON).unwrap().is_right());
    let run = Run { size: 65_536, duration_ms: Some(300), ..Run::read_lat() };
    let Measured::ReadLat(latency) = a.run(&run, SOON).unwrap().measured else { panic!() };
    println!("  {latency}");
    assert!(a.check(Check { seed: seed_b, size: 65_536 }, SOON).unwrap().is_right());
    drop(b);
}

fn vanished_peer() {
    let ((mut a, _), (b, _)) = pair();
    drop(b);
    let start = Instant::now();
    let error = a.run(&Run::write_bw(), SOON).unwrap_err();
    println!("  {error}, after {:.2} s", start.elapsed().as_secs_f64());
    assert!(error.is_peer_lost() && error.to_string().contains("retry counter exceeded"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
    // The worker lives, and its next measurement starts from a new `open`.
    assert!(matches!(a.run(&Run::write_bw(), SOON), Err(WorkerError::Refused(_))));
    assert!(a.open(&open(), SOON).is_ok());
}

fn hung_worker() {
    let mut worker = Worker::spawn().unwrap();
    sh(&format!("kill -STOP {}", worker.pid()));
    let start = Instant::now();
    let error = worker.open(&open(), Duration::from_millis(300)).unwrap_err();
    println!("  {error}");
    assert!(matches!(error, WorkerError::Late { end: End::Exited(_), .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
    let error = worker.open(&open(), SOON).unwrap_err();
    assert!(matches!(error, WorkerError::Gone { .. }), "{error}");
}

fn refusals() {
    let mut worker = Worker::spawn().unwrap();
    let mut refused = |open: &Open| {
        let error = worker.open(open, SOON).unwrap_err().to_string();
        println!("  {error}");
        error
    };
    assert!(refused(&Open::new("mlx5_0".parse().unwrap(), 1)).contains("sees rxe0"));
    assert!(refused(&Open::new("rxe0".parse().unwrap(), 2)).contains("ibv_query_port on rxe0"));
    let elsewhere = Open { subnet: Some("10.1.0.0/16".parse().unwrap()), ..open() };
    assert!(refused(&elsewhere).contains("no RoCE v2 GID with a global address in 10.1.0.0/16"));
    assert!(refused(&Open { pkey: Some(0x8001), ..open() }).contains("no P_Key 0x8001: its table is 0xffff"));
    sh("ip link set eth0 down");
    assert!(refused(&open()).contains("rxe0"));
    sh("ip link set eth0 up; ip addr replace 10.0.0.1/24 dev eth0; sleep 0.5");
    let ((mut a, _), _b) = pair();
    let large = a.run(&Run { size: 1 << 20, ..Run::write_bw() }, SOON).unwrap_err();
    println!("  {large}");
    assert!(large.to_string().contains("opened for 65536"));
    assert!(a.run(&Run { depth: 4096, ..Run::write_bw() }, SOON).unwrap_err().to_string().contains("opened for 128"));
}
