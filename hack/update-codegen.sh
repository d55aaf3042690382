#!/usr/bin/env bash
# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates what is derived from the types in pkg/apis: deep copies, the CRDs'
# YAML, and the clientset, listers and informers in pkg/generated. The generators
# are pinned in hack/tools/go.mod; hack/crdrules is ours. Also regenerates the tables
# of fields and flags in doc/reference.md (hack/reference), and the manifests and the files of
# the Helm chart that follow from deploy/ (hack/manifests).
#
# usage: hack/update-codegen.sh [--verify]
#   --verify  change nothing; exit 1 and show the difference where the files in
#             the repository are not what the generators would write

set -o errexit -o nounset -o pipefail

root=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=$(cd "$root" && go list -m)
header=$root/hack/boilerplate.go.txt

verify=false
case "${1-}" in
'') ;;
--verify) verify=true ;;
*)
	sed -n '/^# usage:/,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir "$tmp/bin"
go -C "$root/hack/tools" build -o "$tmp/bin/" sigs.k8s.io/controller-tools/cmd/controller-gen \
	k8s.io/code-generator/cmd/{deepcopy-gen,client-gen,lister-gen,informer-gen}

# The generators work on a copy: a failing one leaves the repository unchanged.
copy=$tmp/copy
mkdir -p "$copy/pkg" "$copy/hack"
cp "$root"/go.{mod,sum} "$copy"
cp -R "$root/pkg/apis" "$copy/pkg"
cp -R "$root/hack/crdrules" "$copy/hack"
cd "$copy"
find pkg/apis \( -name 'zz_generated.*' -o -path '*/crd/*.yaml' -not -name kustomization.yaml -not -path '*/testdata/*' \) -delete

apis=./pkg/apis/etcd/v1beta2
generated=pkg/generated
mkdir -p "$generated"

"$tmp/bin/deepcopy-gen" \
	--go-header-file "$header" \
	--output-file zz_generated.deepcopy.go \
	"$apis"
# The CRDs that v0.9.4 registered set preserveUnknownFields. kubectl apply changes only what a file names,
# and the API server refuses defaults in a CRD that sets it.
"$tmp/bin/controller-gen" crd:deprecatedV1beta1CompatibilityPreserveUnknownFields=false paths="$apis" output:crd:dir=pkg/apis/etcd/crd
go run ./hack/crdrules pkg/apis/etcd/crd/etcd.database.coreos.com_etcdclusters.yaml
"$tmp/bin/client-gen" \
	--go-header-file "$header" \
	--clientset-name versioned \
	--input-base "$module/pkg/apis" \
	--input etcd/v1beta2 \
	--output-pkg "$module/$generated/clientset" \
	--output-dir "$generated/clientset"
"$tmp/bin/lister-gen" \
	--go-header-file "$header" \
	--output-pkg "$module/$generated/listers" \
	--output-dir "$generated/listers" \
	"$apis"
"$tmp/bin/informer-gen" \
	--go-header-file "$header" \
	--versioned-clientset-package "$module/$generated/clientset/versioned" \
	--listers-package "$module/$generated/listers" \
	--output-pkg "$module/$generated/informers" \
	--output-dir "$generated/informers" \
	"$apis"

if $verify; then
	(cd "$root" && go run ./hack/reference -verify .)
	for dir in pkg/apis "$generated"; do
		if ! diff -ruN "$root/$dir" "$copy/$dir"; then
			echo >&2
			echo "verify-codegen: the files above are not what the types in pkg/apis generate (- repository, + generated): run hack/update-codegen.sh and commit the result" >&2
			exit 1
		fi
	done
	# Last: it reads the CRDs, which are compared above.
	go -C "$root/hack/manifests" run . -verify "$root"
	exit 0
fi

# Only what differs is written, and at once: something else may be building the tree.
(cd "$copy" && find pkg/apis "$generated" -type f) | while read -r file; do
	cmp -s "$copy/$file" "$root/$file" && continue
	mkdir -p "$(dirname "$root/$file")"
	cp "$copy/$file" "$root/$file.part"
	mv "$root/$file.part" "$root/$file"
done
(cd "$root" && find "$generated" -type f) | while read -r file; do
	[[ -e $copy/$file ]] || rm "$root/$file"
done
find "$root/$generated" -type d -empty -delete
cd "$root"
go run ./hack/reference .
go -C hack/manifests run . "$root"
