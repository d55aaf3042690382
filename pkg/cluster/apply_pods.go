// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// createPods creates the pods of a step at the same time. While the API server refuses some, it
// creates them one after the other. Each new pod joins after those before it, and is useless
// without them. A member that returns to its volume needs no other.
func (c *Cluster) createPods(ctx context.Context, s plan.CreatePods) error {
	if i := slices.IndexFunc(s.Pods, func(p manifest.MemberPod) bool { return p.Seed }); i >= 0 {
		if err := c.stillBootstrapping(ctx, s.Pods[i]); err != nil {
			return fmt.Errorf("bootstrap with %s: %w", s.Pods[i].Name, err)
		}
	}
	created := make([]*corev1.Pod, len(s.Pods))
	errs := make([]error, len(s.Pods))
	var making sync.WaitGroup
	for i, p := range s.Pods {
		if p.Seed {
			p.Token = uuid.NewString()
		}
		create := func() {
			errs[i] = watchdog.Guard(func() (err error) {
				created[i], err = c.createPod(ctx, p)
				return err
			})
		}
		// A new pod can join only after those before it. If the operator dies between two writes, the
		// first pod must exist: the next operator deletes the others.
		if first := i == 0 && !p.Rejoins; !first && c.refused.Why == "" {
			making.Go(create)
			continue
		}
		if create(); errs[i] != nil && c.refused.Why != "" && !p.Rejoins {
			break
		}
	}
	making.Wait()
	err := errors.Join(errs...)
	c.podsEnded(err)
	for i, pod := range created {
		if pod == nil {
			continue
		}
		if pod.DeletionTimestamp != nil {
			// It existed before, and the cache hides it without its labels.
			err = errors.Join(err, fmt.Errorf("create pod %s, which is still being deleted: %w", pod.Name, c.unhide(ctx, pod)))
			continue
		}
		c.podWrites.record(pod, c.cfg.Clock.Now())
		if s.Pods[i].Seed {
			c.notices.memberAdded(s.Pods[i].Name)
		}
	}
	return err
}

// stillBootstrapping asks the API server itself whether the cluster waits for this seed. The
// record is not always from the same pass. An outdated record must not start an empty cluster
// beside one with data, nor a seed on another backup than the current one.
func (c *Cluster) stillBootstrapping(ctx context.Context, seed manifest.MemberPod) error {
	latest, err := c.latest(ctx)
	if err != nil {
		return err
	}
	st := latest.Status
	if st.Phase != api.ClusterPhaseCreating || !slices.Equal(st.Members.Unready, []string{seed.Name}) {
		return c.adopt(latest)
	}
	if seed.Source != nil && seed.Source.Copy != nil {
		if latest.DeletionTimestamp != nil || !latest.Status.Import.Copies() || latest.Status.Import.CommitDate == "" {
			return c.adopt(latest)
		}
		return nil
	}
	if source, err := api.SeedBackupOf(latest); err != nil || manifest.SourceDigest(source) != manifest.SourceDigest(seed.Source) {
		return fmt.Errorf("the annotation %s was changed: %w", api.RestoreAnnotation, errors.Join(errSuperseded, err))
	}
	return nil
}

