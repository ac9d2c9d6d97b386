# shellcheck shell=bash
# The kernel: Debian's stock package unpacked, its modules pruned, the simulated HCA
# added, and one small initramfs that can start every kind of lab guest.

# Folders of drivers that no virtual machine has. The SCSI core stays: rdma-core loads ib_iser.
PRUNED_MODULES=(
	drivers/gpu drivers/media drivers/staging drivers/net/wireless drivers/net/ethernet
	drivers/iio drivers/hwmon drivers/usb drivers/mtd drivers/ata drivers/bluetooth drivers/isdn
	drivers/firewire drivers/pcmcia drivers/input drivers/video drivers/comedi drivers/platform
	sound net/bluetooth net/mac80211 net/wireless net/nfc net/can fs/btrfs fs/ocfs2 fs/gfs2
	fs/reiserfs fs/jfs fs/ubifs fs/f2fs
)
INITRAMFS_MODULES=(
	virtio_pci virtio_blk virtio_net virtio_console virtio_rng ext4 crc32c_generic crc32c_intel
	9p 9pnet_virtio overlay
)

# Sets RELEASE KERNEL MODULES INITRAMFS, building what is missing.
prepare_kernel() {
	local versions simhca
	versions=$(kernel_versions)
	RELEASE=${versions%% *}
	# DIRECTORY with vmlinux and lib/modules/RELEASE as the package has them
	KERNEL=$(artifact kernel "$(hash_of -- "$versions" "${PRUNED_MODULES[@]}")" build_kernel "$RELEASE")
	simhca=$(simhca_artifact "$versions")
	# DIRECTORY with lib/modules/RELEASE: the pruned tree plus simhca in extra/
	MODULES=$(artifact modules "$(hash_of -- "$KERNEL" "$simhca")" build_modules "$simhca")
	# DIRECTORY with initramfs.cpio.zst
	INITRAMFS=$(artifact initramfs "$(hash_of "$LAB_DIR/guest/initramfs.sh" -- "$KERNEL" \
		"${INITRAMFS_MODULES[@]}")" build_initramfs)
}

# "RELEASE VERSION", remembered until apt's lists change: apt takes a second to say it.
kernel_versions() {
	local memo=$CACHE/.kernel-${SELVEDGE_LAB_KERNEL:-newest}
	if [[ ! -s $memo || /var/lib/apt/lists -nt $memo ]]; then
		local release=${SELVEDGE_LAB_KERNEL:-} version
		[[ -n $release ]] ||
			release=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: linux-image-//p' | head -n1)
		[[ -n $release ]] || die "apt knows no linux-image-amd64: run apt-get update"
		version=$(apt-cache show --no-all-versions "linux-image-$release" | sed -n 's/^Version: //p' | head -n1)
		[[ -n $version ]] || die "apt knows no linux-image-$release: run apt-get update"
		mkdir -p "$CACHE"
		printf '%s %s\n' "$release" "$version" >"$memo.$$"
		mv "$memo.$$" "$memo"
	fi
	cat "$memo"
}

