//! Images of hosts: trees as distributions lay them out, applied to, drifted, rolled back; and hostile ones.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where a step of it fails")]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const EXAMPLE: &str = "examples/image.toml";
const FACTS: &str = "tests/cases/rhel9-keyfile/facts.json";

/// What is in a tree, by path: what it is, its mode, and its contents.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// A tree that looks like a distribution's, in a folder of its own.
struct Image(tempfile::TempDir);

impl Image {
    fn empty() -> Self {
        let image = Self(tempfile::tempdir().unwrap());
        fs::create_dir(image.at("/")).unwrap();
        image
    }

    /// What all of them have: a merged /usr, links that are absolute, programs, folders of systemd.
    fn usr_merged(os_release: &str) -> Self {
        let image = Self::empty();
        for folder in ["/usr/bin", "/usr/sbin", "/usr/lib/modules/5.14.0-570.el9.x86_64", "/etc/systemd/system", "/run"]
        {
            fs::create_dir_all(image.at(folder)).unwrap();
        }
        image.link("/bin", "usr/bin");
        image.link("/sbin", "/usr/sbin");
        image.link("/lib", "usr/lib");
        image.write("/usr/lib/os-release", os_release);
        image.link("/etc/os-release", "../usr/lib/os-release");
        image.link("/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf");
        for program in ["/usr/bin/selvedge", "/usr/sbin/ip", "/usr/sbin/opensm"] {
            image.program(program);
        }
        image
    }

    fn rhel9() -> Self {
        let image = Self::usr_merged("ID=\"rhel\"\nVERSION_ID=\"9.6\"\n");
        image.program("/usr/sbin/NetworkManager");
        image.enable("NetworkManager.service");
        fs::create_dir_all(image.at("/etc/NetworkManager/system-connections")).unwrap();
        image.write("/usr/lib/systemd/system/opensm.service", "[Service]\n");
        image
    }

    fn rhel8() -> Self {
        let image = Self::usr_merged("ID=\"rhel\"\nVERSION_ID=\"8.10\"\n");
        image.program("/usr/sbin/NetworkManager");
        image.enable("NetworkManager.service");
        image.write("/usr/lib64/NetworkManager/1.40.16-15.el8/libnm-settings-plugin-ifcfg-rh.so", "");
        image.write("/etc/sysconfig/network-scripts/ifcfg-eth0", "DEVICE=eth0\n");
        image
    }

    fn ubuntu(version: &str) -> Self {
        let image = Self::usr_merged(&format!("ID=ubuntu\nVERSION_ID=\"{version}\"\n"));
        image.program("/usr/share/netplan/netplan.script");
        image.link("/usr/sbin/netplan", "/usr/share/netplan/netplan.script");
        image.write("/etc/netplan/50-cloud-init.yaml", "network: {version: 2}\n");
        image.enable("systemd-networkd.service");
        image
    }

    /// The subnet manager of Debian's package is enabled by its installation.
    fn debian() -> Self {
        let image = Self::usr_merged("ID=debian\nVERSION_ID=\"12\"\n");
        image.enable("systemd-networkd.service");
        image.enable("opensm.service");
        image
    }

    fn sles15() -> Self {
        let image = Self::usr_merged("ID=\"sles\"\nVERSION_ID=\"15.6\"\n");
        image.program("/usr/sbin/wicked");
        image.link("/etc/systemd/system/network.service", "/usr/lib/systemd/system/wicked.service");
        image.enable("wicked.service");
        image.write("/etc/sysconfig/network/ifcfg-eth0", "STARTMODE=auto\n");
        image
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join("img").join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn program(&self, path: &str) {
        self.write(path, "#!/bin/sh\n");
        fs::set_permissions(self.at(path), Permissions::from_mode(0o755)).unwrap();
    }

    fn enable(&self, unit: &str) {
        let wants = format!("/etc/systemd/system/multi-user.target.wants/{unit}");
        self.link(&wants, &format!("/usr/lib/systemd/system/{unit}"));
    }

    fn run(&self, words: &[&str]) -> Output {
        let root = self.at("/").display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(words).args(["--root", &root]).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn on(&self, command: &str, node: &str) -> Output {
        self.run(&[command, EXAMPLE, "--node", node, "--facts", FACTS])
    }

    /// Everything but the journals.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        collect(&self.at("/"), &self.at("/"), &mut tree);
        tree.retain(|path, _| !path.starts_with("var"));
        tree
    }
}

fn collect(top: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let kind = found.file_type();
        let bytes = if kind.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if kind.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        tree.insert(path.strip_prefix(top).unwrap().to_owned(), (found.mode(), bytes));
        if kind.is_dir() {
            collect(top, &path, tree);
        }
    }
}

