use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;
use crate::name::IfName;
use crate::rdma::{Guid, Transport};

/// A host laid out in a folder.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        host.write("/proc/sys/kernel/hostname", "gpu001\n");
        host.write("/proc/sys/kernel/osrelease", "6.1.0-57-amd64\n");
        host
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, path: &str) {
        self.write(path, "");
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn port(&self, device: &str, layer: &str, gid: &str) {
        let at = |file: &str| format!("/sys/class/infiniband/{device}/ports/1/{file}");
        self.write(&at("link_layer"), &format!("{layer}\n"));
        self.write(&at("gids/0"), &format!("{gid}\n"));
        self.write(&at("state"), "4: ACTIVE\n");
        self.write(&at("phys_state"), "5: LinkUp\n");
        self.write(&at("rate"), "200 Gb/sec (4X HDR)\n");
        self.write(&at("lid"), "0x1a\n");
        self.write(&at("sm_lid"), "0x1\n");
    }

    fn ipoib(&self, name: &str, index: u32, below: u32, first_byte: &str) {
        let at = |file: &str| format!("/sys/class/net/{name}/{file}");
        self.write(&at("type"), "32\n");
        self.write(&at("ifindex"), &format!("{index}\n"));
        self.write(&at("iflink"), &format!("{below}\n"));
        let address = format!("{first_byte}:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01\n");
        self.write(&at("address"), &address);
    }

    fn facts(&self) -> Facts {
        gather(self.0.path()).unwrap()
    }
}

#[test]
fn an_hca_is_described_from_sysfs() {
    let host = Host::new();
    host.port("mlx5_0", "InfiniBand", "fe80:0000:0000:0000:0002:c903:0000:0001");
    host.write("/sys/devices/0000:3b:00.0/numa_node", "1\n");
    host.link("/sys/devices/0000:3b:00.0/driver", "../drivers/mlx5_core");
    host.link("/sys/class/infiniband/mlx5_0/device", "../../../devices/0000:3b:00.0");
    host.write("/sys/class/infiniband/mlx5_0/fw_ver", "20.31.1014\n");
    host.write("/sys/class/infiniband/mlx5_0/board_id", "MT_0000000223\n");
    host.ipoib("ib0", 3, 3, "80");
    host.ipoib("ib0.8001", 7, 3, "80");
    let facts = host.facts();
    assert_eq!(
        (facts.hostname.as_ref().map(crate::name::HostName::as_str), facts.kernel.as_str()),
        (Some("gpu001"), "6.1.0-57-amd64")
    );
    let device = &facts.devices[0];
    assert_eq!(device.pci.as_deref(), Some("0000:3b:00.0"));
    assert_eq!(device.driver.as_deref(), Some("mlx5_core"));
    assert_eq!((device.firmware.as_deref(), device.numa_node), (Some("20.31.1014"), Some(1)));
    let port = &device.ports[0];
    assert_eq!((port.guid, port.transport), (Guid(0x0002_c903_0000_0001), Transport::Infiniband));
    assert_eq!((port.state.as_str(), port.physical_state.as_str()), ("ACTIVE", "LinkUp"));
    assert_eq!((port.lid, port.sm_lid), (26, 1));
    let netdev = port.netdev.as_ref().unwrap();
    assert_eq!((netdev.name.as_str(), netdev.connected_capable), ("ib0", Some(true)));
    assert_eq!(netdev.networkd_file, None);
    let decides = |file: &str| {
        host.write("/run/systemd/netif/links/3", &format!("ADMIN_STATE=configured\nNETWORK_FILE={file}\n"));
        host.facts().devices[0].ports[0].netdev.as_ref().unwrap().networkd_file.as_ref().map(ToString::to_string)
    };
    let (mine, netplan) = ("/etc/systemd/network/05-mine.network", "/run/systemd/network/10-netplan-ib0.network");
    assert_eq!(decides(mine).as_deref(), Some(mine));
    assert_eq!(decides(netplan).as_deref(), Some(netplan));
    host.write("/etc/netplan/60-selvedge.yaml", "");
    assert_eq!((decides(netplan), decides(mine).as_deref()), (None, Some(mine)));
}

