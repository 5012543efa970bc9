// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Every writer of a child is its main writer, or counts its replicas: what is taken over has an heir, whatever it is.
func TestEveryKindHasAnHeir(t *testing.T) {
	writers := managers.Registry().Writers()
	for _, w := range writers {
		if w.Name == managers.Ownership {
			continue
		}
		heirs := takeover.Heirs(writers, apply.ObjectRef{Kind: w.Kind}, managers.ProxyReplicas, managers.BackendReplicas)
		if len(heirs) == 0 || heirs[0].APIVersion == "" {
			t.Errorf("the heirs of a %s are %+v", w.Kind, heirs)
		}
	}
}

// The number of replicas passes to nobody unless there is a number to write; conditions of any type pass to ours.
func TestReplicasPassToNobodyWithoutANumber(t *testing.T) {
	covered := func(ref apply.ObjectRef, path fieldpath.Path, replicas ...string) (by string) {
		for _, heir := range takeover.Heirs(managers.Registry().Writers(), ref, replicas...) {
			if heir.Covers(path) {
				by += heir.Manager
			}
		}
		return by
	}
	deployment, server := apply.ObjectRef{Kind: managers.Deployment}, apply.ObjectRef{Kind: managers.MCPServer}
	config, group := apply.ObjectRef{Kind: v1beta1.Kind(v1beta1.MCPToolConfigKind)}, apply.ObjectRef{Kind: v1beta1.Kind(v1beta1.MCPGroupKind)}
	finalizer := fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(v1beta1.FinalizerToolConfig))
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	condition := fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", "Odd"), "reason")
	for name, c := range map[string]struct{ got, want string }{
		"no number":           {covered(deployment, replicas), ""},
		"a number":            {covered(deployment, replicas, managers.ProxyReplicas), managers.ProxyReplicas},
		"a template":          {covered(deployment, fieldpath.MakePathOrDie("spec", "template")), managers.Proxy},
		"a condition":         {covered(server, condition), managers.Status},
		"the conditions":      {covered(server, fieldpath.MakePathOrDie("status", "conditions")), ""},
		"the finalizers":      {covered(server, fieldpath.MakePathOrDie("metadata", "finalizers")), ""},
		"a finalizer":         {covered(config, finalizer), managers.ConfigFinalizer},
		"a hash":              {covered(config, fieldpath.MakePathOrDie("status", "configHash")), managers.ConfigStatus},
		"an old field":        {covered(config, fieldpath.MakePathOrDie("status", "referenceCount")), managers.ConfigStatus},
		"a config's":          {covered(config, condition), managers.ConfigStatus},
		"all of a config":     {covered(config, fieldpath.MakePathOrDie("status", "conditions")), ""},
		"members":             {covered(group, fieldpath.MakePathOrDie("status", "servers")), managers.GroupStatus},
		"an annotation of it": {covered(server, fieldpath.MakePathOrDie("metadata", "annotations", "a")), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s passes to %q, want %q", name, c.got, c.want)
		}
	}
}

func TestWhatToolHiveStillHoldsIsUntaken(t *testing.T) {
	ref := apply.ObjectRef{Kind: managers.StatefulSet}
	theirs := metav1.ManagedFieldsEntry{Manager: managers.ToolHiveRunner, Operation: metav1.ManagedFieldsOperationApply}
	ours := metav1.ManagedFieldsEntry{Manager: managers.Backend, Operation: metav1.ManagedFieldsOperationApply}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nobody's": {nil, false}, "ToolHive's": {[]metav1.ManagedFieldsEntry{theirs}, true},
		"ours": {[]metav1.ManagedFieldsEntry{ours}, false}, "of both": {[]metav1.ManagedFieldsEntry{theirs, ours}, false},
	} {
		if got := takeover.Untaken(ref, &metav1.ObjectMeta{ManagedFields: c.entries}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAGateIsClosedByANumberAboveOne(t *testing.T) {
	for value, closed := range map[string]bool{
		"": false, "x": false, "-3": false, "0": false, "1": false, "2": true, "9223372036854775807": true, "9223372036854775808": false,
	} {
		if got := takeover.Closed(takeover.Gate(value)); got != closed {
			t.Errorf("gate %q is closed: %t", value, got)
		}
	}
}

// by is an entry of managedFields.
func by(manager string, operation metav1.ManagedFieldsOperationType, subresource string, at *metav1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, Time: at}
}

func TestProgressIsWhatFreeholdHasRecorded(t *testing.T) {
	const applies, updates = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	ours := by(managers.Takeover, applies, "", nil)
	for name, c := range map[string]struct {
		value string
		entry metav1.ManagedFieldsEntry
		want  v1beta1.TakeoverProgress
	}{
		"under way":            {"UnderWay", ours, v1beta1.TakeoverUnderWay},
		"done":                 {"Done", ours, v1beta1.TakeoverDone},
		"none":                 {"", ours, ""},
		"no such value":        {"done", ours, ""},
		"of another":           {"Done", by("kubectl-annotate", updates, "", nil), ""},
		"of another's updates": {"Done", by(managers.Takeover, updates, "", nil), ""},
		"of the status":        {"Done", by(managers.Takeover, applies, "status", nil), ""},
		"of another of ours":   {"Done", by(managers.Status, applies, "status", nil), ""},
	} {
		server := &metav1.ObjectMeta{
			Annotations: map[string]string{v1beta1.AnnotationTakeoverProgress: c.value}, ManagedFields: []metav1.ManagedFieldsEntry{c.entry},
		}
		if got := takeover.Progress(server); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if begun := takeover.Begun(server); begun != (c.want == v1beta1.TakeoverUnderWay) {
			t.Errorf("%s: begun is %t", name, begun)
		}
	}
	if !takeover.Begun(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{by(managers.Finalizer, applies, "", nil)}}) {
		t.Error("Freehold owns the finalizer, and has not begun")
	}
}

