# What the safety tests ask of a node; sourced by the root shell there.
export LC_ALL=C

# All that an apply can change, in words that do not depend on when it is asked.
snapshot() {
	find /etc -xdev -path /etc/selvedge -prune -o \( -type f -o -type l \) -printf '%p %y %m %l\n' | sort
	find /etc/selvedge /etc/netplan /etc/systemd /etc/udev /etc/modules-load.d /etc/modprobe.d -type f -print0 \
		2>/dev/null | sort -z | xargs -0r sha256sum
	ip -d -j address show | python3 -c '
import json, sys
for link in json.load(sys.stdin):
    data = link.get("linkinfo", {}).get("info_data", {})
    print(link["ifname"], link["mtu"], "UP" in link["flags"], data.get("mode"), data.get("pkey"))
    # A link-local address is made when the fabric lets the link have carrier: how it is made is what can be changed.
    for one in sorted((one["local"], one["prefixlen"]) for one in link["addr_info"] if one["scope"] != "link"):
        print(" ", *one)'
	sysctl --all --pattern '^net\.ipv6\.conf\..*\.addr_gen_mode$'
	lsmod | cut -d' ' -f1 | grep -xE 'ib_ipoib|ib_umad|ib_uverbs|rdma_ucm' | sort
	systemctl show --property=Id,LoadState,ActiveState,NeedDaemonReload selvedge-recover.service \
		selvedge-opensm-compute.service opensm.service
	systemctl list-units --failed --plain --no-legend
	systemctl list-jobs --plain --no-legend
	networkctl list --no-legend | awk '{print $2, $NF}'
	# No half-written file, no journal left open, no stray contents.
	find /etc /var/lib/selvedge \( -name '.*.selvedge~' -o -name '.tmp*' -o -name '*.open' \) 2>/dev/null || true
}

# ib0 as somebody made it by hand.
by_hand() {
	modprobe ib_ipoib
	udevadm settle
	ip link set ib0 up
	ip address add 192.168.77.1/24 dev ib0
}

# An apply so slow that there is a moment for everything: each record takes its time.
slowly() {
	strace -f -qq -o /dev/null -e trace=fdatasync -e "inject=fdatasync:delay_enter=${DELAY_US:-500000}" "$@"
}

announced() {
	cat /var/lib/selvedge/journal/*.open 2>/dev/null | grep -c '"record":"doing"' || true
}

# until_announced N: waits until so many changes were announced
until_announced() {
	local waited
	for ((waited = 0; waited < 600; waited++)); do
		(($(announced) < $1)) || return 0
		sleep 0.1
	done
	return 1
}

# until_ended: waits until no selvedge runs and no journal is open
until_ended() {
	local waited
	for ((waited = 0; waited < 900; waited++)); do
		pgrep -x selvedge >/dev/null || ls /var/lib/selvedge/journal/*.open >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	return 1
}
