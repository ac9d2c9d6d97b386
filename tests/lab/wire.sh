# shellcheck shell=bash
# The fabric's cables: datagram sockets between the nodes' second NICs.
# switch: each node to the port of its number on a switch process, which outlives every node.
# direct: node01 with node02, node03 with node04, back to back.

SWITCH_PORTS=16

# Chosen when the first node comes up, kept until the last one goes.
wiring() {
	if [[ ! -s $RUN/wiring ]]; then
		mkdir -p "$RUN"
		printf '%s\n' "${SELVEDGE_LAB_WIRING:-switch}" >"$RUN/wiring"
	fi
	cat "$RUN/wiring"
}

wire_arguments() {
	local number=$1 local=$RUN/node-$1.sock remote mode
	mode=$(wiring)
	case $mode in
	direct) remote=$RUN/node-$((number % 2 ? number + 1 : number - 1)).sock ;;
	switch) remote=$RUN/sw-$number.sock ;;
	*) die "no wiring called $mode (switch, direct)" ;;
	esac
	((${#local} < 105)) || die "$local is too long for a socket: set SELVEDGE_LAB_CACHE"
	printf '%s\n' -netdev "dgram,id=wire,local.type=unix,local.path=$local,remote.type=unix,remote.path=$remote"
}

switch_pid() {
	local pid
	pid=$(cat "$RUN/switch.pid" 2>/dev/null) || return 1
	grep -qzF -- "$RUN/switch.ctl" "/proc/$pid/cmdline" 2>/dev/null || return 1
	printf '%s\n' "$pid"
}

start_switch() {
	[[ $(wiring) == switch ]] || return 0
	! switch_pid >/dev/null || return 0
	[[ -f $LAB_DIR/simhca/ibswitch.py ]] || die "no simhca/ibswitch.py here: use SELVEDGE_LAB_WIRING=direct"
	rm -f "$RUN"/sw-*.sock "$RUN/switch.ctl"
	setsid python3 "$LAB_DIR/simhca/ibswitch.py" --dir "$RUN" --ports "$SWITCH_PORTS" --control "$RUN/switch.ctl" \
		</dev/null >"$RUN/switch.log" 2>&1 &
	printf '%s\n' $! >"$RUN/switch.pid"
	local waited
	for ((waited = 0; waited < 100; waited++)); do
		[[ ! -S $RUN/switch.ctl ]] || return 0
		sleep 0.1
	done
	cat "$RUN/switch.log" >&2
	die "the switch did not start"
}

stop_switch() {
	local pid
	! pid=$(switch_pid) || kill "$pid"
	rm -f "$RUN"/switch.* "$RUN"/sw-*.sock
}

# lab switch COMMAND... : one line to the switch's control socket, and what it answers
lab_switch() {
	switch_pid >/dev/null || die "no switch is running"
	printf '%s\n' "${*:-help}" | timeout 10 socat -t 2 - "UNIX-CONNECT:$RUN/switch.ctl"
}

lab_wire() {
	local action=${1:-} name=${2:-} up
	case $action in
	pull) up=false ;;
	plug) up=true ;;
	*) die "usage: lab wire pull|plug NAME" ;;
	esac
	monitor "$name" set_link "{\"name\": \"wire\", \"up\": $up}" >/dev/null
}

# lab capture NAME FILE | lab capture NAME --stop
lab_capture() {
	local name=$1 file=$2
	if [[ $file == --stop ]]; then
		monitor "$name" object-del '{"id": "capture"}' >/dev/null
		return
	fi
	file=$(realpath -m -- "$file")
	monitor "$name" object-add \
		"{\"qom-type\": \"filter-dump\", \"id\": \"capture\", \"netdev\": \"wire\", \"file\": \"$file\"}" >/dev/null
	say "$name: capturing its wire to $file until lab capture $name --stop"
}
