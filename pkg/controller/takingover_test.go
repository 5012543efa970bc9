// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/turns"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func ofOperator() metav1.ManagedFieldsEntry {
	return entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, "v1", `{}`)
}

func oursOf(manager string) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationApply, "v1", `{}`)
}

// told gives an MCPServer the condition TakenOver.
func told(server *v1beta1.MCPServer, value metav1.ConditionStatus, reason string) {
	server.Status.Conditions = append(server.Status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionTakenOver, Status: value, Reason: reason, ObservedGeneration: server.Generation,
	})
}

// progressed gives an MCPServer a record of how far its takeover is.
func progressed(server *v1beta1.MCPServer, progress v1beta1.TakeoverProgress) {
	metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationTakeoverProgress, string(progress))
	server.ManagedFields = append(server.ManagedFields, oursOf(managers.Takeover))
}

// ofToolHive are workloads that ToolHive has made, whose gate is closed or open.
func ofToolHive(server *v1beta1.MCPServer, gate string) (*appsv1.Deployment, *appsv1.StatefulSet) {
	deployment := webProxy(server, func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{ofOperator()}
		d.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationGeneration: "1"}
	})
	set := webBackend(server, func(s *appsv1.StatefulSet) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{oursOf(managers.ToolHiveRunner)}
		s.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationGeneration: gate}
	})
	return deployment, set
}

func surveyed(v *observed.Snapshot) *takeoverState {
	t := &takeoverState{Snapshot: v, writers: managers.Registry().Writers}
	t.survey()
	return t
}

func TestAdmissionIsDecided(t *testing.T) {
	held := func(server *v1beta1.MCPServer) { server.ManagedFields = []metav1.ManagedFieldsEntry{ofOperator()} }
	for name, c := range map[string]struct {
		server func(*v1beta1.MCPServer)
		theirs bool
		mode   TakeoverMode
		want   admission
		reason string
	}{
		"ours":                        {mode: TakeoverOff, want: goesOn},
		"held, and nothing is made":   {server: held, mode: TakeoverAuto, want: needsTurn},
		"theirs":                      {server: held, theirs: true, mode: TakeoverAuto, want: needsTurn},
		"theirs, and off":             {server: held, theirs: true, mode: TakeoverOff, want: leftAlone},
		"theirs, off, something told": {server: func(s *v1beta1.MCPServer) { told(s, metav1.ConditionFalse, v1beta1.ReasonWaiting) }, theirs: true, mode: TakeoverOff, want: leftAlone, reason: v1beta1.ReasonTakeoverOff},
		"theirs, off, and that told":  {server: func(s *v1beta1.MCPServer) { told(s, metav1.ConditionFalse, v1beta1.ReasonTakeoverOff) }, theirs: true, mode: TakeoverOff, want: leftAlone},
		"theirs, not approved":        {theirs: true, mode: TakeoverManual, want: leftAlone, reason: v1beta1.ReasonNeedsApproval},
		"theirs, approved": {server: func(s *v1beta1.MCPServer) {
			s.Annotations = map[string]string{v1beta1.AnnotationTakeover: v1beta1.TakeoverApproved}
		}, theirs: true, mode: TakeoverManual, want: needsTurn},
		"begun, and off since": {server: func(s *v1beta1.MCPServer) { progressed(s, v1beta1.TakeoverUnderWay) }, theirs: true, mode: TakeoverOff, want: takesOver},
		"begun, all is taken":  {server: func(s *v1beta1.MCPServer) { progressed(s, v1beta1.TakeoverUnderWay) }, mode: TakeoverOff, want: takesOver},
		"begun, not told yet": {server: func(s *v1beta1.MCPServer) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{oursOf(managers.Finalizer)}
		}, theirs: true, mode: TakeoverOff, want: takesOver},
		"taken over, written again": {server: func(s *v1beta1.MCPServer) { progressed(s, v1beta1.TakeoverDone) }, theirs: true, mode: TakeoverOff, want: goesOn},
		"told to be under way":      {server: func(s *v1beta1.MCPServer) { told(s, metav1.ConditionFalse, v1beta1.ReasonTakingOver) }, theirs: true, mode: TakeoverManual, want: leftAlone, reason: v1beta1.ReasonNeedsApproval},
		"told to be done":           {server: func(s *v1beta1.MCPServer) { told(s, metav1.ConditionTrue, v1beta1.ReasonTakenOver) }, theirs: true, mode: TakeoverAuto, want: needsTurn},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			if c.server != nil {
				c.server(server)
			}
			v := sees(server)
			if c.theirs {
				deployment, set := ofToolHive(server, "2")
				v = sees(server, deployment, set)
			}
			got, reason, message := surveyed(v).admit(c.mode)
			if got != c.want || reason != c.reason || (reason == "") != (message == "") {
				t.Errorf("admission %d because of %q: %s; want %d because of %q", got, reason, message, c.want, c.reason)
			}
		})
	}
}

