# shellcheck shell=bash
# Artifacts: directories in the cache, each named by a hash of what went into it.
# A name that exists is complete: builds happen beside it and are renamed at the end.

say() { printf 'lab: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# hash_of FILE-OR-DIRECTORY... -- WORD... : one short hash over contents and words
hash_of() {
	local -a paths=()
	while (($#)) && [[ $1 != -- ]]; do
		paths+=("$1")
		shift
	done
	{
		printf '%s\n' "$@"
		if ((${#paths[@]})); then
			find "${paths[@]}" -type f ! -name '.*' -print0 | LC_ALL=C sort -z |
				while IFS= read -r -d '' file; do
					sha256sum <"$file"
					# The path relative to the lab, so that a moved checkout shares the cache.
					printf '%s %s\n' "${file#"$LAB_DIR"/}" "$(stat -c %a "$file")"
				done
		fi
	} | sha256sum | cut -c1-16
}

# artifact NAME HASH BUILDER [ARGS] : prints the directory, building it first if need be.
# BUILDER is called with the directory to fill as its last argument.
artifact() {
	local name=$1 final=$CACHE/$1-$2
	shift 2
	if [[ ! -d $final ]]; then
		mkdir -p "$CACHE"
		build_artifact "$name" "$final" "$@"
	fi
	touch "$final"
	printf '%s\n' "$final"
}

build_artifact() (
	local name=$1 final=$2 started=$SECONDS
	shift 2
	exec 9>"$CACHE/.$name.lock"
	flock 9
	[[ ! -d $final ]] || exit 0 # another instance was faster
	rm -rf -- "$CACHE/.$name.building"
	mkdir "$CACHE/.$name.building"
	say "building $name"
	"$@" "$CACHE/.$name.building" >&2 9>&-
	mv -T "$CACHE/.$name.building" "$final"
	say "built $name in $((SECONDS - started)) s"
	# What no checkout has used for a week goes.
	find "$CACHE" -maxdepth 1 -name "$name-*" -mtime +7 -exec rm -rf {} +
)
