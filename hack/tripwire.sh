# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by hack/test, after hack/process.sh. For all programs that start afterwards, the
# environment and the home directory name a server as their cluster, etcd and cloud. No program
# may send it a request: a script or test that does would reach a person's own.

tripwire='' tripwire_dir=''

# set_tripwire DIRECTORY starts the server, which keeps its files there.
set_tripwire() {
	local settings file
	tripwire_dir=$1/tripwire
	mkdir "$tripwire_dir"
	mkfifo "$tripwire_dir/settings"
	go build -o "$tripwire_dir" ./hack/tripwire
	# A process group of its own, and no job of this shell, which may wait for all jobs.
	set -m
	"$tripwire_dir/tripwire" "$tripwire_dir" >"$tripwire_dir/settings" </dev/null &
	tripwire=$!
	set +m
	disown "$tripwire"
	settings=$(<"$tripwire_dir/settings")
	[[ -n $settings ]] || { echo "$0: the tripwire does not start" >&2; return 1; }

	# These programs keep their files in the home directory.
	export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache}
	GOPATH=$(go env GOPATH) GOENV=$(go env GOENV)
	export GOPATH GOENV NETRC=${NETRC:-$HOME/.netrc}
	export NPM_CONFIG_USERCONFIG=${NPM_CONFIG_USERCONFIG:-$HOME/.npmrc} NPM_CONFIG_CACHE=${NPM_CONFIG_CACHE:-$HOME/.npm}
	for file in "$HOME/.gitconfig" "${XDG_CONFIG_HOME:-$HOME/.config}/git/config"; do
		[[ ! -e $file || -n ${GIT_CONFIG_GLOBAL-} ]] || export GIT_CONFIG_GLOBAL=$file
	done
	eval "$settings"
}

# tripwire_told prints the requests to the server, and fails if there were none.
tripwire_told() {
	if [[ -s $tripwire_dir/asked ]]; then
		echo "tripwire: the cluster, etcd or cloud of the caller's environment was asked:"
		awk '!seen[$0]++' "$tripwire_dir/asked" | head -n 20
	elif ! kill -0 "$tripwire" 2>/dev/null; then
		echo "tripwire: the server has ended, and nobody knows what it would have been asked"
	else
		return 1
	fi
}

end_tripwire() {
	[[ -z $tripwire ]] || end_group "$tripwire"
	tripwire=''
}