// With a closed gate the proxy goes first, with an open one the backend.
func TestTurnOfObjectIsDecided(t *testing.T) {
	server := newServer("web")
	role := apply.NewObjectRef(managers.Role, "shop", "web-proxy-runner")
	binding := apply.NewObjectRef(managers.RoleBinding, "shop", "web-proxy-runner")
	for name, c := range map[string]struct {
		gate   string
		change func(d *appsv1.Deployment, s *appsv1.StatefulSet)
		pods   []*workload.Pod
		// waits are the objects that wait, of the Deployment, the StatefulSet, the Role and its binding.
		waits []bool
	}{
		"closed":                    {"2", nil, nil, []bool{false, true, true, true}},
		"open":                      {"1", nil, nil, []bool{true, false, true, true}},
		"closed, an old pod lives":  {"2", renewed, []*workload.Pod{workload.PodOf(oldProxyPod("web"))}, []bool{false, true, true, true}},
		"closed, all are new":       {"2", renewed, []*workload.Pod{workload.PodOf(proxyPod("web", nil))}, []bool{false, false, false, false}},
		"the backend taken, ready":  {"2", func(_ *appsv1.Deployment, s *appsv1.StatefulSet) { takenOf(s, 1) }, nil, []bool{false, true, true, true}},
		"the backend taken, rolls":  {"2", func(_ *appsv1.Deployment, s *appsv1.StatefulSet) { takenOf(s, 0) }, nil, []bool{true, true, true, true}},
		"open, an old pod is apart": {"1", renewed, nil, []bool{true, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment, set := ofToolHive(server, c.gate)
			if c.change != nil {
				c.change(deployment, set)
			}
			v := sees(server, deployment, set)
			v.Pods[deployment.UID], v.Pods[set.UID] = c.pods, []*workload.Pod{workload.PodOf(backendPod(server, "uid"))}
			for i, ref := range []apply.ObjectRef{webDeployment, v.StatefulSetRef(), role, binding} {
				if why := waitsFor(v, ref); (why != "") != c.waits[i] {
					t.Errorf("%s waits for %q", ref, why)
				}
			}
		})
	}
	deployment, set := ofToolHive(server, "2")
	renewed(deployment, set)
	v := sees(server, deployment, set)
	v.Ask = &outskirts{unplaced: []*workload.Pod{workload.PodOf(oldProxyPod("web"))}}
	if waitsFor(v, v.StatefulSetRef()) == "" {
		t.Error("the backend does not wait for a pod that has outlived its ReplicaSet")
	}
}

func renewed(d *appsv1.Deployment, _ *appsv1.StatefulSet) { d.Spec.Template.Annotations = nil }

func takenOf(s *appsv1.StatefulSet, ready int32) {
	s.ManagedFields = append(s.ManagedFields, oursOf(managers.Backend))
	s.Status.ReadyReplicas = ready
}

func TestInheritanceIsDecided(t *testing.T) {
	runner := ownership.Owner{Manager: managers.ToolHiveRunner}
	for name, c := range map[string]struct {
		manager  string
		gate     string
		intruded bool
		object   apply.ObjectRef
		held     bool
		inherits bool
	}{
		"an object that nobody has made":   {manager: managers.Service, gate: "2", object: apply.NewObjectRef(managers.ServiceKind, "shop", "mcp-web")},
		"the main writer of one of theirs": {manager: managers.Proxy, gate: "2", object: webDeployment, inherits: true},
		"its number is not the main one":   {manager: managers.ProxyReplicas, gate: "2", object: webDeployment},
		"it is not its turn":               {manager: managers.Proxy, gate: "1", object: webDeployment, held: true},
		"a binding":                        {manager: managers.Access, gate: "2", object: apply.NewObjectRef(managers.RoleBinding, "shop", "web-proxy-runner")},
		"a binding, and ToolHive works":    {manager: managers.Access, gate: "2", intruded: true, object: apply.NewObjectRef(managers.RoleBinding, "shop", "web-proxy-runner"), held: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			deployment, set := ofToolHive(server, c.gate)
			over := surveyed(sees(server, deployment, set, childOf(server, "web-proxy-runner", &rbacv1.RoleBinding{})))
			over.intruded = c.intruded
			req := apply.Request{Object: c.object}
			held := over.inherit(c.manager, &req)
			if held != c.held || (req.Inherit != nil) != c.inherits {
				t.Errorf("held is %t, inherits %+v", held, req.Inherit)
			}
			if waits := len(over.waiting) > 0; waits != (c.held && !c.intruded) {
				t.Errorf("told to wait: %q", over.waiting)
			}
			if c.inherits && !req.Inherit.From(runner) {
				t.Error("it inherits nothing from ToolHive's runner")
			}
		})
	}
}