/// Where selvedge writes on a live host: each file and folder with its inode and when it was last changed in any way.
fn etc_of_this_host() -> Vec<(PathBuf, u64, i64, i64)> {
    let mut found = Vec::new();
    let etc = ["netplan", "systemd", "NetworkManager", "udev", "modules-load.d", "modprobe.d", "selvedge"];
    let mut folders: Vec<PathBuf> = etc.iter().map(|name| Path::new("/etc").join(name)).collect();
    folders.push(PathBuf::from("/var/lib/selvedge"));
    while let Some(folder) = folders.pop() {
        if let Ok(seen) = folder.metadata() {
            found.push((folder.clone(), seen.ino(), seen.ctime(), seen.ctime_nsec()));
        }
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let Ok(seen) = path.symlink_metadata() else { continue };
            if seen.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, seen.ino(), seen.ctime(), seen.ctime_nsec()));
        }
    }
    found.sort();
    assert!(!found.is_empty(), "this host has none of them");
    found
}

#[track_caller]
fn ends(output: &Output, code: i32, says: &str) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    assert!(out.contains(says) || err.contains(says), "no {says:?} in\n{out}\n{err}");
    out + &err
}

/// Applies, drifts and goes back; gives the tree as it was applied to.
#[track_caller]
fn there_and_back(image: &Image, node: &str) -> Tree {
    let (before, host) = (image.tree(), etc_of_this_host());
    let planned = ends(&image.on("plan", node), 2, &format!("an image: files only, and for {node} alone"));
    for live in ["module ", "link", " MTU", "unit ", "configuration:", "later"] {
        assert!(!planned.lines().any(|line| line.trim_start().starts_with(live)), "{live}: {planned}");
    }
    assert_eq!(image.tree(), before, "a plan changes nothing");
    ends(&image.on("apply", node), 0, "made, each read back");
    let applied = image.tree();
    assert_ne!(applied, before);
    ends(&image.on("apply", node), 0, "in sync");
    ends(&image.on("drift", node), 0, "in sync");
    assert_eq!(image.tree(), applied, "a second apply changes nothing");
    ends(&image.run(&["rollback"]), 0, "the image is as it was before it");
    assert_eq!(image.tree(), before, "byte for byte");
    assert_eq!(etc_of_this_host(), host, "nothing of this host is touched");
    ends(&image.on("apply", node), 0, "made, each read back");
    assert_eq!(image.tree(), applied);
    applied
}

fn text<'a>(tree: &'a Tree, path: &str) -> &'a str {
    let (_, bytes) = tree.get(Path::new(path)).unwrap_or_else(|| panic!("no {path} in {:?}", tree.keys()));
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn rhel_9_gets_keyfiles_and_its_manager() {
    let image = Image::rhel9();
    let tree = there_and_back(&image, "gpu01");
    let profile = "etc/NetworkManager/system-connections/selvedge-ib0.nmconnection";
    assert!(text(&tree, profile).contains("address1=10.2.0.1/16"));
    assert_eq!(tree[Path::new(profile)].0 & 0o7777, 0o600);
    // The GUID is the host's, what the HCA can do that of the facts.
    let rules = text(&tree, "etc/udev/rules.d/70-selvedge-ipoib.rules");
    assert!(rules.contains("*:50:6b:4b:03:00:a1:00:01") && !rules.contains("a1:b2:c4"), "{rules}");
    assert!(rules.contains("/usr/sbin/ip link set") && rules.contains("mode datagram"), "{rules}");
    let systemd = |name: &str| text(&tree, &format!("etc/systemd/system/{name}"));
    assert_eq!(systemd("opensm.service"), "/dev/null", "the distribution's own is masked");
    for (unit, target) in [("selvedge-opensm-compute", "multi-user"), ("selvedge-recover", "sysinit")] {
        let link = systemd(&format!("{target}.target.wants/{unit}.service"));
        assert_eq!(link, format!("/etc/systemd/system/{unit}.service"));
        assert!(systemd(&format!("{unit}.service")).contains("ExecStart=/usr/"));
    }
    assert!(text(&tree, "etc/selvedge/opensm/compute.conf").contains("guid 0x506b4b0300a10001"));
}

