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
	local install=(-o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends --no-remove "$@")
	apt_get "${install[@]}" 2>/dev/null || { apt_get update -qq && apt_get "${install[@]}"; }
}

# apt_get ARGUMENT... runs apt-get until it ends, and prints its errors. A kill would leave packages half
# installed, so it has a process group of its own: nothing ends it with that of the script. Signals wait.
# apt-get gets an interrupt instead, and ends before dpkg begins, or after dpkg. Then the script gets them.
apt_get() {
	local traps errors pid='' signal='' status=0
	# No pipe: dpkg would die if nobody reads it any more.
	errors=$(mktemp) || return
	traps=$(trap -p HUP INT TERM)
	trap 'signal=HUP; interrupt_apt_get' HUP
	trap 'signal=INT; interrupt_apt_get' INT
	trap 'signal=TERM; interrupt_apt_get' TERM
	set -m
	# Who ends the script may remove its TMPDIR.
	env DEBIAN_FRONTEND=noninteractive TMPDIR=/tmp apt-get "$@" </dev/null >/dev/null 2>"$errors" &
	pid=$!
	set +m
	[[ -z $signal ]] || interrupt_apt_get # it came before the number was known
	while
		status=0
		wait "$pid" || status=$?
		kill -0 "$pid" 2>/dev/null # a signal ended wait, and not apt-get
	do :; done
	trap - HUP INT TERM
	eval "$traps"
	cat "$errors" >&2
	rm -f "$errors"
	[[ -z $signal ]] || kill -s "$signal" "$BASHPID"
	return "$status"
}

# interrupt_apt_get is a part of apt_get.
interrupt_apt_get() { [[ -z $pid ]] || kill -s INT "$pid" 2>/dev/null || true; }
