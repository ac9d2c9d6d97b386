# shellcheck shell=bash
# What happens to a node: up, down, reboot, power cut, back to its first moment.

lab_up() {
	(($#)) || set -- node01 node02
	prepare_kernel
	prepare_image
	prepare_accel
	local spec name
	for spec in "$@"; do
		name=${spec%%:*}
		node_number "$name" >/dev/null
		if node_pid "$name" >/dev/null; then
			[[ $spec == "$name" || $spec == "$(<"$RUN/$name/spec")" ]] ||
				die "$name is up as $(<"$RUN/$name/spec"): take it down first"
			say "$name: already up"
			continue
		fi
		mkdir -p "$RUN/$name"
		printf '%s\n' "$spec" >"$RUN/$name/spec"
		write_options "$name" "${spec#"$name"}"
		allocate_port "$RUN/$name"
		machine_arguments "$name" >"$RUN/$name/machine"
	done
	write_ssh_config
	start_switch
	in_parallel bring_up "${@%%:*}"
}

# in_parallel FUNCTION NAME... : all of them, and failure when any failed
in_parallel() {
	local function=$1 name failed=0
	local -a jobs=()
	shift
	trap 'kill "${jobs[@]}" 2>/dev/null || true; exit 130' INT TERM
	for name in "$@"; do
		("$function" "$name") &
		jobs+=($!)
	done
	for name in "${jobs[@]}"; do
		wait "$name" || failed=1
	done
	return "$failed"
}

booted_path() {
	local qemu
	qemu=$(qemu-system-x86_64 --version | head -n1)
	printf '%s/booted-%s-%s\n' "$CACHE" "$1" "$(hash_of -- "$(<"$RUN/$1/machine")" "$IMAGE" "$qemu")"
}

bring_up() {
	local name=$1 dir=$RUN/$1 booted
	! node_pid "$name" >/dev/null || return 0
	booted=$(booted_path "$name")
	: >"$dir/console.log"
	if [[ -d $booted && -z ${SELVEDGE_LAB_COLD:-} ]]; then
		touch "$booted"
		cp --reflink=auto --sparse=always "$booted/root.qcow2" "$dir/root.qcow2"
		start_qemu "$name" -loadvm booted
		set_clock "$name"
	else
		say "$name: booting"
		fresh_overlay "$dir"
		start_qemu "$name"
		wait_for_ssh "$name"
		keep_booted "$name" "$booted"
	fi
}

# A restored guest believes that it is still the day of its snapshot. Its RTC follows the host.
set_clock() {
	local name=$1 started=$SECONDS
	while ! SELVEDGE_LAB_TIMEOUT=20 node_ssh "$name" hwclock --hctosys --utc </dev/null >/dev/null 2>&1; do
		node_pid "$name" >/dev/null || die "$name: QEMU ended: $(cat "$RUN/$name/qemu.log")"
		((SECONDS - started < 120)) || die "$name: no SSH 120 s after its snapshot was restored"
		sleep 0.3
	done
	say "$name: as after its first boot"
}

keep_booted() (
	local name=$1 booted=$2
	SELVEDGE_LAB_TIMEOUT=120 node_ssh "$name" "systemctl is-system-running --wait; sync" </dev/null >"$RUN/$name/state" || true
	say "$name: $(<"$RUN/$name/state")"
	monitor "$name" stop >/dev/null
	trap 'monitor "$name" cont >/dev/null' EXIT
	monitor "$name" hmp "savevm booted"
	exec 9>"$CACHE/.booted-$name.lock"
	flock 9
	[[ ! -d $booted ]] || exit 0
	rm -rf -- "$CACHE/.booted-$name.building"
	mkdir "$CACHE/.booted-$name.building"
	cp --reflink=auto --sparse=always "$RUN/$name/root.qcow2" "$CACHE/.booted-$name.building/"
	mv -T "$CACHE/.booted-$name.building" "$booted"
	# A snapshot is large, and only the newest of a node is of use to most.
	find "$CACHE" -maxdepth 1 -name "booted-$name-*" -mmin +1440 -exec rm -rf {} +
)

lab_reset() {
	(($#)) || die "usage: lab reset NAME..."
	in_parallel reset_node "$@"
}

reset_node() {
	local name=$1
	node_dir "$name" >/dev/null
	# In a new process: within one, QEMU's cycle counter never goes back, and the guest
	# would see as many seconds pass at once as it had run since.
	! node_pid "$name" >/dev/null || lab_crash "$name"
	start_qemu "$name" -loadvm booted
	set_clock "$name"
}

lab_start() {
	(($#)) || die "usage: lab start NAME..."
	in_parallel start_node "$@"
}

start_node() {
	local name=$1
	node_dir "$name" >/dev/null
	! node_pid "$name" >/dev/null || die "$name is running"
	start_qemu "$name"
	wait_for_ssh "$name"
}

lab_reboot() {
	(($#)) || die "usage: lab reboot NAME..."
	in_parallel reboot_node "$@"
}

reboot_node() {
	local name=$1 before
	node_dir "$name" >/dev/null
	before=$(node_ssh "$name" cat /proc/sys/kernel/random/boot_id </dev/null)
	SELVEDGE_LAB_TIMEOUT=20 node_ssh "$name" systemctl reboot </dev/null || true
	wait_for_ssh "$name" "$before"
}

# A power cut: what was not synced is gone.
lab_crash() {
	local name pid
	(($#)) || die "usage: lab crash NAME..."
	for name in "$@"; do
		node_dir "$name" >/dev/null
		pid=$(node_pid "$name") || die "$name is not running"
		kill -9 "$pid"
		# Its command line goes first, its lock on the disk with its last thread.
		while compgen -G "/proc/$pid/task/*" >/dev/null &&
			grep -qv '^State:[[:space:]]*Z' <(grep -hs ^State: /proc/"$pid"/task/*/status); do
			sleep 0.1
		done
	done
}

lab_down() {
	local dir name
	if (($# == 0)); then
		for dir in "$RUN"/*/; do
			[[ ! -s $dir/port ]] || set -- "$@" "$(basename "$dir")"
		done
	fi
	for name in "$@"; do
		! node_pid "$name" >/dev/null || lab_crash "$name"
		rm -rf -- "${RUN:?}/$name"
	done
	if ! compgen -G "$RUN/*/port" >/dev/null; then
		stop_switch
		rm -f "$RUN/wiring"
	fi
}

lab_status() {
	local dir name state
	for dir in "$RUN"/*/; do
		[[ -s $dir/port ]] || continue
		name=$(basename "$dir")
		state=stopped
		! node_pid "$name" >/dev/null || state=running
		! grep -qE 'Kernel panic|Oops:|BUG:' "$dir/console.log" || state+=,oops
		printf '%s %s port=%s memory=%s simhca=%s\n' "$name" "$state" "$(<"$dir/port")" \
			"$(<"$dir/memory")" "$(<"$dir/simhca")"
	done
}

lab_clean() {
	lab_down
	rm -rf -- "$RUN"
	if [[ ${1:-} == --cache ]]; then
		! compgen -G "$CACHE/run/*/*/port" >/dev/null || die "another lab is using $CACHE"
		rm -rf -- "${CACHE:?}"
	fi
}
