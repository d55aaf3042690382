// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// keepPeerService comes before all else: members need their names.
func keepPeerService(o *observation) step { return keepService(o.peerService, false) }

// keepClientService makes the client Service only once the bootstrap is on
// record: before that, no client can write what a second bootstrap would lose.
func keepClientService(o *observation) step { return keepService(o.clientService, true) }

func keepService(svc belonging, client bool) step {
	switch {
	case svc.taken && !client:
		return wait{"for the name of the peer service: service " + svc.name + " belongs to something else; delete or rename it"}
	case svc.putOff || svc.leaving:
		return nil
	case !svc.owned:
		return createService{client}
	case svc.remake:
		return deleteService{name: svc.name, uid: svc.uid, why: "it is not headless, which can't be changed: it is made again"}
	case svc.edited != "":
		return mendService{client, svc.edited}
	}
	return nil
}

// dropFormerService deletes a client Service whose name was changed in the spec,
// when the one of the new name is there: clients need the time to move.
func dropFormerService(o *observation) step {
	if !o.clientService.ok() {
		return nil
	}
	for _, svc := range o.formerServices {
		if svc.ok() && !svc.putOff {
			return deleteService{name: svc.name, uid: svc.uid, why: "the client service is now " + o.clientService.name}
		}
	}
	return nil
}
