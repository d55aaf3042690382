#!/usr/bin/env bash
# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0

set -o errexit -o nounset -o pipefail

usage() {
	cat <<USAGE
$(basename "$0") - grant the etcd operator its rights (RBAC)

Usage: $(basename "$0") [options...]

Applies a ClusterRole, and a ClusterRoleBinding that grants it to the service account
"default" of a namespace, which example/deployment.yaml uses. It is safe to run the
script again. Run it again after an update of the operator.

deploy/install.yaml is the better way to install: it gives each operator its own service
account, with only the rights that it uses. See doc/user/install.md.

Options:
  --role-name=NAME          name of the role
                            (default "etcd-operator", environment variable ROLE_NAME)
  --role-binding-name=NAME  name of the role binding
                            (default "etcd-operator", environment variable ROLE_BINDING_NAME)
  --namespace=NAMESPACE     namespace of the operator, which must exist
                            (default: that of kubectl's context, environment variable NAMESPACE)
  --namespaced              apply a Role and a RoleBinding in that namespace instead; the
                            operator then needs -create-crd=false (see role-template.yaml)
  -h, --help                print this text

Environment variable KUBECTL: the kubectl to use (default "kubectl").
USAGE
}

fail() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

templates=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Not quoted below: it may contain arguments, such as "kubectl --context=test".
kubectl=${KUBECTL:-kubectl}
role=${ROLE_NAME:-etcd-operator}
binding=${ROLE_BINDING_NAME:-etcd-operator}
namespace=${NAMESPACE:-}
kind=cluster-role

while (($# > 0)); do
	option=${1%%=*}
	case $option in
	--role-name | --role-binding-name | --namespace)
		if [[ $1 == *=* ]]; then
			value=${1#*=}
		else
			(($# > 1)) || fail "$option needs a value, such as $option=etcd-operator"
			value=$2
			shift
		fi
		case $option in
		--role-name) role=$value ;;
		--role-binding-name) binding=$value ;;
		--namespace)
			[[ -n $value ]] || fail "$option needs a value, such as $option=default"
			namespace=$value
			;;
		esac
		;;
	--namespaced) kind=role ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		echo "$(basename "$0"): unknown option $1" >&2
		echo >&2
		usage >&2
		exit 1
		;;
	esac
	shift
done

command -v "${kubectl%% *}" >/dev/null || fail "${kubectl%% *} not found: install kubectl, or name it in the environment variable KUBECTL"

# kubectl apply puts the Deployment into the namespace of kubectl's context. In a pod, kubectl
# has no context.
if [[ -z $namespace ]]; then
	namespace=$($kubectl config view --minify --output='jsonpath={..namespace}' 2>/dev/null) || namespace=
	namespace=${namespace:-default}
fi

for name in "$role" "$binding" "$namespace"; do
	# Names of roles may contain colons. None of these characters is special to sed.
	[[ $name =~ ^[A-Za-z0-9.:_-]+$ ]] || fail "\"$name\" is not a name that Kubernetes takes"
done

# A second namespace must not use the same ClusterRoleBinding: the operator in the first
# one would lose its rights.
if [[ $kind == cluster-role ]]; then
	bound=$($kubectl get clusterrolebinding "$binding" --ignore-not-found -o jsonpath='{.subjects[*].namespace}')
	[[ -z $bound || $bound == "$namespace" ]] || fail "ClusterRoleBinding $binding already gives rights to the operator in namespace $bound:" \
		"choose another --role-binding-name for namespace $namespace, or name the other one with --namespace"
	echo "$(basename "$0"): warning: this allows the service account \"default\" of namespace $namespace, and so its pods, to read every Secret" \
		"of this Kubernetes cluster. deploy/install.yaml grants each operator only what it uses: see doc/user/install.md" >&2
else
	echo "$(basename "$0"): this grants the service account \"default\" of namespace $namespace its rights in that namespace" >&2
fi

for template in "$templates/$kind-template.yaml" "$templates/$kind-binding-template.yaml"; do
	sed -e "s/<ROLE_NAME>/$role/g" -e "s/<ROLE_BINDING_NAME>/$binding/g" -e "s/<NAMESPACE>/$namespace/g" "$template" |
		$kubectl apply -f -
done