// Without a record the ages of the children and of Freehold's claim to the MCPServer decide.
func TestChildrenAreDue(t *testing.T) {
	const applies, updates = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	at := func(second int64) *metav1.Time { return new(metav1.Unix(1000+second, 0)) }
	child := func(entry metav1.ManagedFieldsEntry, second int64) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{CreationTimestamp: *at(second), ManagedFields: []metav1.ManagedFieldsEntry{entry}}
	}
	theirs, ours := by(managers.ToolHiveOperator, updates, "", nil), by(managers.Backend, applies, "", nil)
	claimed := []metav1.ManagedFieldsEntry{by(managers.Finalizer, applies, "", at(0))}
	timeless := []metav1.ManagedFieldsEntry{by(managers.Finalizer, applies, "", nil)}
	deployment, set := apply.ObjectRef{Kind: managers.Deployment}, apply.ObjectRef{Kind: managers.StatefulSet}
	for name, c := range map[string]struct {
		record  v1beta1.TakeoverProgress
		entries []metav1.ManagedFieldsEntry
		// theirs is when ToolHive's Deployment was created, and ours when Freehold's StatefulSet was.
		theirs, ours int64
		due, was     bool
	}{
		"nothing was begun":      {theirs: 1, ours: -1, due: true},
		"under way":              {record: v1beta1.TakeoverUnderWay, entries: claimed, theirs: 1, ours: -1, due: true, was: true},
		"done":                   {record: v1beta1.TakeoverDone, entries: claimed, theirs: -1, ours: -1, was: true},
		"begun without a record": {entries: claimed, theirs: -1, ours: -1, due: true, was: true},
		"ToolHive came back":     {entries: claimed, theirs: 1, ours: -1, was: true},
		"Freehold made it":       {entries: claimed, theirs: 1, ours: 0, due: true},
		"the claim has no time":  {entries: timeless, theirs: 1, ours: -1, due: true},
	} {
		server := &metav1.ObjectMeta{ManagedFields: c.entries}
		if c.record != "" {
			server.Annotations = map[string]string{v1beta1.AnnotationTakeoverProgress: string(c.record)}
			server.ManagedFields = append(slices.Clone(c.entries), by(managers.Takeover, applies, "", nil))
		}
		untaken, taken := child(theirs, c.theirs), child(ours, c.ours)
		children := func(yield func(apply.ObjectRef, metav1.Object) bool) {
			_ = yield(deployment, untaken) && yield(set, taken)
		}
		if due := takeover.IsDue(server, children, deployment, untaken); due != c.due {
			t.Errorf("%s: due is %t", name, due)
		}
		if takeover.IsDue(server, children, set, taken) {
			t.Errorf("%s: Freehold's is due", name)
		}
		if was := takeover.WasTaken(server, children); was != c.was {
			t.Errorf("%s: a takeover shows: %t", name, was)
		}
		if intruders := takeover.Intruders(server, children, deployment, untaken); len(intruders) > 0 == c.due {
			t.Errorf("%s: intruders %v", name, intruders)
		}
	}
}

// Freehold's finalizers have the names of ToolHive's, so only managedFields tell them apart.
func TestAnObjectShowsWhetherToolHiveWorks(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	for name, c := range map[string]struct {
		finalizer string
		entries   []metav1.ManagedFieldsEntry
		want      bool
	}{
		"a user's":                   {"example.com/hold", []metav1.ManagedFieldsEntry{by("kubectl", update, "", nil)}, false},
		"ToolHive's status":          {"", []metav1.ManagedFieldsEntry{by(managers.ToolHiveOperator, update, "status", nil)}, true},
		"an MCPServer of Freehold":   {v1beta1.Finalizer, []metav1.ManagedFieldsEntry{by(managers.Finalizer, apply, "", nil)}, false},
		"a config of Freehold":       {v1beta1.FinalizerToolConfig, []metav1.ManagedFieldsEntry{by(managers.ConfigFinalizer, apply, "", nil)}, false},
		"a config that both write":   {v1beta1.FinalizerToolConfig, []metav1.ManagedFieldsEntry{by(managers.ConfigFinalizer, apply, "", nil), by(managers.ToolHiveOperator, update, "status", nil)}, true},
		"an MCPServer from a backup": {v1beta1.Finalizer, nil, true},
		"a config from a backup":     {v1beta1.FinalizerToolConfig, nil, true},
	} {
		object := &v1beta1.MCPToolConfig{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{c.finalizer}, ManagedFields: c.entries}}
		if got := takeover.Shows(object); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if takeover.Shows("no object") {
		t.Error("a text shows it")
	}
}
