# shellcheck shell=bash
# Packages of the host: what the lab runs on and what the Rust build needs.
# Never starts a service, never touches the host's network.

LAB_PACKAGES=(
	qemu-system-x86 qemu-utils debootstrap e2fsprogs busybox-static cpio zstd
	gcc make kmod iproute2 openssh-client python3 xz-utils socat
)
BUILD_PACKAGES=(
	cmake libclang-dev libnl-3-dev libnl-route-3-dev pkg-config libibverbs-dev
	libibumad-dev libibmad-dev git
)
# Independent judges and traffic: the tests compare selvedge with these.
ORACLE_PACKAGES=(
	opensm ibsim-utils infiniband-diags perftest rdma-core ibverbs-providers rdmacm-utils
	netplan.io network-manager augeas-tools ethtool iputils-ping bsdextrautils shellcheck
)

missing_packages() {
	local package
	for package in "$@"; do
		[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] ||
			printf '%s\n' "$package"
	done
}

lab_deps() {
	local -a missing wanted
	local versions round
	versions=$(kernel_versions)
	wanted=("${LAB_PACKAGES[@]}" "${BUILD_PACKAGES[@]}" "${ORACLE_PACKAGES[@]}"
		"linux-headers-${versions%% *}")
	# Twice: a package of another release, such as backports, may have to make room for the
	# others, and is missing afterwards.
	for round in 1 2; do
		mapfile -t missing < <(missing_packages "${wanted[@]}")
		if ((${#missing[@]} == 0)); then
			((round > 1)) || say "all packages are here"
			return
		fi
		((EUID == 0)) || die "run as root to install: ${missing[*]}"
		say "installing ${missing[*]}"
		refuse_removals "${missing[@]}"
		install_quietly "${missing[@]}"
	done
	mapfile -t missing < <(missing_packages "${wanted[@]}")
	((${#missing[@]} == 0)) || die "not installed, since other packages exclude them: ${missing[*]}"
}

# refuse_removals PACKAGE... : ends where apt would remove something for these that is not of the lab
refuse_removals() {
	local package
	local -a removed
	mapfile -t removed < <(apt-get -s --no-install-recommends install "$@" | awk '$1 == "Remv" { print $2 }')
	for package in ${removed[@]+"${removed[@]}"}; do
		[[ " ${wanted[*]} " == *" $package "* ]] ||
			die "apt would remove $package to install $*: do that by hand first, if it may go"
	done
}

# Debian starts and enables a service when its package is installed. A build machine
# must not become a subnet manager, nor hand its network to NetworkManager.
install_quietly() (
	local policy=/usr/sbin/policy-rc.d unit
	local -a ours=(opensm.service NetworkManager.service NetworkManager-wait-online.service
		NetworkManager-dispatcher.service) fresh=()
	for unit in "${ours[@]}"; do
		# Masked before the package brings it, if it is not here yet: a later boot must not start it.
		[[ -e /lib/systemd/system/$unit || -e /etc/systemd/system/$unit ]] || fresh+=("$unit")
	done
	for unit in ${fresh[@]+"${fresh[@]}"}; do
		mkdir -p /etc/systemd/system
		ln -s /dev/null "/etc/systemd/system/$unit"
	done
	if [[ ! -e $policy ]]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
		-qq -y --no-install-recommends install "$@" >&2
)
