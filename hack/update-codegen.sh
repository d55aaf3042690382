#!/usr/bin/env bash
# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates what is derived from the types in pkg/apis: deep copies, the CRDs'
# YAML, and the clientset, listers and informers in pkg/generated. The generators
# are pinned in hack/tools/go.mod.
#
# usage: hack/update-codegen.sh [ROOT]
#   ROOT  the tree to write into (default: this repository); verify-codegen.sh
#         names a copy here.

set -o errexit -o nounset -o pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "${1:-$here/..}" && pwd)
module=github.com/etcd-operator/etcd-operator
header=$here/boilerplate.go.txt

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for tool in sigs.k8s.io/controller-tools/cmd/controller-gen \
	k8s.io/code-generator/cmd/{client-gen,lister-gen,informer-gen}; do
	go -C "$here/tools" build -o "$bin/" "$tool"
done

cd "$root"
apis=./pkg/apis/etcd/v1beta2
generated=pkg/generated

rm -rf "$generated" pkg/apis/etcd/crd/*.yaml "$apis"/zz_generated.*.go
mkdir -p "$generated"

"$bin/controller-gen" object:headerFile="$header" paths="$apis"
"$bin/controller-gen" crd paths="$apis" output:crd:dir=pkg/apis/etcd/crd

"$bin/client-gen" \
	--go-header-file "$header" \
	--clientset-name versioned \
	--input-base "$module/pkg/apis" \
	--input etcd/v1beta2 \
	--output-pkg "$module/$generated/clientset" \
	--output-dir "$generated/clientset"

"$bin/lister-gen" \
	--go-header-file "$header" \
	--output-pkg "$module/$generated/listers" \
	--output-dir "$generated/listers" \
	"$module/pkg/apis/etcd/v1beta2"

"$bin/informer-gen" \
	--go-header-file "$header" \
	--versioned-clientset-package "$module/$generated/clientset/versioned" \
	--listers-package "$module/$generated/listers" \
	--output-pkg "$module/$generated/informers" \
	--output-dir "$generated/informers" \
	"$module/pkg/apis/etcd/v1beta2"
