// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// tokenState is the Secret of the token's name.
type tokenState struct {
	uid types.UID
	// value of the token; "" where it is not one of this restore.
	value string
	// former means that it belongs to a former EtcdRestore of the name.
	former bool
	ours   bool
}

func (o *observation) tokenUsable() bool { return o.token != nil && o.token.value != "" }

// ensureToken creates the token unless it exists.
func (o *observation) ensureToken(v *verdict) *verdict {
	switch t := o.token; {
	case t == nil:
		return v.do(createToken{})
	case t.ours || t.former:
		return v.do(deleteToken{uid: t.uid})
	}
	return o.at(v.status.Phase, tokenTaken(o.obj.Name)).helpless()
}

func tokenTaken(restore string) string {
	return fmt.Sprintf("the Secret %s belongs to somebody else: delete or rename it, the restore needs the name for its token", tokenSecret(restore))
}
