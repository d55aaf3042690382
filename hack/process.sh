# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by scripts whose children must not outlive them. Each child runs in a process group
# of its own. A signal to the script then ends the whole group at once, which bash does not do
# for a child in the foreground.

child=
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
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# own_group SCRIPT ARGUMENT... is the first command of a script whose commands run in the foreground. It
# runs the script again, in a process group, and exits as that does. A signal to the script ends the
# group. In the group, it returns at once.
own_group() {
	if [[ -n ${OWN_GROUP-} ]]; then
		unset OWN_GROUP
		return
	fi
	trap end_child EXIT
	exit_on_signals
	local status=0
	OWN_GROUP=true attend "$@" || status=$?
	exit "$status"
}

# end_group LEADER... asks the process groups to end, and kills them if they take too long.
end_group() {
	local leader i
	for leader in "$@"; do
		kill -TERM -- "-$leader" 2>/dev/null || continue
		for ((i = 0; i < patience * 10; i++)); do
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

# use_go puts Go on PATH where only login shells have it (sudo, cron).
use_go() {
	export PATH="$PATH:/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin"
	if ! command -v go >/dev/null; then
		echo "$(basename "$0"): Go is missing: install the version that go.mod names, or put its bin directory on PATH" >&2
		exit 1
	fi
}
