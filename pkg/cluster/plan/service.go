// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// KeepPeerService precedes all other rules: members need their names.
func KeepPeerService(o *Observation) Step { return keepService(o.PeerService, false) }

// KeepClientService creates the client Service only after the bootstrap is on record: before
// that, no client may write what a second bootstrap would lose. It also waits for
// authentication. The members that a cluster lacks do not wait for that.
func KeepClientService(o *Observation) Step {
	if o.holdsBackClients() {
		return nil
	}
	return keepService(o.ClientService, true)
}

func keepService(svc OwnedObject, client bool) Step {
	switch {
	case svc.Taken && !client:
		return Wait{"for the name of the peer service: " + peerServiceTaken(svc)}
	case svc.PutOff || svc.Leaving:
		return nil
	case !svc.Owned:
		return CreateService{client}
	case svc.Remake:
		return DeleteService{Name: svc.Name, UID: svc.UID, why: "it is not headless, which can't be changed: the operator recreates it"}
	case svc.Edited != "":
		return UpdateService{client, svc.Edited}
	}
	return nil
}

func peerServiceTaken(svc OwnedObject) string {
	return "service " + svc.Name + " belongs to something else; delete it if nothing needs it, or create the EtcdCluster under another name"
}

// DropFormerService deletes a client Service whose name the spec has changed, once the new one
// exists: clients need time to move.
func DropFormerService(o *Observation) Step {
	if !o.ClientService.Ok() {
		return nil
	}
	for _, svc := range o.FormerServices {
		if svc.Ok() && !svc.PutOff {
			return DeleteService{Name: svc.Name, UID: svc.UID, why: "the client service is now " + o.ClientService.Name}
		}
	}
	return nil
}
