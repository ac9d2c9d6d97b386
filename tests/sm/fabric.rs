//! A simulated fabric (ibsim) with real managers (opensm) as child processes.
//!
//! Each fabric has a folder and a socket name of its own, so fabrics run side
//! by side. All that is started here is ended when the fabric is dropped.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use selvedge::rdma::Guid;
use tempfile::TempDir;

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

/// What is missing of the programs that these tests run.
pub(crate) fn missing() -> Vec<&'static str> {
    let found = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|dir: PathBuf| dir.join(program).is_file())
    };
    let packages = [("opensm", "opensm"), ("ibsim", "ibsim-utils"), ("smpdump", "infiniband-diags")];
    let mut missing: Vec<_> = packages.into_iter().filter(|(p, _)| !found(p)).map(|(_, package)| package).collect();
    if !Path::new(PRELOAD).is_file() {
        missing.push("ibsim-utils");
    }
    missing.dedup();
    missing
}

/// A child that ends with its fabric.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Hosts `node01` to `nodeNN` on one switch, `leaf01`.
pub(crate) struct Fabric {
    managers: Vec<(u8, Process)>,
    _ibsim: Process,
    dir: TempDir,
}

/// The port GUID of a host; ibsim gives port 1 the node's GUID plus one.
pub(crate) fn guid(host: u8) -> Guid {
    Guid(node_guid(host) + 1)
}

fn node_guid(host: u8) -> u64 {
    0x0002_c900_00a0_0000 + 0x1_0000 * u64::from(host)
}

fn net(hosts: u8) -> String {
    let switch = "S-0002c90000500000";
    let mut text = format!("switchguid=0x0002c90000500000\nSwitch {} \"{switch}\" # \"leaf01\"\n", hosts + 1);
    for host in 1..=hosts {
        writeln!(text, "[{host}] \"H-{:016x}\"[1]", node_guid(host)).unwrap();
    }
    for host in 1..=hosts {
        let guid = node_guid(host);
        writeln!(text, "\ncaguid=0x{guid:016x}\nHca 1 \"H-{guid:016x}\" # \"node{host:02} mlx5_0\"").unwrap();
        writeln!(text, "[1] \"{switch}\"[{host}]").unwrap();
    }
    text
}

impl Fabric {
    /// Starts one without a manager.
    pub(crate) fn start(hosts: u8) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("fabric.net"), net(hosts)).unwrap();
        let log = File::create(dir.path().join("ibsim.log")).unwrap();
        let ibsim = Command::new("ibsim")
            .args(["-s", "-n", "fabric.net"])
            .current_dir(dir.path())
            .env("IBSIM_SOCKNAME", dir.path().file_name().unwrap())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let fabric = Self { managers: Vec::new(), _ibsim: Process(ibsim), dir };
        wait("ibsim", Duration::from_secs(10), || fabric.run(1, "smpdump", &["-D", "0", "0x11"]).status.success());
        fabric
    }

    /// Where this fabric's files are.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A program that finds itself on a host of the fabric.
    pub(crate) fn command(&self, host: u8, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("IBSIM_SOCKNAME", self.path().file_name().unwrap())
            .env("SIM_HOST", format!("H-{:016x}", node_guid(host)))
            .env("LD_PRELOAD", PRELOAD)
            .stdin(Stdio::null());
        command
    }

    /// Runs a program of infiniband-diags on a host.
    pub(crate) fn run(&self, host: u8, program: &str, arguments: &[&str]) -> Output {
        self.command(host, program).args(arguments).output().unwrap()
    }

    /// The same, for its standard output.
    pub(crate) fn text(&self, host: u8, program: &str, arguments: &[&str]) -> String {
        let output = self.run(host, program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts opensm on a host with a configuration and partitions.
    pub(crate) fn manage(&mut self, host: u8, config: &str, partitions: &str) {
        let home = self.path().join(format!("node{host:02}"));
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("opensm.conf"), config).unwrap();
        fs::write(home.join("partitions.conf"), partitions).unwrap();
        let log = File::options().create(true).append(true).open(home.join("log")).unwrap();
        let child = self
            .command(host, "opensm")
            .arg("-F")
            .arg(home.join("opensm.conf"))
            .arg("-P")
            .arg(home.join("partitions.conf"))
            .env("OSM_TMP_DIR", &home)
            .env("OSM_CACHE_DIR", &home)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.managers.push((host, Process(child)));
    }

    /// What a host's opensm has written to its standard output and error.
    pub(crate) fn log(&self, host: u8) -> String {
        fs::read_to_string(self.path().join(format!("node{host:02}/log"))).unwrap_or_default()
    }

    /// Ends a host's opensm as a crash does.
    pub(crate) fn kill(&mut self, host: u8) {
        self.managers.retain(|(h, _)| *h != host);
    }

    /// Sends a signal to a host's opensm.
    pub(crate) fn signal(&self, host: u8, signal: &str) {
        let (_, process) = self.managers.iter().find(|(h, _)| *h == host).unwrap();
        assert!(Command::new("kill").args([signal, &process.0.id().to_string()]).status().unwrap().success());
    }

    /// What `sminfo` says of a host's manager, seen from another: its priority and state.
    pub(crate) fn sminfo(&self, from: u8, host: u8) -> Option<(u8, String)> {
        let route = if from == host { "0".to_owned() } else { format!("0,1,{host}") };
        let output = self.run(from, "sminfo", &["-t", "200", "-D", &route]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let after = |word: &str| text.split_whitespace().skip_while(|w| *w != word).nth(1).map(str::to_owned);
        Some((after("priority")?.parse().ok()?, text.split_whitespace().last()?.to_owned()))
    }

    /// Waits until `sminfo` says so.
    pub(crate) fn wait_for(&self, from: u8, host: u8, state: &str) {
        wait(&format!("node{host:02} to be {state}"), Duration::from_secs(20), || {
            self.sminfo(from, host).is_some_and(|(_, s)| s == state)
        });
    }
}

/// Polls until it is so.
pub(crate) fn wait(what: &str, most: Duration, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + most;
    while !so() {
        assert!(Instant::now() < deadline, "waited {} s for {what}", most.as_secs());
        sleep(Duration::from_millis(50));
    }
}
