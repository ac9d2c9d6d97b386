# shellcheck shell=bash
# The node's disk: a Debian 12 by debootstrap, packed into an ext4 file. The kernel's
# modules are a second, read-only disk, so that a new simhca does not rebuild the first.

IMAGE_PACKAGES=(
	systemd systemd-sysv libpam-systemd udev dbus openssh-server sudo kmod procps iproute2 iputils-ping
	ethtool strace tcpdump nftables git ca-certificates less
	netplan.io network-manager polkitd
	rdma-core ibverbs-providers opensm infiniband-diags perftest rdmacm-utils
)
# Costs of a boot without KVM, and nothing here needs them.
IMAGE_MASKED=(
	e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer
	dpkg-db-backup.timer fstrim.timer systemd-pstore.service getty@tty1.service
	sys-kernel-debug.mount sys-kernel-tracing.mount dev-mqueue.mount dev-hugepages.mount
	ModemManager.service
)

prepare_image() {
	local mirror suite=bookworm
	mirror=$(apt_mirror "$suite")
	# DIRECTORY with root.img, id_ed25519 and known_hosts
	IMAGE=$(artifact image "$(hash_of "$LAB_DIR/image.sh" "$LAB_DIR/guest/root" -- "$suite")" \
		build_image "$mirror" "$suite")
	# DIRECTORY with modules.img
	MODULES_DISK=$(artifact modules-disk "$(hash_of -- "$MODULES")" build_modules_disk)
}

# The mirror that this machine's apt uses for SUITE's main archive.
apt_mirror() {
	local memo=$CACHE/.mirror-$1
	if [[ ! -s $memo || /var/lib/apt/lists -nt $memo ]]; then
		apt-get indextargets --format '$(CODENAME) $(CREATED_BY) $(REPO_URI)' |
			sed -n "s/^$1 Packages //p" | head -n1 >"$memo"
	fi
	[[ -s $memo ]] || die "apt has no source for Debian's $1"
	cat "$memo"
}

build_image() {
	local mirror=$1 suite=$2 out=$3 root=$3/root
	((EUID == 0)) || die "the image needs root once (debootstrap): run lab build as root"
	local include
	include=$(IFS=,; printf %s "${IMAGE_PACKAGES[*]}")
	mkdir -p "$CACHE/debs"
	debootstrap --variant=minbase --cache-dir="$CACHE/debs" --include="$include" \
		"$suite" "$root" "$mirror" >"$out/debootstrap.log" 2>&1 ||
		{ tail -n 20 "$out/debootstrap.log"; die "debootstrap failed"; }
	say "image: packages installed"
	configure_image "$root"
	image_keys "$root" "$out"
	slim_image "$root"
	mke2fs -q -t ext4 -L root -m 0 -E lazy_itable_init=0,root_owner=0:0 -d "$root" "$out/root.img" 6G
	rm -rf --one-file-system "$root"
}

configure_image() {
	local root=$1 unit
	(umask 022 && cp -r "$LAB_DIR/guest/root/." "$root/")
	chown -R 0:0 "$root/etc/systemd" "$root/etc/ssh" "$root/etc/sudoers.d" "$root/etc/sysctl.d"
	chmod 440 "$root/etc/sudoers.d/ops"
	printf '/dev/vda / ext4 defaults 0 0\n' >"$root/etc/fstab"
	# The node's own name and id come with its first boot, see guest/initramfs.sh.
	rm -f "$root/etc/hostname"
	: >"$root/etc/machine-id"
	: >"$root/etc/default/locale"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
	# An HCA keeps the kernel's name: specs in the tests say mlx5_0.
	ln -s /dev/null "$root/etc/udev/rules.d/60-rdma-persistent-naming.rules"
	for unit in "${IMAGE_MASKED[@]}"; do
		ln -sf /dev/null "$root/etc/systemd/system/$unit"
	done
	# Installed for the tests that switch to it; networkd runs the node until then.
	chroot "$root" systemctl mask -q NetworkManager.service NetworkManager-wait-online.service
	chroot "$root" systemctl enable -q systemd-networkd.service ssh.service serial-getty@ttyS0.service
	chroot "$root" useradd -m -s /bin/bash ops
}

# One key pair for whoever runs the lab, one host key for all nodes: both are useless
# elsewhere, and ssh can check the host as it does in production.
image_keys() {
	local root=$1 out=$2 home
	rm -f "$root"/etc/ssh/ssh_host_*
	ssh-keygen -q -t ed25519 -N '' -C node -f "$root/etc/ssh/ssh_host_ed25519_key"
	ssh-keygen -q -t ed25519 -N '' -C lab -f "$out/id_ed25519"
	for home in root home/ops; do
		install -d -m 700 "$root/$home/.ssh"
		install -m 600 "$out/id_ed25519.pub" "$root/$home/.ssh/authorized_keys"
	done
	chroot "$root" chown -R ops:ops /home/ops/.ssh
	printf 'selvedge-lab %s\n' "$(<"$root/etc/ssh/ssh_host_ed25519_key.pub")" >"$out/known_hosts"
}

slim_image() {
	local root=$1
	rm -rf "$root"/usr/share/{doc,man,locale,info,lintian} "$root"/var/lib/apt/lists/* \
		"$root"/var/cache/apt/* "$root"/var/log/*.log
}

build_modules_disk() {
	local out=$1
	mke2fs -q -t ext4 -L modules -m 0 -O ^has_journal -E root_owner=0:0 \
		-d "$MODULES/lib/modules/$RELEASE" "$out/modules.img" 400M
}