#[test]
fn ubuntu_gets_netplan_s_file() {
    for version in ["22.04", "24.04"] {
        let tree = there_and_back(&Image::ubuntu(version), "gpu04");
        let netplan = text(&tree, "etc/netplan/60-selvedge.yaml");
        assert!(netplan.contains("10.2.0.4/16"), "{netplan}");
        assert!(!tree.contains_key(Path::new("etc/systemd/system/opensm.service")), "no manager here");
    }
}

#[test]
fn debian_gets_files_of_networkd_and_its_own_manager_masked() {
    let image = Image::debian();
    let tree = there_and_back(&image, "gpu02");
    assert!(text(&tree, "etc/systemd/network/10-selvedge-ib0.network").contains("10.2.0.2/16"));
    assert_eq!(text(&tree, "etc/systemd/system/opensm.service"), "/dev/null");
    // Its enablement stays as it is: the mask is stronger.
    assert!(image.at("/etc/systemd/system/multi-user.target.wants/opensm.service").is_symlink());
    // The oracle of units is systemd's own, where there is one.
    let root = format!("--root={}", image.at("/").display());
    let mut systemctl = Command::new("systemctl");
    match systemctl.args([&root, "is-enabled", "opensm.service", "selvedge-opensm-compute.service"]).output() {
        Ok(said) => assert_eq!(String::from_utf8_lossy(&said.stdout), "masked\nenabled\n", "{said:?}"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
    }
}

#[test]
fn rhel_8_and_sles_get_ifcfg_files() {
    let tree = there_and_back(&Image::rhel8(), "gpu04");
    let file = text(&tree, "etc/sysconfig/network-scripts/ifcfg-ib0");
    assert!(file.contains("\nIPADDR=10.2.0.4\nPREFIX=16\n") && file.contains("\nCONNECTED_MODE=no\n"), "{file}");
    let tree = there_and_back(&Image::sles15(), "gpu04");
    let file = text(&tree, "etc/sysconfig/network/ifcfg-ib0");
    assert!(file.contains("\nIPADDR=10.2.0.4/16\n") && file.contains("\nIPOIB_MODE=datagram\n"), "{file}");
}

#[test]
fn what_only_hardware_can_say_is_one_fault_with_what_to_give() {
    let image = Image::rhel9();
    let without = image.run(&["apply", EXAMPLE, "--node", "gpu01"]);
    let said = ends(&without, 1, "not known of the HCAs, which an image does not have");
    assert!(said.contains("1 fault\n") && said.contains("whether it can do connected mode"), "{said}");
    assert!(said.contains("give `--facts FILE`") && said.contains("in [networks.compute]"), "{said}");
    assert!(!said.contains("`guids."), "the spec has the GUID: {said}");
    let spec = fs::read_to_string(EXAMPLE).unwrap();
    let path = image.0.path().join("spec.toml").display().to_string();
    let own_guid = "gpu01.guids.ib0 = \"0x506b4b0300a10001\"\n";
    fs::write(&path, spec.replace(own_guid, "")).unwrap();
    let said = ends(&image.run(&["apply", &path, "--node", "gpu01", "--facts", FACTS]), 1, "its GUID");
    assert!(said.contains("those of gpu03, whose GUIDs are its own") && said.contains("[hosts.gpu01]"), "{said}");
    // The facts of the host itself have its GUID.
    let facts = fs::read_to_string(FACTS).unwrap().replace("\"gpu03\"", "\"gpu01.site.example\"");
    let own = image.0.path().join("own.json").display().to_string();
    fs::write(&own, facts).unwrap();
    ends(&image.run(&["plan", &path, "--node", "gpu01", "--facts", &own]), 2, "to make, in this order");
    // A spec that insists on a mode says all that is needed.
    fs::write(&path, spec.replace("mode = \"auto\"", "mode = \"datagram\"")).unwrap();
    ends(&image.run(&["apply", &path, "--node", "gpu01"]), 0, "made, each read back");
    assert!(image.read("/etc/udev/rules.d/70-selvedge-ipoib.rules").contains("*:50:6b:4b:03:00:a1:00:01"));
}

#[test]
fn an_hca_that_the_facts_do_not_have_is_named_with_those_that_they_have() {
    let image = Image::rhel9();
    let path = image.0.path().join("spec.toml").display().to_string();
    fs::write(&path, fs::read_to_string(EXAMPLE).unwrap().replace("\"mlx5_0\"", "\"mlx5_9\"")).unwrap();
    let said = ends(&image.run(&["plan", &path, "--node", "gpu01", "--facts", FACTS]), 1, "no such RDMA device");
    assert!(said.contains("mlx5_0 port 1 at 0000:3b:00.0"), "{said}");
}

#[test]
fn a_service_that_is_not_enabled_in_the_image_is_enabled_there() {
    let image = Image::rhel9();
    fs::remove_file(image.at("/etc/systemd/system/multi-user.target.wants/NetworkManager.service")).unwrap();
    let path = image.0.path().join("spec.toml").display().to_string();
    for (config, unit) in [("networkmanager", "NetworkManager"), ("networkd", "systemd-networkd")] {
        let spec = fs::read_to_string(EXAMPLE).unwrap();
        fs::write(&path, spec.replace("config = \"auto\"", &format!("config = \"{config}\""))).unwrap();
        let said = ends(&image.run(&["plan", &path, "--node", "gpu04", "--facts", FACTS]), 1, "is not at work here");
        assert!(said.contains(&format!("`systemctl --root=DIR enable {unit}`")) && !said.contains("--now"), "{said}");
    }
}

/// A chroot has the builder's /proc, /sys and /run mounted.
#[test]
fn what_runs_on_the_host_that_builds_an_image_is_not_the_image_s() {
    let image = Image::rhel9();
    image.write("/sys/fs/cgroup/system.slice/systemd-networkd.service/cgroup.events", "populated 1\n");
    image.write("/run/netplan/a.yaml", "");
    image.program("/usr/sbin/netplan");
    image.write("/proc/sys/kernel/hostname", "builder\n");
    ends(&image.on("plan", "gpu04"), 2, "/etc/NetworkManager/system-connections/selvedge-ib0.nmconnection");
}

#[test]
fn a_link_in_an_image_is_followed_inside_of_it_or_refused() {
    let outside = tempfile::tempdir().unwrap();
    let there = outside.path().join("systemd");
    fs::create_dir_all(&there).unwrap();
    for folder in ["/etc/NetworkManager", "/etc/udev", "/etc/systemd", "/etc/selvedge", "/etc/modules-load.d"] {
        let image = Image::rhel9();
        let moved = image.at("/moved");
        if image.at(folder).exists() {
            fs::rename(image.at(folder), moved).unwrap();
        }
        image.link(folder, there.to_str().unwrap());
        let before = image.tree();
        ends(&image.on("apply", "gpu01"), 1, "");
        assert_eq!(image.tree(), before, "{folder}");
        assert!(fs::read_dir(&there).unwrap().next().is_none(), "{folder} leads out");
        let escape = image.at(folder);
        fs::remove_file(&escape).unwrap();
        symlink("../../../../../../moved", &escape).unwrap();
        fs::create_dir_all(image.at("/moved")).unwrap();
        ends(&image.on("apply", "gpu01"), 0, "made, each read back");
        assert!(fs::read_dir(image.at("/moved")).unwrap().next().is_some(), "its own links hold, from its root");
    }
    let image = Image::rhel9();
    for name in fs::read_dir(image.at("/etc")).unwrap().map(|entry| entry.unwrap().file_name()) {
        fs::rename(image.at("/etc").join(&name), image.at("/").join(&name)).unwrap();
    }
    fs::remove_dir(image.at("/etc")).unwrap();
    image.link("/etc", "/");
    let host = etc_of_this_host();
    ends(&image.on("apply", "gpu01"), 0, "made, each read back");
    assert!(image.at("/selvedge/opensm/compute.conf").exists());
    assert_eq!(etc_of_this_host(), host);
}

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_is_no_file_in_an_image_is_neither_opened_nor_replaced() {
    for path in [
        "/etc/udev/rules.d/70-selvedge-ipoib.rules",
        "/etc/systemd/system/selvedge-recover.service",
        "/etc/NetworkManager/system-connections/selvedge-ib0.nmconnection",
    ] {
        let image = Image::rhel9();
        fifo(&image.at(path));
        ends(&image.on("apply", "gpu01"), 1, "it is neither a regular file nor a symbolic link");
        assert!(image.at(path).symlink_metadata().unwrap().file_type().is_fifo());
    }
    for path in ["/etc/hostname", "/usr/lib/os-release", "/etc/netplan/a.yaml"] {
        let image = Image::rhel9();
        let _ = fs::remove_file(image.at(path));
        fifo(&image.at(path));
        ends(&image.on("apply", "gpu01"), 0, "made, each read back");
    }
    for path in ["lock", "journal/00000001.done", "journal/00000001.open", "blobs/0123", "journal", "blobs"] {
        let image = Image::rhel9();
        fifo(&image.at("/var/lib/selvedge").join(path));
        let refused = "is none of the files and folders that selvedge makes there";
        ends(&image.on("apply", "gpu01"), 1, refused);
        ends(&image.run(&["rollback"]), 1, refused);
    }
    let image = Image::rhel9();
    let huge = image.at("/etc/udev/rules.d/70-selvedge-ipoib.rules");
    fs::create_dir_all(huge.parent().unwrap()).unwrap();
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    ends(&image.on("apply", "gpu01"), 1, "it is larger than 16 MiB");
}

#[test]
fn a_rollback_of_an_image_to_which_nothing_was_applied_says_so() {
    let image = Image::rhel9();
    let before = image.tree();
    ends(&image.run(&["rollback"]), 1, "nothing was ever applied");
    assert_eq!(image.tree(), before);
    ends(&image.run(&["rollback", "--node", "gpu01"]), 64, "cannot be used with");
}

#[test]
fn facts_are_for_an_image_only() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let output = command.args(["plan", EXAMPLE, "--node", "gpu01", "--facts", FACTS]).output().unwrap();
    ends(&output, 64, "--root <DIR>");
}

