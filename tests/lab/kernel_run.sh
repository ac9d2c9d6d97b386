# shellcheck shell=bash
# The light VM: runs one program of the host as root on the lab's kernel.

lab_kernel_run() (
	local timeout=${SELVEDGE_LAB_TIMEOUT:-600} out='' memory=${SELVEDGE_LAB_MEMORY:-512}
	while [[ ${1:-} == --* ]]; do
		case $1 in
		--timeout) timeout=$2 ;;
		--out) out=$(realpath -- "$2") ;;
		--memory) memory=$2 ;;
		*) die "kernel-run has no option $1 (--timeout SECONDS, --out DIRECTORY, --memory MIB)" ;;
		esac
		shift 2
	done
	(($#)) || die "kernel-run needs a program"
	local work
	mkdir -p "$RUN"
	work=$(mktemp -d "$RUN/job.XXXXXX")
	trap 'rm -rf -- "$work"' EXIT
	write_job "$work/job" "$@"
	boot_job "$work" "$timeout" "$memory" "$out"
)

# The program sees the caller's folder and the part of the environment that tests use.
write_job() {
	local job=$1 program name
	shift
	program=$(type -P -- "$1") || die "kernel-run: no program $1"
	program=$(realpath -- "$program")
	shift
	{
		printf '#!/bin/bash\n'
		for name in $(compgen -e); do
			[[ $name != *TOKEN* && $name != *SECRET* ]] || continue
			case $name in
			PATH | HOME | LANG | CARGO | CARGO_* | RUST* | INSTA_* | PROPTEST_* | SELVEDGE_* | NO_COLOR)
				printf 'export %s=%q\n' "$name" "${!name}"
				;;
			esac
		done
		printf 'export SELVEDGE_LAB_GUEST=1\n'
		printf 'cd -- %q || exit 126\nexec' "$PWD"
		printf ' %q' "$program" "$@"
		printf '\n'
	} >"$job"
	chmod 700 "$job"
}

boot_job() {
	local work=$1 timeout=$2 memory=$3 out=$4
	prepare_kernel
	prepare_accel
	local share=security_model=none,multidevs=remap append
	append="console=ttyS0 panic=-1 oops=panic quiet net.ifnames=0 mitigations=off audit=0"
	append+=" lab.mode=host lab.init=$LAB_DIR/guest/kernel_run.sh lab.job=$work/job"
	local -a extra=()
	if [[ -n $out ]]; then
		append+=" lab.out=$out"
		extra+=(-virtfs "local,path=$out,mount_tag=out,$share")
	fi
	mkfifo "$work/stdout" "$work/stderr"
	cat "$work/stdout" &
	cat "$work/stderr" >&2 &
	local result=0
	timeout --foreground -k 5 "$timeout" qemu-system-x86_64 "${ACCEL[@]}" -machine q35 -smp 2 -m "$memory" \
		-nodefaults -no-reboot -display none -serial "file:$work/console" \
		-kernel "$KERNEL/vmlinux" -initrd "$INITRAMFS/initramfs.cpio.zst" -append "$append" \
		-virtfs "local,path=/,mount_tag=hostroot,readonly=on,$share" \
		-virtfs "local,path=$MODULES/lib/modules/$RELEASE,mount_tag=modules,readonly=on,$share" \
		-device virtio-rng-pci -device pci-testdev \
		-netdev user,id=net,restrict=on -device virtio-net-pci,netdev=net,rx_queue_size=1024 \
		-device virtio-serial-pci \
		-chardev "file,id=stdout,path=$work/stdout" -device virtserialport,chardev=stdout,name=stdout \
		-chardev "file,id=stderr,path=$work/stderr" -device virtserialport,chardev=stderr,name=stderr \
		-chardev "file,id=status,path=$work/status" -device virtserialport,chardev=status,name=status \
		${extra[@]+"${extra[@]}"} </dev/null 2>"$work/qemu" || result=$?
	# If QEMU never opened its ends, the readers wait for nobody.
	[[ -f $work/console ]] || kill %1 %2 2>/dev/null || true
	wait
	job_status "$work" "$timeout" "$result"
}

# The program's exit code; 124 when time ran out, 125 when the VM itself failed.
job_status() {
	local work=$1 timeout=$2 result=$3
	if [[ -s $work/status ]]; then
		exit "$(<"$work/status")"
	fi
	cat "$work/qemu" >&2
	[[ ! -f $work/console ]] || tail -n 40 "$work/console" >&2
	if ((result == 124 || result == 137)); then
		say "kernel-run: no end after $timeout s; the console's tail is above"
		exit 124
	fi
	say "kernel-run: the VM ended without a result; the console's tail is above"
	exit 125
}
