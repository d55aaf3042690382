// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var (
	// errCacheBehind means that the API server has a newer object than the cache from which a
	// step was planned.
	errCacheBehind = errors.New("the informer's cache is behind the API server")
	// errBeingDeleted means that an object is being deleted and still exists.
	errBeingDeleted = errors.New("the object is being deleted")
	// errSuperseded means that the EtcdCluster has changed since the plan: somebody has edited
	// it, deleted it, or written its status.
	errSuperseded = errors.New("the EtcdCluster has changed since the step was planned")
	// errLeftOut means that the API server has refused a write that its rule now leaves out.
	errLeftOut = errors.New("the operator leaves this out for a while")

	errNoQuorum = errors.New("no member that takes changes is known")
)

// isNotYet reports whether err ends a pass without a failure: the next pass sees more.
func isNotYet(err error) bool {
	return etcd.IsNotYet(err) || errors.Is(err, errCacheBehind) || errors.Is(err, errBeingDeleted) || errors.Is(err, errSuperseded) || errors.Is(err, errRepeats) || errors.Is(err, errLeftOut)
}

// apply executes a step. For steps that are only a record in status, there is nothing left:
// the pass has written the status before.
func (c *Cluster) apply(ctx context.Context, s plan.Step) error {
	switch s := s.(type) {
	case plan.CreateService:
		return c.createService(ctx, s)
	case plan.UpdateService:
		return c.correctService(ctx, s)
	case plan.DeleteService:
		return c.deleteService(ctx, s)
	case plan.CreateBudget:
		return c.createBudget(ctx, s)
	case plan.UpdateBudget:
		return c.correctBudget(ctx, s)
	case plan.DeleteBudget:
		return c.deleteBudget(ctx, s)
	case plan.WriteBridge:
		return c.writeBridge(ctx, s)
	case plan.CreatePods:
		return c.createPods(ctx, s)
	case plan.DeletePod:
		err := c.deletePod(ctx, s)
		if s.Creating { // the rule of the bootstrap has nothing else to do
			return err
		}
		return leftOut(err)
	case plan.SetVersion:
		return c.setVersion(ctx, s)
	case plan.RecyclePod:
		return c.recyclePod(ctx, s)
	case plan.SetMetadata:
		return c.setMetadata(ctx, s)
	case plan.DeleteVolume:
		return c.deleteVolume(ctx, s)
	case plan.ExpandVolume:
		return c.expandVolume(ctx, s)
	case plan.NoteMember:
		return c.noteMember(ctx, s)
	case plan.SetVolumeVersion:
		return c.setVolumeVersion(ctx, s)
	case plan.SetVolumeOwner:
		return c.setVolumeOwner(ctx, s)
	case plan.AddMember:
		return c.addOneMember(ctx, s)
	case plan.PromoteMember:
		return c.promoteMember(ctx, s)
	case plan.RemoveMember:
		return c.removeOneMember(ctx, s)
	case plan.MoveLeader:
		return c.moveLeader(ctx, s)
	case plan.AdvanceLog:
		return c.advanceLog(ctx, s)
	case plan.HoldImport:
		return c.holdImport(ctx)
	case plan.ReleaseImport:
		return c.releaseImport(ctx)
	case plan.EnableAuth:
		return c.enableAuth(ctx)
	case plan.DisableAuth:
		return c.disableAuth(ctx)
	case plan.ChangePassword:
		return c.changePassword(ctx)
	case plan.ServeData:
		return c.serveData(ctx, s)
	case plan.StoreSurvivor:
		return c.storeSurvivor(ctx, s)
	case plan.RestoreChosen:
		return c.restoreChosen(ctx, s)
	case plan.DeleteRestore:
		return c.deleteRestore(ctx, s)
	case plan.StopWrites:
		return c.stopWrites(ctx, s)
	case plan.ResumeWrites:
		return c.resumeWrites(ctx, s)
	case plan.LiftAlarms:
		return c.liftAlarms(ctx, s)
	}
	return nil
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
