# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by scripts that need programs of Debian.

# debian FILE PACKAGE... installs packages unless the file is there.
debian() {
	local file=$1
	shift
	[[ ! -e $file ]] || return 0
	echo "Installing from Debian: $*" >&2
	command -v apt-get >/dev/null || { echo "missing: $*; there is no apt-get to install them" >&2; return 1; }
	local install=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends --no-remove "$@")
	"${install[@]}" >/dev/null 2>&1 || { apt-get update -qq >&2 && "${install[@]}" >/dev/null; }
}
