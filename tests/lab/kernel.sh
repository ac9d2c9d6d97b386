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

kernel_release() {
	local release=${SELVEDGE_LAB_KERNEL:-}
	if [[ -z $release ]]; then
		release=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: linux-image-//p' | head -n1)
	fi
	[[ -n $release ]] || die "apt knows no linux-image-amd64: run apt-get update"
	printf '%s\n' "$release"
}

package_version() { apt-cache show --no-all-versions "$1" | sed -n 's/^Version: //p' | head -n1; }

# DIRECTORY with vmlinuz and lib/modules/RELEASE as the package has them
kernel_artifact() {
	local release version
	release=$(kernel_release)
	version=$(package_version "linux-image-$release")
	artifact kernel "$(hash_of -- "$release" "$version")" build_kernel "$release"
}

build_kernel() {
	local release=$1 out=$2
	(
		cd "$out" || exit
		# As root apt would hand the download to a user who cannot write here.
		apt-get -qq -o APT::Sandbox::User=root download "linux-image-$release"
		dpkg -x linux-image-*.deb unpacked
	)
	mv "$out/unpacked/boot/vmlinuz-$release" "$out/vmlinuz"
	mv "$out/unpacked/lib" "$out/lib"
	rm -rf "$out/unpacked" "$out"/*.deb
	local folder
	for folder in "${PRUNED_MODULES[@]}"; do
		rm -rf "$out/lib/modules/$release/kernel/$folder"
	done
	depmod -b "$out" "$release"
	printf '%s\n' "$release" >"$out/release"
}

# DIRECTORY with simhca.ko, or nothing where the module is not in the tree
simhca_artifact() {
	local release source=$LAB_DIR/simhca
	release=$(kernel_release)
	[[ -f $source/Makefile ]] || return 0
	local -a inputs
	mapfile -t inputs < <(find "$source" -maxdepth 1 \( -name '*.[ch]' ! -name '*.mod.c' \) -o -name Makefile -o -name Kbuild)
	artifact simhca "$(hash_of "${inputs[@]}" -- "$(package_version "linux-headers-$release")")" \
		build_simhca "$source" "$release"
}

build_simhca() {
	local source=$1 release=$2 out=$3
	local headers=/usr/src/linux-headers-$release
	[[ -d $headers ]] || die "no $headers: run lab deps"
	mkdir "$out/src"
	cp "$source"/*.[ch] "$source/Makefile" "$out/src/"
	[[ ! -f $source/Kbuild ]] || cp "$source/Kbuild" "$out/src/"
	rm -f "$out"/src/*.mod.c
	make -s -C "$headers" M="$out/src" modules
	cp "$out"/src/*.ko "$out/"
	rm -rf "$out/src"
}

# DIRECTORY with lib/modules/RELEASE: the pruned tree plus simhca in extra/
modules_artifact() {
	local kernel simhca
	kernel=$(kernel_artifact)
	simhca=$(simhca_artifact)
	artifact modules "$(hash_of -- "$kernel" "$simhca")" build_modules "$kernel" "$simhca"
}

build_modules() {
	local kernel=$1 simhca=$2 out=$3 release
	release=$(<"$kernel/release")
	# Hard links cost nothing; depmod replaces its indexes by renaming, never in place.
	cp -al "$kernel/lib" "$out/lib"
	rm -f "$out/lib/modules/$release"/modules.{dep,alias,symbols,softdep,devname}*
	if [[ -n $simhca ]]; then
		mkdir "$out/lib/modules/$release/extra"
		cp "$simhca"/*.ko "$out/lib/modules/$release/extra/"
	fi
	depmod -b "$out" "$release"
}

# DIRECTORY with initramfs.cpio.zst
initramfs_artifact() {
	local kernel
	kernel=$(kernel_artifact)
	artifact initramfs "$(hash_of "$LAB_DIR/guest/initramfs.sh" -- "$kernel" "${INITRAMFS_MODULES[@]}")" \
		build_initramfs "$kernel"
}

build_initramfs() {
	local kernel=$1 out=$2 release module file
	release=$(<"$kernel/release")
	local root=$out/root
	mkdir -p "$root"/{bin,dev,proc,sys,run,newroot,lower,rw}
	cp /bin/busybox "$root/bin/busybox"
	install -m 755 "$LAB_DIR/guest/initramfs.sh" "$root/init"
	for module in "${INITRAMFS_MODULES[@]}"; do
		modprobe -d "$kernel" -S "$release" --show-depends "$module"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r file; do
		install -D "$file" "$root/${file#"$kernel"/}"
	done
	cp "$kernel/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
	depmod -b "$root" "$release"
	(cd "$root" && find . -print0 | cpio --quiet -0 -o -H newc -R 0:0) >"$out/initramfs.cpio"
	zstd -q --rm -3 "$out/initramfs.cpio"
	rm -rf "$root"
}

# The accelerator as QEMU arguments. /dev/kvm can exist and be useless, so KVM is used
# only on request and only after a guest has been seen to run.
accel_arguments() {
	if [[ ${SELVEDGE_LAB_ACCEL:-tcg} == kvm ]]; then
		if kvm_boots; then
			printf '%s\n' -accel kvm -cpu host
			return
		fi
		say "KVM does not boot a guest here, using TCG"
	fi
	printf '%s\n' -accel tcg,thread=multi,tb-size=128 -cpu max
}

kvm_boots() {
	local kernel initramfs
	[[ -w /dev/kvm ]] || return 1
	kernel=$(kernel_artifact)
	initramfs=$(initramfs_artifact)
	timeout 20 qemu-system-x86_64 -accel kvm -cpu host -machine q35 -m 256 -nodefaults -no-reboot \
		-display none -serial stdio -kernel "$kernel/vmlinuz" -initrd "$initramfs/initramfs.cpio.zst" \
		-append "console=ttyS0 panic=-1 lab.mode=probe" </dev/null 2>&1 | grep -q lab-probe-ok
}
