#!/bin/bash
# PID 1 of the light VM after the initramfs: a root file system that looks like the
# host's, the lab's kernel below it, one job to run. Nothing of the host can change.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs -o mode=755 dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
mkdir -p /run/lock /run/netns
ln -sf /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# Ports have names only in sysfs without udev.
port() {
	local name
	for name in /sys/class/virtio-ports/*/name; do
		[[ $(<"$name") == "$1" ]] || continue
		name=${name%/name}
		printf '/dev/%s\n' "${name##*/}"
		return
	done
}

job=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^lab.job=//p')
echo 1 >/proc/sys/kernel/panic_on_oops
echo lab >/proc/sys/kernel/hostname
ip link set lo up

"$job" </dev/null >"$(port stdout)" 2>"$(port stderr)"
echo $? >"$(port status)"
# With QEMU's -no-reboot this ends the VM at once, a power-off takes longer.
echo b >/proc/sysrq-trigger
sleep 60
