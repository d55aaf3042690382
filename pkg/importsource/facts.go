// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importsource looks at a running etcd outside of the operator's care, and judges whether
// members of an EtcdCluster could join it, or whether a cluster could start on a copy of its data. It
// changes nothing.
package importsource

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Facts are what the endpoints of an etcd have reported.
type Facts struct {
	Answers []Answer
	// Members are the membership on which a quorum agrees. NotListed is why there is none.
	Members   []etcd.Member
	NotListed error
	// ClusterVersion is the version on which the members agree. NoClusterVersion is why it is
	// unknown.
	ClusterVersion   etcd.Version
	NoClusterVersion error
	// DataRevision is the revision of all digests; 0: nobody has asked for them.
	DataRevision int64
	// Authentication means that etcd asks clients for a user.
	Authentication bool
	// Token is what the login has shown of etcd's tokens.
	Token etcd.Token
	// APIServer says whether the data are those of a Kubernetes API server. NotSearched is why
	// that is unknown.
	APIServer   APIServer
	NotSearched error
	// Yield is how fast the etcd has sent its database; zero: nobody has measured. NotYielded is
	// why it could not be measured.
	Yield      Yield
	NotYielded error
}

// Yield is a part of a snapshot, and the time in which it came.
type Yield struct {
	Bytes int64
	Took  time.Duration
}

// DatabaseSize is that of the largest member, in bytes.
func (f Facts) DatabaseSize() (size int64) {
	for _, a := range f.Answers {
		if a.Err == nil {
			size = max(size, a.Status.DBSize)
		}
	}
	return size
}

// APIServer says whose API server keeps its objects in the etcd.
type APIServer int

// The API servers.
const (
	NoAPIServer APIServer = iota
	// OtherAPIServer is one of another Kubernetes cluster, or of an unknown one.
	OtherAPIServer
	// OwnAPIServer is the one that keeps the EtcdCluster.
	OwnAPIServer
)

// Answer is what one endpoint has reported.
type Answer struct {
	Endpoint string
	Status   etcd.Status
	// Err is why there is no status.
	Err error
	// Digest is that of the member's data. NoDigest is why there is none.
	Digest   etcd.Digest
	NoDigest error
}

// Target is what the judgement needs of the EtcdCluster that would take over.
type Target struct {
	Version etcd.Version
	// Domain is the end of all names of its members: NAME.NAMESPACE.svc.
	Domain string
	// Quota is the size of the database at which its members refuse writes.
	Quota int64
	// Volume is the size of a member's volume; 0: there is no volume.
	Volume  int64
	PeerTLS bool
	// Copies is true if a new cluster starts on a copy of the data, in place of members that join.
	Copies bool
	// Fence is the alarm by which the etcd refuses writes on behalf of an EtcdCluster whose import
	// has begun before; zero: none has.
	Fence etcd.Alarm
	// AuthToken is the value of --auth-token, or "".
	AuthToken string
	// UserFrom and CertificateFrom say where a person names the Secrets for the endpoints.
	UserFrom, CertificateFrom string
}

// defaultQuota is etcd's.
const defaultQuota = 2 << 30

// TargetOf reads an EtcdCluster.
func TargetOf(obj *api.EtcdCluster, namespace string) (Target, error) {
	version, err := etcd.ParseVersion(obj.Spec.EffectiveVersion())
	if err != nil {
		return Target{}, err
	}
	t := Target{Version: version, Domain: obj.Name + "." + namespace + ".svc", Quota: defaultQuota, PeerTLS: obj.Spec.PeerTLS(), Copies: obj.Spec.ImportFrom.Copies()}
	pod := obj.Spec.Pod
	if pod == nil {
		return t, nil
	}
	// A flag counts more than its variable.
	for _, env := range pod.EtcdEnv {
		t.set(env.Name, env.Value)
	}
	for _, arg := range pod.ExtraArgs {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		t.set("ETCD_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value)
	}
	if claim := pod.PersistentVolumeClaimSpec; claim != nil {
		t.Volume = claim.Resources.Requests.Storage().Value()
	}
	return t, nil
}

// set takes one of etcd's variables.
func (t *Target) set(variable, value string) {
	switch variable {
	case "ETCD_QUOTA_BACKEND_BYTES":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 {
			t.Quota = n
		}
	case "ETCD_AUTH_TOKEN":
		t.AuthToken = value
	}
}

// peer is a peer URL in parts.
func peer(text string) (scheme, host string) {
	u, err := url.Parse(text)
	if err != nil {
		return "", ""
	}
	return u.Scheme, strings.TrimSuffix(u.Hostname(), ".")
}
