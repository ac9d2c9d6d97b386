#!/bin/busybox sh
# shellcheck shell=dash
# PID 1 of every lab guest. The kernel command line says what comes next:
#   lab.mode=probe  say so and stop: proves that the accelerator runs a guest
#   lab.mode=host   the host's root, read-only under a RAM overlay, then lab.init=PATH
#   lab.mode=node   a node's own disk, then its systemd
/bin/busybox mkdir -p /bin /sbin
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -sf /bin/modprobe /sbin/modprobe

fail() {
	echo "lab: initramfs: $*" >/dev/console
	echo o >/proc/sysrq-trigger
	sleep 60
}

parameter() {
	tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p" | tail -n 1
}

load() {
	for module in "$@"; do
		modprobe "$module" || fail "modprobe $module"
	done
}

hand_over() {
	umount /proc /sys
	umount -l /dev
	exec switch_root /newroot "$@"
}

host() {
	load virtio_pci 9p 9pnet_virtio overlay virtio_console virtio_net virtio_rng
	share=trans=virtio,version=9p2000.L,msize=524288
	mount -t 9p -o "ro,cache=loose,$share" hostroot /lower || fail "no host root"
	mount -t tmpfs -o mode=755,size=75% tmpfs /rw
	mkdir /rw/upper /rw/work
	mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /newroot || fail "no overlay"
	modules=/newroot/usr/lib/modules/$(uname -r)
	mkdir -p "$modules"
	mount -t 9p -o "ro,cache=loose,$share" modules "$modules" || fail "no modules"
	if [ -n "$(parameter lab.out)" ]; then
		mkdir -p "/newroot$(parameter lab.out)"
		mount -t 9p -o "cache=none,$share" out "/newroot$(parameter lab.out)" || fail "no output folder"
	fi
	hand_over "$(parameter lab.init)"
}

# The lab's own devices by their addresses: 52:54:00:a0 carries SSH, 52:54:00:fa is the HCA's wire.
name_links() {
	for link in /sys/class/net/*; do
		old=${link##*/}
		case $(cat "$link/address") in
		52:54:00:a0:*) ip link set dev "$old" name mgmt0 ;;
		52:54:00:fa:*)
			ip link set dev "$old" name simwire
			echo 1 >/proc/sys/net/ipv6/conf/simwire/disable_ipv6
			;;
		esac
	done
}

# What a firmware would do. The rig's own settings stay in /run, out of the files under test.
plug_hca() {
	mkdir -p /run/modprobe.d /run/modules-load.d /run/NetworkManager/conf.d
	printf '[keyfile]\nunmanaged-devices=interface-name:mgmt0;interface-name:simwire\n' \
		>/run/NetworkManager/conf.d/lab.conf
	[ -e "$1/extra/simhca.ko" ] || return 0
	echo "options simhca $(parameter lab.simhca | tr , ' ')" >/run/modprobe.d/simhca.conf
	echo simhca >/run/modules-load.d/simhca.conf
	[ "$(parameter lab.udev)" = mlx5 ] || return 0
	# rdma-core knows real drivers by name; so it takes the simulated HCA for one of them.
	mkdir -p /run/udev/rules.d
	echo 'ACTION!="remove", SUBSYSTEM=="infiniband", ENV{ID_RDMA_INFINIBAND}="1", ENV{ID_RDMA_ROCE}="1"' \
		>/run/udev/rules.d/74-lab-hca.rules
}

first_boot() {
	[ ! -e /newroot/etc/hostname ] || return 0
	name=$(parameter lab.node)
	echo "$name" >/newroot/etc/hostname
	echo "127.0.1.1 $name" >>/newroot/etc/hosts
	parameter lab.machine-id >/newroot/etc/machine-id
}

node() {
	load virtio_pci virtio_blk virtio_net virtio_rng ext4
	mount -t ext4 /dev/vda /newroot || fail "no root disk"
	modules=/newroot/usr/lib/modules/$(uname -r)
	mkdir -p "$modules"
	mount -t ext4 -o ro /dev/vdb "$modules" || fail "no modules disk"
	mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run
	first_boot
	name_links
	plug_hca "$modules"
	mount --move /run /newroot/run
	hand_over /sbin/init
}

case $(parameter lab.mode) in
probe)
	echo lab-probe-ok
	echo b >/proc/sysrq-trigger
	;;
host) host ;;
node) node ;;
*) fail "unknown lab.mode" ;;
esac
fail "did not hand over"
