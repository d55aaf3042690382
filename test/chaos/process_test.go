//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import corev1 "k8s.io/api/core/v1"

const (
	etcdKilled     = "etcd killed"
	operatorKilled = "operator killed"
)

var processFaults = []fault{
	{name: etcdKilled, strike: func(s *storm, c *target, member *corev1.Pod) { s.killEtcd(c, member) }},
	{name: "etcd suspended", fits: replicated, strike: func(s *storm, c *target, member *corev1.Pod) {
		c.StopMember(member)
		s.hold(5, 40)
		c.ContinueMember(member)
	}},
	{name: "pod deleted", calm: true, fits: outlivesAPod, strike: func(s *storm, _ *target, member *corev1.Pod) { s.n.DeletePod(member) }},
	{name: operatorKilled, strike: func(s *storm, _ *target, _ *corev1.Pod) { s.killOperator() }},
}

// killEtcd and killOperator take back that they strike where nothing runs to be killed.
func (s *storm) killEtcd(c *target, member *corev1.Pod) {
	if err := c.TryCrashMember(member); err != nil {
		s.missed(etcdKilled, err.Error())
	}
}

func (s *storm) killOperator() {
	if err := s.n.TryCrashOperator(); err != nil {
		s.missed(operatorKilled, err.Error())
	}
}

// briefly strikes with a fault that takes no data and is over at once.
func (s *storm) briefly() {
	if s.rand.IntN(2) == 0 {
		s.tell(operatorKilled, "meanwhile")
		s.killOperator()
		return
	}
	c := pick(s.rand, s.targets)
	if ready := c.ready(); len(ready) > 0 {
		member := pick(s.rand, ready)
		s.tell(etcdKilled, "meanwhile: "+member.Name+" of "+c.Name)
		s.killEtcd(c, member)
	}
}

// hinderOperator applies a rule to what the operator sends, for a while.
func (s *storm) hinderOperator(name, rule string) {
	operator := s.n.Operator()
	if operator == nil {
		s.missed(name, "no operator is ready")
		return
	}
	release := s.n.Hinder(operator, pause, rule)
	s.hold(5, 60)
	release()
}