// The status of an MCPServer is left to ToolHive where that still works on the children.
func TestStatusIsInheritedOnce(t *testing.T) {
	server := newServer("web")
	server.ManagedFields = []metav1.ManagedFieldsEntry{ofOperator()}
	server.ManagedFields[0].Subresource = "status"
	for name, c := range map[string]struct {
		intruded, reporting, inherits, yields bool
	}{
		"the MCPServer is left as it is": {},
		"the status is written":          {reporting: true, inherits: true},
		"ToolHive works on the children": {intruded: true, reporting: true, yields: true},
	} {
		over := surveyed(sees(server))
		over.intruded, over.reporting = c.intruded, c.reporting
		req := statusRequest(over, nil)
		if (req.Inherit != nil) != c.inherits || (req.Yield != nil) != c.yields {
			t.Errorf("%s: inherits %t, yields %t", name, req.Inherit != nil, req.Yield != nil)
		}
	}
}

func TestProgressAndSlotAreDecided(t *testing.T) {
	passing, lasting := refusalOf(apply.ClassTransient), refusalOf(apply.ClassConflict)
	for name, c := range map[string]struct {
		record  v1beta1.TakeoverProgress
		theirs  bool
		change  func(over *takeoverState)
		refused []error
		status  metav1.ConditionStatus
		message string
		slot    slotUse
	}{
		"ours":                           {slot: slotReleased},
		"waiting for its turn":           {theirs: true, change: func(o *takeoverState) { o.queued = true }, status: metav1.ConditionFalse, message: "has yet to take over", slot: slotKept},
		"some are left":                  {theirs: true, change: isUnderWay, status: metav1.ConditionFalse, message: "has yet to take over", slot: slotHeld},
		"two wait":                       {theirs: true, change: func(o *takeoverState) { isUnderWay(o); o.waiting = []string{"a", "b"} }, status: metav1.ConditionFalse, message: "a (+1 more objects)", slot: slotHeld},
		"a refusal that passes":          {theirs: true, change: isUnderWay, refused: []error{&passing}, status: metav1.ConditionFalse, message: "has yet to", slot: slotHeld},
		"a refusal that stands":          {theirs: true, change: isUnderWay, refused: []error{&passing, &lasting}, status: metav1.ConditionFalse, message: "has yet to", slot: slotSuspended},
		"nothing can be rendered":        {theirs: true, change: func(o *takeoverState) { isUnderWay(o); o.unrendered = true }, status: metav1.ConditionFalse, message: "has yet to", slot: slotSuspended},
		"all were taken":                 {record: v1beta1.TakeoverDone, change: isUnderWay, status: metav1.ConditionTrue, message: "has taken over every", slot: slotReleased},
		"all were taken, one is refused": {record: v1beta1.TakeoverDone, change: isUnderWay, refused: []error{&passing}, status: metav1.ConditionTrue, message: "has taken over every", slot: slotHeld},
		"the end is not recorded":        {record: v1beta1.TakeoverUnderWay, change: isUnderWay, refused: []error{&lasting}, status: metav1.ConditionFalse, message: "has yet to record", slot: slotSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			if c.record != "" {
				progressed(server, c.record)
			}
			v := sees(server)
			if c.theirs {
				deployment, set := ofToolHive(server, "2")
				v = sees(server, deployment, set)
			}
			over := surveyed(v)
			if c.change != nil {
				c.change(over)
			}
			if got := over.useOfSlot(c.refused); got != c.slot {
				t.Errorf("the slot is %d, want %d", got, c.slot)
			}
			found := over.progress()
			if c.status == "" {
				if found != nil {
					t.Errorf("told %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Status != c.status || !strings.Contains(found[0].Message, c.message) {
				t.Errorf("told %v, want %s with %q", found, c.status, c.message)
			}
		})
	}
}

func isUnderWay(o *takeoverState) { o.underWay = true }

// What is left to do is counted: objects of ToolHive's, and pods to be replaced.
func TestTakeoverProgressIsCounted(t *testing.T) {
	server := newServer("web")
	deployment, set := ofToolHive(server, "2")
	v := sees(server, deployment, set, oldProxyPod("web"), proxyPod("web", nil))
	v.Pods[set.UID] = []*workload.Pod{workload.PodOf(backendPod(server, "uid"))}
	if got, want := progressOfTakeover(v), (turns.Progress{Generation: 1, Untaken: 2, Outdated: 1}); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	if !slices.Equal(toolHiveManagers(v), []string{managers.ToolHiveOperator, managers.ToolHiveRunner}) {
		t.Errorf("managers %v", toolHiveManagers(v))
	}
}
