# shellcheck shell=bash
# Nodes: a QEMU process, an overlay, a port, all in $RUN/NAME. A node that has booted
# once is kept in the cache as a snapshot with its memory, so the next one starts in
# seconds, and a used node returns to that moment by the same way.

NODE_MEMORY_MIB=512
BOOT_TIMEOUT_S=${SELVEDGE_LAB_BOOT_TIMEOUT:-300}

node_number() {
	[[ $1 =~ ^[a-z][a-z-]*0*([1-9][0-9]?)$ ]] || die "$1: a node's name is letters and a number from 1 to 99"
	printf '%d\n' "${BASH_REMATCH[1]}"
}

# Directory of a node that must exist
node_dir() {
	[[ -n ${1:-} && -d $RUN/$1 && -s $RUN/$1/port ]] || die "no node called '${1:-}' (lab up NAME)"
	printf '%s\n' "$RUN/$1"
}

node_pid() {
	local pid
	pid=$(cat "$RUN/$1/pid" 2>/dev/null) || return 1
	# The pid file outlives a power cut; a reused number is no QEMU of ours.
	grep -qzF -- "$RUN/$1/" "/proc/$pid/cmdline" 2>/dev/null || return 1
	printf '%s\n' "$pid"
}

monitor() {
	local dir name=$1
	dir=$(node_dir "$name")
	shift
	"$LAB_DIR/qmp.py" "$dir/qmp" "$@"
}

# A free port of the loopback address, remembered so that ssh_config stays true.
allocate_port() (
	local dir=$1 port
	[[ ! -s $dir/port ]] || exit 0
	exec 9>"$CACHE/.ports.lock"
	flock 9
	for ((port = 22100; port < 22900; port++)); do
		! grep -qsx "$port" "$CACHE"/run/*/*/port || continue
		! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue
		printf '%s\n' "$port" >"$dir/port"
		exit 0
	done
	die "no free port"
)

# node01:memory=768,simhca.enhanced=1 : options after the colon. With udev=mlx5 the node
# does at boot what Debian does for a Mellanox card: it loads ib_ipoib and ib_umad itself.
write_options() {
	local dir=$RUN/$1 options=${2#:} option memory=$NODE_MEMORY_MIB simhca udev='' number
	number=$(node_number "$1")
	simhca=$(printf 'wire=simwire,guid=0x506b4b0300fa00%02x' "$number")
	for option in ${options//,/ }; do
		case $option in
		memory=*) memory=${option#memory=} ;;
		udev=mlx5) udev=mlx5 ;;
		simhca.*=*) simhca+=,${option#simhca.} ;;
		*) die "no node option $option (memory=MIB, udev=mlx5, simhca.PARAMETER=VALUE)" ;;
		esac
	done
	printf '%s\n' "$memory" >"$dir/memory"
	printf '%s\n' "$simhca" >"$dir/simhca"
	printf '%s\n' "$udev" >"$dir/udev"
}

# What of a node's machine is part of its snapshot, one argument a line
machine_arguments() {
	local name=$1 number machine_id append memory
	number=$(node_number "$name")
	machine_id=$(printf 'selvedge-lab %s' "$name" | md5sum | cut -c1-32)
	memory=$(<"$RUN/$name/memory")
	append="console=ttyS0 quiet net.ifnames=0 mitigations=off audit=0 oops=panic panic=5"
	append+=" lab.mode=node lab.node=$name lab.machine-id=$machine_id lab.simhca=$(<"$RUN/$name/simhca")"
	append+=" lab.udev=$(<"$RUN/$name/udev")"
	printf '%s\n' "${ACCEL[@]}" -machine q35 -smp 1 -m "$memory" -nodefaults -display none \
		-kernel "$KERNEL/vmlinux" -initrd "$INITRAMFS/initramfs.cpio.zst" -append "$append" \
		-drive "if=none,id=modules,format=raw,readonly=on,file=$MODULES_DISK/modules.img" \
		-device virtio-blk-pci,drive=root -device virtio-blk-pci,drive=modules \
		-device virtio-rng-pci -device pci-testdev \
		-device "virtio-net-pci,netdev=mgmt,mac=$(printf 52:54:00:a0:00:%02x "$number")" \
		-device "virtio-net-pci,netdev=wire,rx_queue_size=1024,mac=$(printf 52:54:00:fa:00:%02x "$number")"
}

