#!/usr/bin/env bash
# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0

set -o errexit -o nounset -o pipefail
umask 077 # the script writes private keys

usage() {
	cat <<USAGE
$(basename "$0") - create test certificates for an etcd cluster with TLS

Usage: $(basename "$0") [options...]

Creates a CA, if none exists, and certificates for peers, servers and clients. Stores
them in three Secrets. Run it again to renew the certificates; the CA stays. Without
the key of the CA it replaces no Secrets. Needs openssl and kubectl.

Options:
  --cluster=NAME       name of the EtcdCluster (default "example")
  --namespace=NAME     its namespace (default: that of kubectl's context)
  --domain=DOMAIN      domain of the Kubernetes cluster (default "cluster.local")
  --form=FORM          names of Secrets and keys: "static", as v0.9.4 has them (etcd-peer-tls:
                       peer.crt, ...), or "cert-manager" (NAME-peer: tls.crt, ...)
                       (default "static")
  --days=DAYS          validity of the three certificates (default 365)
  --dir=DIRECTORY      directory of the CA and the certificates (default "certs" beside this script)
  --no-apply           do not write the Secrets

To change the CA, in this order (doc/tls.md explains when to continue):
  --add-ca             create a second CA and trust both; sign nothing yet
  --use-new-ca         sign all certificates with the new CA
  --drop-old-ca        trust the new CA alone

  -h, --help           print this text

Environment variable KUBECTL: the kubectl to use (default "kubectl").
USAGE
}

fail() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# Not quoted below: it may contain arguments, such as "kubectl --context=test".
kubectl=${KUBECTL:-kubectl}
dir=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/certs
cluster=example namespace='' domain=cluster.local form=static days=365 apply=true step=renew

while (($# > 0)); do
	value=${1#*=}
	case $1 in
	--cluster=?*) cluster=$value ;;
	--namespace=?*) namespace=$value ;;
	--domain=?*) domain=$value ;;
	--form=static | --form=cert-manager) form=$value ;;
	--days=[0-9]*) days=$value ;;
	--dir=?*) dir=$value ;;
	--no-apply) apply=false ;;
	--add-ca | --use-new-ca | --drop-old-ca) step=${1#--} ;;
	-h | --help)
		usage
		exit
		;;
	*) fail "unknown option $1, see --help" ;;
	esac
	shift
done
if [[ -z $namespace ]]; then
	namespace=$($kubectl config view --minify --output='jsonpath={..namespace}') || fail "name the --namespace"
	namespace=${namespace:-default}
fi
mkdir -p "$dir"
cd "$dir"

# make_ca NAME creates NAME.crt and NAME.key.
make_ca() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
		-subj "/CN=$cluster etcd CA $(date -u +%Y-%m-%dT%H:%M:%SZ)" \
		-addext 'keyUsage=critical,keyCertSign,cRLSign' -keyout "$1.key" -out "$1.crt" 2>openssl.log ||
		fail "make a CA: $(cat openssl.log)"
}

# sign NAME USAGE [SAN] creates NAME.key and a certificate NAME.crt from the CA.
sign() {
	{
		echo 'basicConstraints=critical,CA:FALSE'
		echo 'keyUsage=critical,digitalSignature'
		echo "extendedKeyUsage=$2"
		[[ -z ${3:-} ]] || echo "subjectAltName=$3"
	} >"$1.ext"
	{
		openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$cluster $1" -keyout "$1.key" -out "$1.csr" &&
			openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$days" -extfile "$1.ext" -out "$1.crt"
	} 2>openssl.log || fail "make the certificate $1: $(cat openssl.log)"
	rm "$1.ext" "$1.csr"
}

# sign_all creates the three certificates. Peers are servers and clients of each other.
# etcd resolves a peer's address to a name, which ends with Kubernetes' domain. etcd's
# gRPC gateway connects to its own server with the server's certificate.
sign_all() {
	local members="DNS:*.$cluster.$namespace.svc,DNS:*.$cluster.$namespace.svc.$domain"
	local service="$cluster-client.$namespace.svc"
	sign peer serverAuth,clientAuth "$members"
	sign server serverAuth,clientAuth "$members,DNS:$service,DNS:$service.$domain,DNS:$cluster-client,DNS:localhost,IP:127.0.0.1"
	sign etcd-client clientAuth
}

if [[ $form == static ]]; then
	names=(etcd-peer-tls etcd-server-tls etcd-client-tls)
else
	names=("$cluster-peer" "$cluster-server" "$cluster-client")
fi

# spare_secrets fails if Secrets exist: a new CA in one step cuts the members of a running
# cluster off from each other.
spare_secrets() {
	local existing
	existing=$($kubectl get secrets "${names[@]}" --namespace="$namespace" --ignore-not-found --output=name) ||
		fail "cannot find out whether the Secrets exist"
	[[ -z $existing ]] || fail "there is no ca.key in $dir, but these Secrets exist in the namespace $namespace:" \
		"${existing//$'\n'/ }. A new CA would cut running members off from each other." \
		"Name the directory of the CA with --dir, or delete the Secrets if no cluster uses them"
}

[[ -e ca.key ]] || {
	[[ $step == renew ]] || fail "there is no CA in $dir yet: run without --$step first"
	! $apply || spare_secrets
	make_ca ca
	cp ca.crt trusted.crt
}
case $step in
renew)
	sign_all
	;;
add-ca)
	make_ca new-ca
	cat ca.crt new-ca.crt >trusted.crt
	;;
use-new-ca)
	[[ -e new-ca.key ]] || fail "there is no new CA in $dir: run with --add-ca first"
	mv new-ca.crt ca.crt
	mv new-ca.key ca.key
	sign_all
	;;
drop-old-ca)
	cp ca.crt trusted.crt
	;;
esac

# secret NAME CERTIFICATE stores a certificate, its key and the trusted CAs in a Secret.
# A server-side apply keeps no copy of them in an annotation.
secret() {
	local files=(--from-file="$2.crt=$2.crt" --from-file="$2.key=$2.key" --from-file="$2-ca.crt=trusted.crt")
	if [[ $form == cert-manager ]]; then
		files=(--type=kubernetes.io/tls --from-file="tls.crt=$2.crt" --from-file="tls.key=$2.key" --from-file=ca.crt=trusted.crt)
	fi
	$kubectl create secret generic "$1" --namespace="$namespace" "${files[@]}" --dry-run=client --output=yaml |
		$kubectl apply --server-side --force-conflicts --field-manager=etcd-certificates --filename=-
}

$apply || exit 0
secret "${names[0]}" peer
secret "${names[1]}" server
secret "${names[2]}" etcd-client