#[test]
fn an_image_without_a_name_has_facts_all_the_same() {
    let image = tempfile::tempdir().unwrap();
    assert_eq!(gather(image.path()).unwrap().hostname, None);
    std::fs::create_dir(image.path().join("etc")).unwrap();
    for (written, hostname) in [("", None), ("not a name\n", None), ("node01\n", Some("node01"))] {
        std::fs::write(image.path().join("etc/hostname"), written).unwrap();
        let found = gather(image.path()).unwrap().hostname;
        assert_eq!(found.as_ref().map(crate::name::HostName::as_str), hostname);
    }
}

#[test]
fn enhanced_ipoib_is_not_capable_of_connected_mode() {
    let host = Host::new();
    host.port("mlx5_0", "InfiniBand", "fe80:0000:0000:0000:0002:c903:0000:0001");
    host.ipoib("ib0", 3, 3, "00");
    assert_eq!(host.facts().devices[0].ports[0].netdev.as_ref().unwrap().connected_capable, Some(false));
}

#[test]
fn a_software_device_has_an_interface_and_no_slot() {
    let host = Host::new();
    host.port("rxe0", "Ethernet", "fe80:0000:0000:0000:5054:00ff:fe12:3456");
    host.write("/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
    let facts = host.facts();
    let device = &facts.devices[0];
    assert_eq!((&device.pci, &device.driver, device.numa_node), (&None, &None, None));
    assert_eq!(device.ports[0].netdev.as_ref().unwrap().name.as_str(), "eth0");
    assert_eq!(device.ports[0].netdev.as_ref().unwrap().connected_capable, None);
}

#[test]
fn what_keeps_the_configuration_is_told_by_files() {
    let host = Host::new();
    assert_eq!(host.facts().config, crate::facts::ConfigEvidence::default());
    host.program("/usr/sbin/netplan");
    host.write("/etc/netplan/50-cloud-init.yaml", "");
    host.link("/etc/systemd/system/multi-user.target.wants/systemd-networkd.service", "/lib/systemd/system/x");
    let config = host.facts().config;
    assert_eq!(config.netplan.unwrap().as_str(), "/usr/sbin/netplan");
    assert!(config.netplan_files && config.networkd && !config.network_manager);
    host.link("/etc/systemd/system/systemd-networkd.service", "/dev/null");
    host.write("/sys/fs/cgroup/system.slice/NetworkManager.service/cgroup.events", "populated 1\nfrozen 0\n");
    let config = host.facts().config;
    assert!(!config.networkd, "masked");
    assert!(config.network_manager, "running");
}

#[test]
fn who_reads_ifcfg_files_is_told_by_files() {
    let host = Host::new();
    let ifcfg = || host.facts().config.ifcfg;
    let folder = "/etc/sysconfig/network-scripts/";
    for none in ["ifcfg-lo", "ifcfg-eth0.rpmsave", "readme-ifcfg-rh.txt", "ifup-eth"] {
        host.write(&format!("{folder}{none}"), "DEVICE=eth0\n");
    }
    host.write(&format!("{folder}ifcfg-ib0"), "# Written by selvedge for node01 of the cluster c.\nDEVICE=ib0\n");
    host.write("/etc/NetworkManager/system-connections/selvedge-ib0.nmconnection", "");
    host.link("/etc/rc.d/rc3.d/S10network", "../init.d/network");
    assert!(ifcfg().is_none(), "ours say nothing of the host, and `ifup-eth` cannot be run");
    host.write(&format!("{folder}ifcfg-eth0"), "DEVICE=eth0\n");
    host.program(&format!("{folder}ifup-eth"));
    let found = ifcfg();
    assert!(found.files && found.initscripts && !found.plugin && !found.keyfiles);
    host.write("/usr/lib64/NetworkManager/1.40.16-15.el8/libnm-settings-plugin-ifcfg-rh.so", "");
    host.write("/etc/NetworkManager/system-connections/eth1.nmconnection", "");
    assert!(ifcfg().plugin && ifcfg().keyfiles);
}

#[test]
fn wicked_is_told_by_its_units() {
    let host = Host::new();
    assert!(!host.facts().config.wicked);
    host.link("/etc/systemd/system/multi-user.target.wants/wicked.service", "/usr/lib/systemd/system/wicked.service");
    assert!(host.facts().config.wicked);
}

#[test]
fn a_file_that_cannot_be_run_is_no_program() {
    let host = Host::new();
    host.write("/usr/sbin/opensm", "");
    host.program("/sbin/ip");
    let programs = host.facts().programs;
    assert_eq!(programs.ip.unwrap().as_str(), "/sbin/ip");
    assert_eq!(programs.opensm, None);
}

#[test]
fn links_of_an_image_lead_where_they_will_once_it_runs() {
    let host = Host::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a.yaml"), "").unwrap();
    host.link("/etc/netplan", outside.path().to_str().unwrap());
    host.link("/usr/sbin/opensm", "/bin/sh");
    host.link("/usr/sbin/netplan", "/usr/share/netplan/netplan.script");
    let facts = host.facts();
    assert!(!facts.config.netplan_files, "a folder of this host is not the image's");
    assert_eq!((facts.programs.opensm, facts.config.netplan), (None, None), "and no program of this host");
    host.program("/usr/share/netplan/netplan.script");
    fs::remove_file(host.at("/etc/netplan")).unwrap();
    host.link("/etc/netplan", "/persist/netplan");
    host.write("/persist/netplan/a.yaml", "");
    let facts = host.facts();
    assert!(facts.config.netplan_files && facts.config.netplan.is_some());
}

struct FakeNetwork;

impl Network for FakeNetwork {
    fn default_route_links(&self) -> Vec<IfName> {
        vec![name("bond0")]
    }

    fn holding(&self, address: IpAddr) -> Option<IfName> {
        (address.to_string() == "10.0.2.15").then(|| name("eth0"))
    }

    fn of(&self, link: &IfName) -> Vec<ipnet::IpNet> {
        if link.as_str() == "ib0" { vec!["10.0.0.1/16".parse().unwrap()] } else { Vec::new() }
    }

    fn towards(&self, address: IpAddr) -> Option<IfName> {
        match address.to_string().as_str() {
            "127.0.0.1" => Some(name("lo")),
            text if text.starts_with("10.1.") => Some(name("ib0.8001")),
            _ => None,
        }
    }

    fn below(&self, link: &IfName) -> Vec<IfName> {
        match link.as_str() {
            "bond0" => vec![name("eth1"), name("eth2")],
            "ib0.8001" => vec![name("ib0")],
            _ => Vec::new(),
        }
    }
}

fn name(text: &str) -> IfName {
    text.parse().unwrap()
}

#[test]
fn links_that_must_not_be_cut_are_named_with_what_they_carry() {
    let host = Host::new();
    host.write("/proc/self/environ", "A=1\0");
    host.write("/proc/self/status", "PPid:\t41\n");
    host.write("/proc/41/environ", "SSH_CONNECTION=10.0.2.2 5100 10.0.2.15 22\0");
    host.write(
        "/proc/self/mountinfo",
        "1 0 0:1 / / rw - nfs s:/r rw,addr=10.1.0.1\n2 1 0:2 / /me rw - nfs l:/m rw,addr=127.0.0.1\n",
    );
    host.write("/sys/class/iscsi_connection/connection1:0/persistent_address", "10.1.0.5\n");
    let facts = gather_from(&Tree::new(host.0.path()), Some(&FakeNetwork)).unwrap();
    let shown: Vec<String> = facts.protected.iter().map(|p| format!("{}: {}", p.link, p.carries)).collect();
    assert_eq!(
        shown,
        [
            "bond0: the default route",
            "eth1: the default route, by way of bond0",
            "eth2: the default route, by way of bond0",
            "eth0: this SSH connection from 10.0.2.2",
            "ib0.8001: the root file system (nfs from 10.1.0.1)",
            "ib0: the root file system (nfs from 10.1.0.1), by way of ib0.8001",
            "ib0.8001: an iSCSI session with 10.1.0.5",
            "ib0: an iSCSI session with 10.1.0.5, by way of ib0.8001",
        ]
    );
}
