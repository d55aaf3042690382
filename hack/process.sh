# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by scripts whose children must not outlive them. Each child runs in a process group
# of its own. A signal to the script then ends the whole group at once, which bash does not do
# for a child in the foreground.

child=
# The directory for temporary files of own_group.
own_files=
# Seconds between the request to end and the kill.
patience=30

# attend COMMAND... runs a command and waits for it.
attend() {
	set -m
	"$@" </dev/null &
	child=$!
	set +m
	local status=0
	wait "$child" || status=$?
	child=
	return "$status"
}

# exit_on_signals lets a signal end the script as exit does: with the trap of EXIT.
exit_on_signals() {
	trap 'undisturbed; exit 129' HUP
	trap 'undisturbed; exit 130' INT
	trap 'undisturbed; exit 143' TERM
}

# undisturbed is the first command of a trap of EXIT that cleans. A second Ctrl-C does not end the trap
# halfway, nor does the second of the two signals that timeout(1) sends. Commands in the trap inherit this.
# Neither does a print end it that nobody reads: Ctrl-C ends tee, too, as in "hack/test | tee log".
undisturbed() {
	trap '' INT TERM HUP
	trap : PIPE
}

# own_group SCRIPT ARGUMENT... is the first command of a script whose commands run in the foreground. It
# runs the script again, in a process group, and exits as that does. A signal to the script ends the
# group. In the group, it returns at once. TMPDIR of the group is removed after its end.
own_group() {
	if [[ -n ${OWN_GROUP-} ]]; then
		unset OWN_GROUP
		return
	fi
	trap end_own_group EXIT
	exit_on_signals
	# The name is short, for paths of sockets. The mode is that of /tmp, for programs of other users.
	own_files=$(mktemp -d "${TMPDIR:-/tmp}/tmp.XXXXXX")
	chmod 1777 "$own_files"
	local status=0
	OWN_GROUP=true TMPDIR=$own_files attend "$@" || status=$?
	exit "$status"
}

# end_group LEADER... asks all the process groups to end, and kills those that have not within one patience.
end_group() {
	local leader i=0
	for leader in "$@"; do kill -TERM -- "-$leader" 2>/dev/null || true; done
	for leader in "$@"; do
		for ((; i < patience * 10; i++)); do
			kill -0 -- "-$leader" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$leader" 2>/dev/null || true
		wait "$leader" 2>/dev/null || true
	done
}

# end_child ends what attend runs, if anything.
end_child() {
	[[ -z $child ]] || end_group "$child"
	child=
}

# end_own_group ends the group and removes its temporary files, however many signals come meanwhile.
end_own_group() {
	undisturbed
	end_child || true
	[[ -z $own_files ]] || rm -rf "$own_files" || true
}

# use_go puts Go on PATH where only login shells have it (sudo, cron).
use_go() {
	export PATH="$PATH:/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin"
	if ! command -v go >/dev/null; then
		echo "$(basename "$0"): Go is missing: install the version that go.mod names, or put its bin directory on PATH" >&2
		exit 1
	fi
}
