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

case $(parameter lab.mode) in
probe)
	echo lab-probe-ok
	echo b >/proc/sysrq-trigger
	;;
host) host ;;
*) fail "unknown lab.mode" ;;
esac
fail "did not hand over"