/// Two rails and storage, the rails by GUID alone.
const RAILS: &str = r#"
version = 1
[cluster]
name = "rails"
[fabrics.a]
transport = "infiniband"
speed = "HDR"
[fabrics.s]
transport = "roce"
speed = "100G"
[networks.a]
fabric = "a"
cidr = "10.2.0.0/16"
[networks.b]
fabric = "a"
cidr = "10.3.0.0/16"
mode = "datagram"
[networks.s]
fabric = "s"
cidr = "10.4.0.0/16"
[[nodes]]
hosts = "gpu[01-04]"
[[nodes.ports]]
interface = "rail0"
network = "a"
[[nodes.ports]]
interface = "rail1"
network = "b"
[[nodes.ports]]
device = "mlx5_2"
network = "s"
[hosts]
gpu01.guids.rail0 = "0x506b4b0300a10001"
gpu01.guids.rail1 = "0x506b4b0300a10002"
gpu02.guids.rail0 = "0x506b4b0300a10003"
gpu02.guids.rail1 = "0x506b4b0300a10004"
gpu03.guids.rail0 = "0x506b4b0300a1b2c4"
gpu03.guids.rail1 = "0x506b4b0300a1b2d8"
gpu04.guids.rail0 = "0x506b4b0300a10007"
gpu04.guids.rail1 = "0x506b4b0300a10008"
"#;

