# shellcheck shell=bash
# The fabric's cables: datagram sockets between the nodes' second NICs.
# direct: node01 with node02, node03 with node04, back to back.
# switch: each node to port N of the switch process, which outlives every node.

SWITCH_PROGRAM=$LAB_DIR/simhca/ibswitch.py

# Chosen when the first node comes up, kept until the lab is cleaned.
wiring() {
	if [[ ! -s $RUN/wiring ]]; then
		mkdir -p "$RUN"
		printf '%s\n' "${SELVEDGE_LAB_WIRING:-direct}" >"$RUN/wiring"
	fi
	cat "$RUN/wiring"
}

wire_arguments() {
	local number=$1 remote mode
	mode=$(wiring)
	case $mode in
	direct) remote=$RUN/w$((number % 2 ? number + 1 : number - 1)) ;;
	switch) remote=$RUN/s$number ;;
	*) die "no wiring called $mode (direct, switch)" ;;
	esac
	((${#remote} < 100)) || die "$remote is too long for a socket: set SELVEDGE_LAB_CACHE"
	printf '%s\n' -netdev "dgram,id=wire,local.type=unix,local.path=$RUN/w$number,remote.type=unix,remote.path=$remote"
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
