// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// OwnerAnnotation on a PersistentVolumeClaim is the Owner of the data, if that is not the user
// that this operator chooses.
const OwnerAnnotation = api.OperatorAnnotations + "data-owner"

// Owner is the user and the group of files. Earlier operators ran etcd as other users, and not
// every volume lets Kubernetes change the owner (fsGroup): hostPath and NFS do not. etcd then
// has to run as that user. The zero Owner is unknown.
type Owner struct {
	Known    bool
	User     int64
	HasGroup bool
	Group    int64
}

// String returns USER or USER:GROUP, and "" for an unknown owner.
func (o Owner) String() string {
	switch {
	case !o.Known:
		return ""
	case !o.HasGroup:
		return strconv.FormatInt(o.User, 10)
	default:
		return strconv.FormatInt(o.User, 10) + ":" + strconv.FormatInt(o.Group, 10)
	}
}

// ParseOwner reads what String writes. Anything else is no known owner.
func ParseOwner(text string) Owner {
	user, group, hasGroup := strings.Cut(text, ":")
	u, err := parseID(user)
	if err != nil {
		return Owner{}
	}
	if !hasGroup {
		return Owner{Known: true, User: u}
	}
	g, err := parseID(group)
	if err != nil {
		return Owner{}
	}
	return Owner{Known: true, User: u, HasGroup: true, Group: g}
}

func parseID(text string) (int64, error) {
	id, err := strconv.ParseUint(text, 10, 31)
	return int64(id), err // at most 31 bits
}

// runsAs returns the user that a pod names for etcd; unknown if the image decides.
func runsAs(pod *corev1.Pod, c *corev1.Container) Owner {
	var o Owner
	if s := pod.Spec.SecurityContext; s != nil {
		o = ownerOf(s.RunAsUser, s.RunAsGroup)
	}
	if s := c.SecurityContext; s != nil && s.RunAsUser != nil {
		o = ownerOf(s.RunAsUser, s.RunAsGroup)
	}
	return o
}

func ownerOf(user, group *int64) Owner {
	if user == nil {
		return Owner{}
	}
	o := Owner{Known: true, User: *user}
	if group != nil {
		o.HasGroup, o.Group = true, *group
	}
	return o
}

// foreignData is how check-dns names the owner of data that it can't read (internal/datadir
// and busyboxScript).
var foreignData = regexp.MustCompile(`belongs to user (\d+) and group (\d+)`)

func reportedOwner(ended *corev1.ContainerStateTerminated) Owner {
	if ended == nil || ended.ExitCode == 0 {
		return Owner{}
	}
	match := foreignData.FindStringSubmatch(ended.Message)
	if match == nil {
		return Owner{}
	}
	return ParseOwner(match[1] + ":" + match[2])
}

// MayRunAs reports whether the spec leaves it to the operator to run etcd as that user.
func MayRunAs(spec *api.ClusterSpec, o Owner) bool {
	if !o.Known {
		return false
	}
	if spec.Pod == nil || spec.Pod.SecurityContext == nil {
		return true
	}
	s := spec.Pod.SecurityContext
	return s.RunAsUser == nil && (o.User != 0 || s.RunAsNonRoot == nil || !*s.RunAsNonRoot)
}