#[test]
fn ports_by_guid_alone_are_like_all_those_of_the_facts_if_these_are_alike() {
    let image = Image::debian();
    let [spec, mixed] = ["spec.toml", "mixed.json"].map(|name| image.0.path().join(name).display().to_string());
    fs::write(&spec, RAILS).unwrap();
    let plan = |facts: &str| image.run(&["plan", &spec, "--node", "gpu02", "--facts", facts]);
    ends(&plan(FACTS), 2, "the text of the 7 new files: the same with `--format json`");
    let words = ["plan", &spec, "--node", "gpu02", "--facts", FACTS, "--format", "json"];
    let planned = ends(&image.run(&words), 2, "10-selvedge-ens3f0np0.network").replace("\\\"", "\"");
    for part in ["*:50:6b:4b:03:00:a1:00:03\", NAME=\"rail0\"", "10.3.0.2/16", "10.4.0.2/16", "MTUBytes=2044"] {
        assert!(planned.contains(part), "no {part} in {planned}");
    }
    let facts = fs::read_to_string(FACTS).unwrap();
    fs::write(&mixed, facts.replacen("\"connected_capable\": false", "\"connected_capable\": true", 1)).unwrap();
    let said = ends(&plan(&mixed), 1, "its HCAs are not all alike");
    // rail1 insists on its mode, so nothing is missing of it.
    assert!(said.contains("rail0") && !said.contains("rail1"), "{said}");
    assert!(said.contains("`device` or `pci` in [[nodes.ports]]"), "{said}");
    // Without facts, all that is missing is told at once.
    let said = ends(&image.run(&["plan", &spec, "--node", "gpu02"]), 1, "1 fault\n");
    assert!(said.contains("s ([[nodes.ports]] device = \"mlx5_2\"): the name of its interface"), "{said}");
    assert!(said.contains("rail0") && said.contains("`interface` in [[nodes.ports]]"), "{said}");
    // The node that the facts are of has these very ports.
    let words = ["plan", &spec, "--node", "gpu03", "--facts", FACTS, "--format", "json"];
    ends(&image.run(&words), 2, "*:50:6b:4b:03:00:a1:b2:d8");
}

