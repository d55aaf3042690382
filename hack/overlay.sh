# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by scripts that build the product with a patch, at the root of the repository.

# overlay PATCH DIRECTORY patches copies of the files that the patch changes, and prints
# the file for go's -overlay. The tree stays as it is.
overlay() {
	local dir file separator=''
	mkdir -p "$2"
	dir=$(realpath "$2")
	while read -r file; do
		mkdir -p "$dir/$(dirname "$file")"
		cp "$file" "$dir/$file"
		printf '%s"%s":"%s"' "$separator" "$PWD/$file" "$dir/$file"
		separator=,
	done < <(sed -n 's#^+++ b/##p' "$1") >"$dir/list"
	# Outside of a repository, git patches the files in the directory.
	GIT_CEILING_DIRECTORIES=$(dirname "$dir") git -C "$dir" apply "$PWD/$1"
	printf '{"Replace":{%s}}\n' "$(<"$dir/list")" >"$dir/overlay.json"
	echo "$dir/overlay.json"
}

# sample prints N of the names that follow. Files alone decide which: a commit has the same ones on every
# day.
sample() {
	local count=$1 digits i
	shift
	local all=("$@")
	digits=$(find internal pkg test/simulation -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-8)
	for ((i = 0; i < count; i++)); do echo "${all[(16#$digits + i) % ${#all[@]}]}"; done
}
