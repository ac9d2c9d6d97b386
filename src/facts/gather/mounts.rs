//! File systems that come over the network, from /proc/self/mountinfo. Pure.

use std::net::{IpAddr, SocketAddr};

/// A mounted file system that comes over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteMount {
    /// Where it is mounted.
    pub(super) target: String,
    /// Its type: `nfs4`, `lustre`.
    pub(super) kind: String,
    /// The addresses of its servers; none where the mount does not tell them.
    pub(super) servers: Vec<IpAddr>,
}

/// The mounts in `mountinfo` (proc_pid_mountinfo(5)) that come over the network.
pub(super) fn remote(mountinfo: &str) -> Vec<RemoteMount> {
    mountinfo.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<RemoteMount> {
    let (place, device) = line.split_once(" - ")?;
    let target = unescaped(place.split(' ').nth(4)?);
    let mut fields = device.split(' ');
    let kind = fields.next()?;
    let source = unescaped(fields.next()?);
    let options = unescaped(fields.next().unwrap_or_default());
    let servers = servers(kind, &source, &options)?;
    Some(RemoteMount { target, kind: kind.to_owned(), servers })
}

/// `None` for what does not come over the network.
fn servers(kind: &str, source: &str, options: &str) -> Option<Vec<IpAddr>> {
    let option = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let addresses = match kind {
        "nfs" | "nfs4" | "cifs" | "smb3" => {
            // Always there: the kernel puts in what the name in the source resolved to.
            option("addr").and_then(address).into_iter().collect()
        }
        "9p" if matches!(option("trans"), Some("tcp" | "rdma")) => address(source).into_iter().collect(),
        "lustre" => lustre_servers(source),
        "ceph" => {
            let monitors =
                option("mon_addr").map_or_else(|| before_path(source).to_owned(), |list| list.replace('/', ","));
            monitors.split(',').filter_map(address).collect()
        }
        "gpfs" | "beegfs" | "fuse.glusterfs" => Vec::new(),
        _ => return None,
    };
    Some(addresses)
}

/// `10.0.0.1@o2ib,10.0.1.1@tcp:10.0.0.2@o2ib:/work`: the networks of one server, then of its stand-in.
fn lustre_servers(source: &str) -> Vec<IpAddr> {
    let identifiers = before_path(source).split([':', ',']);
    identifiers.filter_map(|identifier| address(identifier.split('@').next()?)).collect()
}

fn before_path(source: &str) -> &str {
    source.split_once(":/").map_or(source, |(servers, _)| servers)
}

/// An address with or without a port or a zone.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let text = text.split('%').next()?;
    let with_port = || text.parse::<SocketAddr>().map(|socket| socket.ip());
    let ip = text.parse::<IpAddr>().or_else(|_| with_port()).ok()?;
    Some(ip.to_canonical())
}

/// Blanks and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<(String, Vec<String>)> {
        mount(line).map(|mount| (mount.target, mount.servers.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn servers_are_found_where_each_file_system_says_them() {
        let cases = [
            (
                "52 25 0:45 / /home rw,relatime shared:28 - nfs4 files:/home rw,vers=4.2,clientaddr=10.0.0.7,addr=10.0.0.1",
                "/home",
                &["10.0.0.1"][..],
            ),
            ("25 1 0:20 / / rw - nfs 10.0.0.2:/roots/n1 rw,vers=3,addr=10.0.0.2", "/", &["10.0.0.2"]),
            ("52 25 0:45 / /a\\040b rw - cifs //srv/x rw,addr=2001:db8::1", "/a b", &["2001:db8::1"]),
            (
                "60 25 0:50 / /work rw - lustre 10.1.0.1@o2ib,10.2.0.1@tcp:10.1.0.2@o2ib:/work rw,flock",
                "/work",
                &["10.1.0.1", "10.2.0.1", "10.1.0.2"],
            ),
            ("61 25 0:51 / /c rw - ceph 10.0.0.1:6789,10.0.0.2:6789:/ rw,name=a", "/c", &["10.0.0.1", "10.0.0.2"]),
            (
                "61 25 0:51 / /c rw - ceph a@f.fs=/ rw,mon_addr=10.0.0.1:3300/10.0.0.2:3300",
                "/c",
                &["10.0.0.1", "10.0.0.2"],
            ),
            ("62 25 0:52 / /9 rw - 9p 10.0.0.9 rw,trans=tcp,port=564", "/9", &["10.0.0.9"]),
            ("63 25 0:53 / /gpfs rw - gpfs fs1 rw", "/gpfs", &[]),
        ];
        for (line, target, servers) in cases {
            let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
            assert_eq!(found(line), Some((target.to_owned(), servers)), "{line}");
        }
    }

    #[test]
    fn what_is_on_this_host_needs_no_link() {
        for line in [
            "36 35 98:0 /mnt1 / rw,noatime master:1 - ext4 /dev/root rw,errors=continue",
            "25 1 0:20 / / rw - 9p hostroot ro,trans=virtio",
            "25 1 0:20 / /run rw - tmpfs tmpfs rw",
            "",
            "no mount at all",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
