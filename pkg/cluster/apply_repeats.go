// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// repeatsWindow and mostRepeats bound how often the operator begins the same write. Failed
// requests stay below that bound, because each pass that fails delays the next one.
const (
	repeatsWindow = time.Minute
	mostRepeats   = 20
)

// errRepeats means that the operator pauses a write that it has begun too often.
var errRepeats = fmt.Errorf("the operator has begun this step %d times within %s, and the step is still necessary: something undoes it or hides its result", mostRepeats, repeatsWindow)

// repeats holds when each write to the API server began, within repeatsWindow. A state that no
// step changes must not cost a write in each pass.
type repeats map[string][]time.Time

// begin counts an attempt at a step. It returns errRepeats if too many precede it.
func (r repeats) begin(s plan.Step, now time.Time) error {
	over := func(at time.Time) bool { return at.After(now) || now.Sub(at) >= repeatsWindow }
	maps.DeleteFunc(r, func(_ string, begun []time.Time) bool { return over(begun[len(begun)-1]) })
	if !writesObjects(s) {
		return nil
	}
	name := attempted(s)
	begun := slices.DeleteFunc(r[name], over)
	if len(begun) >= mostRepeats {
		r[name] = begun
		return errRepeats
	}
	r[name] = append(begun, now)
	return nil
}

// attempted names what a step writes, without the reason: while its result is hidden, the reason may
// change.
func attempted(s plan.Step) string {
	create, ok := s.(plan.CreatePods)
	if !ok {
		name, _, _ := strings.Cut(s.String(), ": ")
		return name
	}
	names := make([]string, len(create.Pods))
	for i, p := range create.Pods {
		names[i] = p.Name
	}
	return "create pods " + strings.Join(names, ", ")
}

// writesObjects reports whether a step writes to the API server. Members refuse a change that
// comes too early, and cheaply: such a step may be tried each second.
func writesObjects(s plan.Step) bool {
	switch s.(type) {
	case plan.CreateService, plan.UpdateService, plan.DeleteService, plan.CreateBudget, plan.UpdateBudget, plan.DeleteBudget,
		plan.CreatePods, plan.DeletePod, plan.SetVersion, plan.RecyclePod, plan.SetMetadata, plan.NoteMember,
		plan.DeleteVolume, plan.ExpandVolume, plan.SetVolumeVersion, plan.SetVolumeOwner,
		plan.HoldImport, plan.ReleaseImport,
		plan.ServeData, plan.StoreSurvivor, plan.RestoreChosen, plan.DeleteRestore:
		return true
	}
	return false
}
