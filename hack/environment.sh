# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by scripts that run kubectl or tests. They work on the local Kubernetes, or on a
# cluster that an option names. They must not touch anything that the caller's environment or
# home directory names: a cluster, an etcd or a cloud in production.

# forget PATTERN... unsets variables.
forget() {
	local name pattern
	for name in $(compgen -e); do
		for pattern in "$@"; do
			# shellcheck disable=SC2053 # the right side is a pattern
			[[ $name != $pattern ]] || unset "$name"
		done
	done
}

# forget_clusters leaves kubectl without a cluster. It keeps variables for a plugin that gets
# credentials for a cluster: AWS_PROFILE, for example.
forget_clusters() {
	local name
	# KUBECTL, NAMESPACE and the names of roles are read by example/rbac/create_role.sh.
	forget 'KUBE*' 'HELM_*' NAMESPACE POD_NAMESPACE ROLE_NAME ROLE_BINDING_NAME
	# Without KUBECONFIG, kubectl uses ~/.kube/config; if that is empty, the cluster in
	# whose pod it runs; and otherwise KUBERNETES_MASTER, or a server on port 8080.
	export KUBECONFIG=/dev/null KUBERNETES_MASTER=http://127.0.0.1:1
	# ~/.kube/kuberc may add --server, --context or --kubeconfig to every command.
	export KUBERC=off
	# A shell function that is exported hides the program of its name.
	while read -r _ _ name; do unset -f "$name"; done < <(declare -Fx)
}

# clean_environment also forgets all etcds and clouds, and settings that change the code that
# go builds and tests.
clean_environment() {
	forget_clusters
	forget 'ETCD_*' 'ETCDCTL_*' 'ETCDUTL_*' 'MY_POD_*' \
		'AWS_*' 'AZURE_*' 'MSI_*' 'IDENTITY_*' 'IMDS_*' 'GOOGLE_*' 'GCE_*' 'GCLOUD_*' 'CLOUDSDK_*' \
		STORAGE_EMULATOR_HOST 'ALIBABA_CLOUD_*' 'ALICLOUD_*' 'OSS_*' 'MINIO_*' 'AZURITE_*' \
		GOOS GOARCH BASH_ENV ENV CDPATH
	export GOWORK=off
	# Tags choose tests. The other flags are the caller's own business.
	GOFLAGS=$(sed -E 's/(^| +)--?tags=[^ ]*//g' <<<"${GOFLAGS-}")
	export GOFLAGS
}

# share_builds makes builds of the same code share what they compile: the local Kubernetes, the
# operators' image and the tests, in every checkout. git refuses the checkout of another user, and
# hack/image passes the version itself. Nobody debugs the programs: without symbols, they compile in
# nine tenths of the time and link in half of it. The programs are built without C. If the tests were
# not, nearly all packages would be compiled twice. Only the race detector needs C. The linters vet, so
# go test need not.
share_builds() {
	[[ ${GOFLAGS-} == *-dwarf=false* ]] ||
		export GOFLAGS="${GOFLAGS-} -buildvcs=false -trimpath -vet=off -gcflags=all=-dwarf=false '-ldflags=-s -w'"
	export CGO_ENABLED=0
}

# use_kube does what eval "$(hack/kube env)" does, and fails if hack/kube could not be built.
# The eval would continue.
use_kube() {
	local settings
	settings=$(hack/kube env) || return
	eval "$settings"
}