func (c *Cluster) createPod(ctx context.Context, p manifest.MemberPod) (*corev1.Pod, error) {
	pod, err := c.podOf(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.Seed {
		if err := c.dropUnboundVolume(ctx, p); err != nil {
			return nil, err
		}
	}
	if p.Volume && !p.Rejoins {
		// A volume costs money. If no pod uses it, the operator deletes it again.
		err := c.tryPod(ctx, pod)
		if err == nil {
			err = c.createVolume(ctx, p)
		}
		switch {
		case refused(err):
			return nil, &podRefusedError{p.Name, err}
		case err != nil:
			return nil, err
		}
	}
	if p.Rejoins {
		if err := c.opensVolume(ctx, p); err != nil {
			return nil, err
		}
	}
	pods := c.cfg.Kube.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Another instance of the operator has just created it.
		created, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(created, c.obj) {
			return nil, podOfOthers(pod.Name)
		}
	}
	switch {
	case refused(err):
		return nil, &podRefusedError{pod.Name, err}
	case err != nil:
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return created, nil
}

func (c *Cluster) deletePod(ctx context.Context, s plan.DeletePod) error {
	if s.Creating {
		latest, err := c.latest(ctx)
		if err != nil {
			return fmt.Errorf("delete pod %s: %w", s.Name, err)
		}
		if latest.Status.Phase != api.ClusterPhaseCreating {
			return c.adopt(latest)
		}
	}
	pods := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace)
	only := metav1.NewUIDPreconditions(string(s.UID))
	if s.Seen != "" {
		only.ResourceVersion = &s.Seen
	}
	err := pods.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: only})
	if apierrors.IsConflict(err) && s.Seen != "" {
		// The next pass judges the pod that the API server has. The cache may be behind for long.
		if live, readErr := pods.Get(ctx, s.Name, metav1.GetOptions{}); readErr == nil && live.UID == s.UID {
			c.podWrites.record(live, c.cfg.Clock.Now())
		}
		return fmt.Errorf("delete pod %s: %w: %w", s.Name, errCacheBehind, err)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	c.writeEnded(deletionOfPod(s.Name), err)
	if err != nil {
		return wrap(err, "%s", deletionOfPod(s.Name))
	}
	c.deleted[s.UID] = c.cfg.Clock.Now()
	if s.HeldUp {
		c.postponed.put(severalPods, c.cfg.Clock.Now().Add(joinSinglyTime))
	}
	return nil
}

// deletionOfPod names the deletion of a pod.
func deletionOfPod(name string) string { return "delete pod " + name }

// changeOfImage names any change of a pod's image.
func changeOfImage(pod string) string { return "change the image of pod " + pod }

// setVersion changes the image of a pod in place: the kubelet restarts etcd with its data.
func (c *Cluster) setVersion(ctx context.Context, s plan.SetVersion) error {
	err := c.changeVersion(ctx, s)
	c.writeEnded(changeOfImage(s.Pod), err)
	return err
}

// changeVersion does it. The UID ensures that it is the pod of the plan.
func (c *Cluster) changeVersion(ctx context.Context, s plan.SetVersion) error {
	asked := manifest.Image(&c.obj.Spec, s.To, c.literalTags)
	if why := c.postponed.refusal(imageOf(s.Pod, asked), c.cfg.Clock.Now()); why != "" {
		return errors.New(why)
	}
	if s.Volume != "" {
		if err := c.setVolumeVersion(ctx, plan.SetVolumeVersion{Name: s.Pod, UID: s.Volume, Version: s.To}); err != nil {
			return fmt.Errorf("note %s on the volume of pod %s: %w", s.To, s.Pod, err)
		}
	}
	annotations := map[string]string{manifest.VersionAnnotation: s.To, manifest.PreviousVersionAnnotation: s.Previous, manifest.ImageAnnotation: asked}
	if before, err := c.cfg.Pods.Pods(c.obj.Namespace).Get(s.Pod); err == nil && before.UID == s.UID {
		annotations[manifest.ReplacedAnnotation] = manifest.Replaced(before)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.UID, "annotations": annotations},
		"spec": map[string]any{
			"containers": []map[string]string{{"name": manifest.EtcdContainer, "image": asked}},
		},
	})
	if err != nil {
		return fmt.Errorf("patch of pod %s: %w", s.Pod, err)
	}
	pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.Pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		err = fmt.Errorf("set version of pod %s to %s: %w", s.Pod, s.To, err)
		if refused(err) {
			return c.imageRefused(ctx, s, asked, err)
		}
		return err
	}
	c.podWrites.record(pod, c.cfg.Clock.Now())
	p := manifest.PodStateOf(pod)
	if p.Admitted != s.Admitted && (p.Started || !p.BadImage) { // a first start is no restart
		c.restarting[pod.UID] = p.Restarts
	}
	if s.From != s.To && p.Admitted != asked && sameImage(p.Admitted, s.Admitted) {
		return c.imageKept(ctx, s, asked)
	}
	c.notices.memberUpgraded(s)
	return nil
}

