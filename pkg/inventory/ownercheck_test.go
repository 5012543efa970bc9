// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/shell"
)

// The living MCPServers of the namespace are a, a-proxy and other; their UIDs are their names.
func owner(name string) inventory.Owner {
	return inventory.Owner{
		Server:  &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}},
		Backend: &metav1.ObjectMeta{UID: types.UID("set-of-" + name)},
		Living: func(uid types.UID) (string, bool) {
			return string(uid), uid == "a" || uid == "a-proxy" || uid == "other"
		},
	}
}

type option func(*metav1.ObjectMeta)

func object(options ...option) *metav1.ObjectMeta {
	made := &metav1.ObjectMeta{}
	for _, o := range options {
		o(made)
	}
	return made
}

func controlledBy(apiVersion, kind, name string, uid types.UID) option {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true)})
	}
}

func controlledByServer(name string, uid types.UID) option {
	return controlledBy("toolhive.stacklok.dev/v1beta1", "MCPServer", name, uid)
}

func from(uid string) option {
	return func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{v1beta1.AnnotationSource: uid + "/1"} }
}

func named(name string) option {
	return func(m *metav1.ObjectMeta) { m.Labels = render.ProxySelector(name) }
}

func writtenBy(manager string) option {
	return func(m *metav1.ObjectMeta) {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
	}
}

func TestAnObjectIsOfOneOwner(t *testing.T) {
	freehold, toolhive, plugin := writtenBy(managers.Service), writtenBy(managers.ToolHiveRunner), writtenBy(managers.Plugin)
	mine, nobodys := inventory.Verdict{Mine: true}, inventory.Verdict{}
	others := func(name string) inventory.Verdict { return inventory.Verdict{Other: name} }
	for name, c := range map[string]struct {
		kind schema.GroupKind
		is   *metav1.ObjectMeta
		want inventory.Verdict
	}{
		"the MCPServer controls it":              {managers.ServiceKind, object(controlledByServer("a-proxy", "a-proxy")), mine},
		"in the older version":                   {managers.ServiceKind, object(controlledBy("toolhive.stacklok.dev/v1alpha1", "MCPServer", "a-proxy", "a-proxy")), mine},
		"a predecessor controls it":              {managers.ServiceKind, object(controlledByServer("a-proxy", "gone")), mine},
		"another MCPServer controls it":          {managers.ServiceKind, object(controlledByServer("a", "a"), from("a-proxy"), named("a-proxy"), freehold), others("a")},
		"another kind's MCPServer controls it":   {managers.ServiceKind, object(controlledBy("example.com/v1", "MCPServer", "a-proxy", "x"), from("a-proxy")), nobodys},
		"a Deployment controls it":               {managers.ServiceKind, object(controlledBy("apps/v1", "Deployment", "a-proxy", "x"), named("a-proxy"), freehold), nobodys},
		"an owner that is no controller":         {managers.ServiceKind, object(func(m *metav1.ObjectMeta) { m.OwnerReferences = []metav1.OwnerReference{{UID: "x", Kind: "Team"}} }, from("a-proxy")), mine},
		"made from it":                           {managers.ServiceKind, object(from("a-proxy")), mine},
		"made from it, without managedFields":    {managers.Deployment, object(from("a-proxy"), named("a-proxy")), mine},
		"made from another":                      {managers.ServiceKind, object(from("a"), freehold), others("a")},
		"made from another, labels say this":     {managers.ServiceKind, object(from("a"), named("a-proxy"), freehold), others("a")},
		"an orphan of this one":                  {managers.ServiceKind, object(from("gone"), named("a-proxy"), freehold), mine},
		"an orphan without managedFields":        {managers.ServiceKind, object(from("gone"), named("a-proxy")), mine},
		"an orphan of another":                   {managers.ServiceKind, object(from("gone"), named("a"), freehold), others("a")},
		"an orphan of one that is gone as well":  {managers.ServiceKind, object(from("gone"), named("past"), freehold), others("past")},
		"an orphan that nobody can tell":         {managers.ServiceKind, object(from("gone"), freehold), nobodys},
		"an orphan of a kind without names":      {managers.Role, object(from("gone"), freehold), mine},
		"a RunConfig of another":                 {managers.ConfigMap, object(from("gone"), func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"toolhive.stacklok.io/mcp-server": "a"} }), others("a")},
		"written by Freehold, without a source":  {managers.ServiceKind, object(named("a-proxy"), freehold), mine},
		"of another, without a source":           {managers.ServiceKind, object(named("a"), freehold), others("a")},
		"a Role without a source":                {managers.Role, object(writtenBy(managers.Access)), mine},
		"a Role of somebody else":                {managers.Role, object(writtenBy("kubectl")), nobodys},
		"just an entry of Freehold's":            {managers.ServiceKind, object(freehold), nobodys},
		"just the labels":                        {managers.ServiceKind, object(named("a-proxy")), nobodys},
		"just a source that cannot be read":      {managers.ServiceKind, object(func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{v1beta1.AnnotationSource: "a-proxy"} }), nobodys},
		"ToolHive's, by its labels":              {managers.StatefulSet, object(named("a-proxy"), toolhive), mine},
		"ToolHive's, of another":                 {managers.ServiceKind, object(named("a"), toolhive), others("a")},
		"ToolHive's, of a kind without names":    {managers.Role, object(toolhive), nobodys},
		"ToolHive's, behind the StatefulSet":     {managers.ServiceKind, object(controlledBy("apps/v1", "StatefulSet", "a-proxy", "set-of-a-proxy"), named("a-proxy"), toolhive), mine},
		"half taken over":                        {managers.ServiceKind, object(controlledBy("apps/v1", "StatefulSet", "a-proxy", "set-of-a-proxy"), named("a-proxy"), freehold), mine},
		"half handed back":                       {managers.ServiceKind, object(controlledBy("apps/v1", "StatefulSet", "a-proxy", "set-of-a-proxy"), named("a-proxy"), plugin), mine},
		"half handed back, without a controller": {managers.ServiceKind, object(named("a-proxy"), plugin), mine},
		"half handed back, of another":           {managers.ServiceKind, object(named("a"), plugin), others("a")},
		"behind a StatefulSet of another":        {managers.ServiceKind, object(controlledBy("apps/v1", "StatefulSet", "a", "set-of-a"), named("a-proxy"), toolhive), nobodys},
		"nothing at all":                         {managers.ServiceKind, object(), nobodys},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, owner("a-proxy").Check(c.kind, c.is)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.want.Mine && !inventory.MayBelong(c.is) {
				t.Error("the caches would not keep it")
			}
		})
	}
}