# start_qemu NAME [-loadvm booted]
start_qemu() {
	local name=$1 dir=$RUN/$1
	local -a machine wire
	shift
	mapfile -t machine <"$dir/machine"
	mapfile -t wire <<<"$(wire_arguments "$(node_number "$name")")"
	rm -f "$RUN/node-$(node_number "$name").sock" "$dir/pid"
	# Detached from the caller's session and descriptors: a node outlives the command.
	setsid qemu-system-x86_64 "${machine[@]}" "${wire[@]}" "$@" -name "selvedge-lab-$name" -pidfile "$dir/pid" \
		-drive "if=none,id=root,format=qcow2,discard=unmap,file=$dir/root.qcow2" \
		-netdev "user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:$(<"$dir/port")-:22" \
		-qmp "unix:$dir/qmp,server=on,wait=off" \
		-chardev "socket,id=console,path=$dir/console,server=on,wait=off,logfile=$dir/console.log,logappend=on" \
		-serial chardev:console </dev/null >"$dir/qemu.log" 2>&1 9>&- &
	local waited
	for ((waited = 0; waited < 100; waited++)); do
		[[ ! -S $dir/qmp ]] || ! node_pid "$name" >/dev/null || return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	cat "$dir/qemu.log" >&2
	die "$name: QEMU did not start"
}

fresh_overlay() {
	local dir=$1
	rm -f "$dir/root.qcow2"
	qemu-img create -q -f qcow2 -F raw -b "$IMAGE/root.img" "$dir/root.qcow2"
}

node_ssh() {
	local name=$1
	shift
	timeout -k 5 "${SELVEDGE_LAB_TIMEOUT:-600}" ssh -F "$RUN/ssh_config" "$name" "$@"
}

wait_for_ssh() {
	local name=$1 other_than=${2:-} started=$SECONDS boot_id=''
	while ((SECONDS - started < BOOT_TIMEOUT_S)); do
		node_pid "$name" >/dev/null || break
		boot_id=$(SELVEDGE_LAB_TIMEOUT=20 node_ssh "$name" cat /proc/sys/kernel/random/boot_id 2>/dev/null </dev/null) || boot_id=''
		if [[ -n $boot_id && $boot_id != "$other_than" ]]; then
			say "$name: answers after $((SECONDS - started)) s"
			return
		fi
		sleep 0.5
	done
	tail -n 40 "$RUN/$name/console.log" >&2 || true
	die "$name: no SSH after $((SECONDS - started)) s; the console's tail is above"
}

write_ssh_config() (
	exec 9>"$RUN/.ssh.lock"
	flock 9
	local dir
	for dir in "$RUN"/*/; do
		[[ -s $dir/port ]] || continue
		printf 'Host %s\n\tPort %s\n' "$(basename "$dir")" "$(<"$dir/port")"
	done >"$RUN/ssh_config.new"
	cat >>"$RUN/ssh_config.new" <<-CONFIG
		Host *
			HostName 127.0.0.1
			User root
			HostKeyAlias selvedge-lab
			UserKnownHostsFile $IMAGE/known_hosts
			GlobalKnownHostsFile /dev/null
			StrictHostKeyChecking yes
			IdentityFile $IMAGE/id_ed25519
			IdentitiesOnly yes
			IdentityAgent none
			BatchMode yes
			ConnectTimeout 10
			ServerAliveInterval 5
			ServerAliveCountMax 6
			LogLevel ERROR
	CONFIG
	mv "$RUN/ssh_config.new" "$RUN/ssh_config"
)