// podOf builds the pod of a member, with the marks that identify it later.
func (c *Cluster) podOf(ctx context.Context, p manifest.MemberPod) (*corev1.Pod, error) {
	p.LiteralTag = c.literalTags
	if c.cfg.ReservedIDs != nil {
		var err error
		if p.Reserved, err = c.cfg.ReservedIDs(ctx, c.obj.Namespace); err != nil {
			return nil, err
		}
	}
	pod, err := manifest.BuildPod(c.obj, p, c.certForms, c.cfg.OperatorImage)
	if err != nil {
		return nil, fmt.Errorf("build pod %s: %w", p.Name, err)
	}
	made, err := c.template()
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, manifest.PodTemplateAnnotation, made.Pod)
	if !p.Volume {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, manifest.VolumeTemplateAnnotation, made.Volume)
	}
	manifest.RememberMetadata(c.obj, pod)
	manifest.RememberImage(pod)
	return pod, nil
}

// updateOf names the creation of pods of a template.
func updateOf(t manifest.Template) string { return "pods of " + t.Pod }

// asOwner names the creation of a pod as the user of its data.
func asOwner(pod string, owner manifest.Owner) string {
	return "pod " + pod + " as user " + owner.String()
}

// returning is the pod of a member that returns to its volume.
func returning(name, version string, owner manifest.Owner) manifest.MemberPod {
	return manifest.MemberPod{Name: name, Version: version, Volume: true, Rejoins: true, Owner: owner}
}

// recyclePod deletes a pod so that the operator recreates it. It first asks whether the API
// server would accept the new pod: the operator does not give up a working pod for a refused
// one.
func (c *Cluster) recyclePod(ctx context.Context, s plan.RecyclePod) error {
	if accepted, err := c.tryReturn(ctx, returning(s.Name, s.Version, s.Owner)); !accepted {
		return err
	}
	if err := c.deletePod(ctx, plan.DeletePod{Name: s.Name, UID: s.UID, Seen: s.Seen, Why: s.Why}); err != nil {
		return err
	}
	c.notices.memberUpdated(s)
	if s.Owner.Known { // this counts only if the new pod can't read its data either
		c.postponed.putRefused(asOwner(s.Name, s.Owner), "the operator has just recreated the pod as that user: if it runs as another one again, allow the user in the webhook or policy that sets users",
			c.cfg.Clock.Now().Add(specRefusedPause))
	}
	return nil
}

// tryReturn asks whether the API server would accept the pod of a member that returns to its volume. If
// not, it delays the next attempt, and the status reports the refusal.
func (c *Cluster) tryReturn(ctx context.Context, p manifest.MemberPod) (accepted bool, err error) {
	pod, err := c.podOf(ctx, p)
	if err != nil {
		return false, err
	}
	made, err := c.template()
	if err != nil {
		return false, err
	}
	what, why := updateOf(made), ""
	if p.Owner.Known {
		what, why = asOwner(p.Name, p.Owner), "Kubernetes refuses a pod of that user: allow the user, or give the data to the one as whom the pod runs (chown): "
	}
	err = c.tryPod(ctx, pod)
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		// The old pod frees its share of the quota.
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		c.postponed.putRefused(what, why+err.Error(), c.cfg.Clock.Now().Add(specRefusedPause))
		return false, nil
	default:
		return false, err
	}
	c.postponed.accepted(what)
	return true, nil
}

// tryPod asks the API server whether it would accept a pod. An existing pod of that name is no
// objection, because the API server checks everything else before.
func (c *Cluster) tryPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.cfg.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return nil // a webhook has side effects: only a real pod shows its answer
	}
	return wrap(err, "try pod %s", pod.Name)
}