// Whatever is written on an object, no two MCPServers own it, and who does not is told of who does.
func TestNoObjectBelongsToTwo(t *testing.T) {
	kinds := []schema.GroupKind{managers.ServiceKind, managers.Deployment, managers.ConfigMap}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "a-proxy", "past"})
		uid := rapid.SampledFrom([]string{"a", "a-proxy", "other", "gone"})
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		var options []option
		if rapid.Bool().Draw(t, "controlled") {
			who := name.Draw(t, "controller")
			options = append(options, controlledByServer(who, types.UID(who)))
		}
		if rapid.Bool().Draw(t, "sourced") {
			options = append(options, from(uid.Draw(t, "source")))
		}
		if rapid.Bool().Draw(t, "labelled") {
			options = append(options, named(name.Draw(t, "label")))
		}
		for _, manager := range []string{managers.Service, managers.Plugin, managers.ToolHiveOperator, "kubectl"} {
			if rapid.Bool().Draw(t, manager) {
				options = append(options, writtenBy(manager))
			}
		}
		is := object(options...)
		first, second := owner("a").Check(kind, is), owner("a-proxy").Check(kind, is)
		if first.Mine && second.Mine {
			t.Fatalf("%+v belongs to both", is)
		}
		if first.Mine && second.Other != "a" || second.Mine && first.Other != "a-proxy" {
			t.Fatalf("%+v: a is told %+v, a-proxy %+v", is, first, second)
		}
	})
}

func TestOnlyToolHivesKindIsAnMCPServer(t *testing.T) {
	for name, ref := range map[string]metav1.OwnerReference{
		"another group":        {APIVersion: "example.com/v1", Kind: "MCPServer"},
		"another kind":         {APIVersion: "toolhive.stacklok.dev/v1beta1", Kind: "MCPRegistry"},
		"no group":             {APIVersion: "v1", Kind: "MCPServer"},
		"no version at all":    {APIVersion: "toolhive.stacklok.dev/v1/v2", Kind: "MCPServer"},
		"a group that ends so": {APIVersion: "nottoolhive.stacklok.dev/v1", Kind: "MCPServer"},
	} {
		if inventory.IsMCPServer(ref) {
			t.Errorf("%s: taken for an MCPServer", name)
		}
	}
}

func TestExplainSaysWhoseAnObjectIsAndWhatToDo(t *testing.T) {
	ref := apply.NewObjectRef(managers.ServiceKind, "shop", "mcp-a-proxy")
	for name, c := range map[string]struct {
		verdict inventory.Verdict
		exists  bool
		want    string
	}{
		"nobody's":    {inventory.Verdict{}, false, "an object with that name exists, and it is not a child of this MCPServer; rename or delete one of them"},
		"another's":   {inventory.Verdict{Other: "a"}, true, "it belongs to MCPServer a: a child of each MCPServer has this name. Create one of the two again under another name"},
		"left behind": {inventory.Verdict{Other: "a"}, false, "MCPServer a, since deleted, left it behind. If it is no longer needed: kubectl delete -n shop service/mcp-a-proxy"},
	} {
		if got := c.verdict.Explain(ref, c.exists, shell.Kubectl); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