build_kernel() {
	local release=$1 out=$2
	(
		cd "$out" || exit
		# As root apt would hand the download to a user who cannot write here.
		apt-get -qq -o APT::Sandbox::User=root download "linux-image-$release"
		dpkg -x linux-image-*.deb unpacked
	)
	extract_vmlinux "$out/unpacked/boot/vmlinuz-$release" >"$out/vmlinux"
	[[ $(head -c 4 "$out/vmlinux") == $'\x7fELF' ]] || die "no kernel came out of linux-image-$release"
	mv "$out/unpacked/lib" "$out/lib"
	rm -rf "$out/unpacked" "$out"/*.deb
	local folder
	for folder in "${PRUNED_MODULES[@]}"; do
		rm -rf "$out/lib/modules/$release/kernel/$folder"
	done
	depmod -b "$out" "$release"
}

# Without KVM a guest takes three seconds to unpack its own kernel. QEMU starts an
# unpacked one directly (the PVH entry point, which Debian builds in).
extract_vmlinux() {
	local offset
	offset=$(LC_ALL=C grep -abom1 -P '\xFD7zXZ\x00' "$1" | head -n1 | cut -d: -f1)
	[[ -n $offset ]] || die "$1 is not compressed with xz"
	# What follows the payload is not xz, which xz reports after writing everything.
	tail -c "+$((offset + 1))" "$1" | xz -dc 2>/dev/null || true
}

# Prints a DIRECTORY with simhca.ko, or nothing where the module is not in the tree.
simhca_artifact() {
	local source=$LAB_DIR/simhca
	[[ -f $source/Makefile ]] || return 0
	local -a inputs
	mapfile -t inputs < <(find "$source" -maxdepth 1 ! -name '*.mod.c' \
		\( -name '*.[ch]' -o -name Makefile -o -name Kbuild \))
	artifact simhca "$(hash_of "${inputs[@]}" -- "$1")" build_simhca "$source"
}

build_simhca() {
	local source=$1 out=$2
	local headers=/usr/src/linux-headers-$RELEASE
	[[ -d $headers ]] || die "no $headers: run lab deps"
	mkdir "$out/src"
	cp "$source"/*.[ch] "$source/Makefile" "$out/src/"
	[[ ! -f $source/Kbuild ]] || cp "$source/Kbuild" "$out/src/"
	rm -f "$out"/src/*.mod.c
	make -s -C "$headers" M="$out/src" modules
	cp "$out"/src/*.ko "$out/"
	rm -rf "$out/src"
}

build_modules() {
	local simhca=$1 out=$2
	# Hard links cost nothing; depmod replaces its indexes by renaming, never in place.
	cp -al "$KERNEL/lib" "$out/lib"
	rm -f "$out/lib/modules/$RELEASE"/modules.{dep,alias,symbols,softdep,devname}*
	if [[ -n $simhca ]]; then
		mkdir "$out/lib/modules/$RELEASE/extra"
		cp "$simhca"/*.ko "$out/lib/modules/$RELEASE/extra/"
	fi
	depmod -b "$out" "$RELEASE"
}

build_initramfs() {
	local out=$1 root=$1/root module file
	mkdir -p "$root"/{bin,dev,proc,sys,run,newroot,lower,rw}
	cp /bin/busybox "$root/bin/busybox"
	install -m 755 "$LAB_DIR/guest/initramfs.sh" "$root/init"
	for module in "${INITRAMFS_MODULES[@]}"; do
		modprobe -d "$KERNEL" -S "$RELEASE" --show-depends "$module"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r file; do
		install -D "$file" "$root/${file#"$KERNEL"/}"
	done
	cp "$KERNEL/lib/modules/$RELEASE"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$RELEASE/"
	depmod -b "$root" "$RELEASE"
	(cd "$root" && find . -print0 | cpio --quiet -0 -o -H newc -R 0:0) >"$out/initramfs.cpio"
	zstd -q --rm -3 "$out/initramfs.cpio"
	rm -rf "$root"
}

# Sets ACCEL, the accelerator as QEMU arguments. /dev/kvm can exist and be useless, so
# KVM is used only on request and only after a guest has been seen to run.
prepare_accel() {
	ACCEL=(-accel "tcg,thread=multi,tb-size=128" -cpu max)
	[[ ${SELVEDGE_LAB_ACCEL:-tcg} == kvm ]] || return 0
	if kvm_boots; then
		ACCEL=(-accel kvm -cpu host)
	else
		say "KVM does not boot a guest here, using TCG"
	fi
}

kvm_boots() {
	[[ -w /dev/kvm ]] || return 1
	timeout 20 qemu-system-x86_64 -accel kvm -cpu host -machine q35 -m 256 -nodefaults -no-reboot \
		-display none -serial stdio -kernel "$KERNEL/vmlinux" -initrd "$INITRAMFS/initramfs.cpio.zst" \
		-append "console=ttyS0 panic=-1 lab.mode=probe" </dev/null 2>&1 | grep -q lab-probe-ok
}