/// A tree of its own is all that a user needs who is not root.
#[test]
fn a_user_s_own_tree_is_as_good() {
    let image = Image::rhel9();
    let is_root = || fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if is_root() {
        let mut own = Command::new("chown");
        assert!(own.args(["-R", "65534"]).arg(image.0.path()).status().unwrap().success());
    }
    let run = |command: &str| {
        let root = image.at("/").display().to_string();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let [example, facts] = [EXAMPLE, FACTS].map(|path| image.0.path().join(Path::new(path).file_name().unwrap()));
        fs::copy(here.join(EXAMPLE), &example).unwrap();
        fs::copy(here.join(FACTS), &facts).unwrap();
        let binary = image.0.path().join("selvedge");
        if !binary.exists() {
            fs::copy(env!("CARGO_BIN_EXE_selvedge"), &binary).unwrap();
        }
        let [example, facts, binary] = [example, facts, binary].map(|path| path.display().to_string());
        let mut words = vec![binary.as_str(), command];
        if command != "rollback" {
            words.extend([&example, "--node", "gpu01", "--facts", &facts]);
        }
        words.extend(["--root", &root]);
        let mut user = if is_root() { Command::new("setpriv") } else { Command::new("env") };
        if is_root() {
            user.args(["--reuid", "65534", "--clear-groups"]);
        }
        user.args(words).current_dir("/").output().unwrap()
    };
    let before = image.tree();
    ends(&run("apply"), 0, "they have to be root's before it boots");
    ends(&run("apply"), 0, "in sync");
    ends(&run("drift"), 0, "in sync");
    ends(&run("rollback"), 0, "rolled back");
    assert_eq!(image.tree(), before);
}
