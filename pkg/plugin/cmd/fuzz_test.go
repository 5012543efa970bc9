// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/request"
)

// FuzzFieldArguments: what a user names of contested fields, with a blank between arguments, is refused, or it is written so that the
// operator acts on the fields that the plugin has shown, and on no others. Fields is managedFields' form of what others hold.
func FuzzFieldArguments(f *testing.F) {
	const (
		spec  = `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{".":{},"f:image":{}}}}}}}`
		ports = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:targetPort":{}}}},"f:metadata":{"f:labels":{"f:example.com/a.b":{}}}}`
	)
	for _, arguments := range []string{
		"", ".spec.replicas", "deployment.apps/web:.spec", "kubectl-edit", "service/web:kubectl-edit", "helm .spec", ".spec .spec", ".spec.",
		`.spec.template.spec.containers[name="mcp"].image`, `.spec.ports[port=80,protocol="TCP"]`, ".a,.b", `.a["`, "deployment.apps/web:", "]",
	} {
		f.Add(arguments, spec, "kubectl-edit")
		f.Add(arguments, ports, "helm,x")
	}
	f.Fuzz(func(t *testing.T, line, fields, manager string) {
		set := &fieldpath.Set{}
		if manager == "" || set.FromJSON(strings.NewReader(fields)) != nil {
			t.Skip("no manager holds these")
		}
		owner := ownership.Owner{Manager: manager, Operation: "Update"}
		var all []desired.Contested
		for i, kind := range []string{managers.Deployment.Kind, managers.StatefulSet.Kind} {
			object := apply.ObjectRef{Kind: managers.Deployment}
			object.Kind.Kind, object.Name = kind, []string{"web", "web-0"}[i]
			set.Iterate(func(path fieldpath.Path) {
				all = append(all, desired.Contested{
					Object: object, Location: path.Copy(), Path: path.String(), Owners: []ownership.Owner{owner},
				})
			})
		}
		var arguments []string
		if line != "" {
			arguments = strings.Split(line, " ")
		}
		chosen, entries, err := choose(all, nil, arguments, "")
		if err != nil {
			if len(chosen)+len(entries) > 0 {
				t.Errorf("%q is refused with %v, and chooses %v", line, err, entries)
			}
			return
		}
		asked := request.New(request.Write(entries))
		if asked.Cut || len(asked.Malformed) > 0 || len(arguments) == 0 && !slices.EqualFunc(all, entries, exact) {
			return // The operator says so, or has fields with more around them to act on.
		}
		for _, c := range all {
			shown := slices.ContainsFunc(chosen, func(o desired.Contested) bool { return o.Selector() == c.Selector() })
			if got := asked.Owned(c.Object, c.Location, owner); got != shown {
				t.Errorf("of %q, written as %q, the plugin shows %s: %t, and the operator takes it: %t", line, asked.Text, c.Selector(), shown, got)
			}
		}
	})
}

// exact reports whether an entry is that of a contested field alone, as the operator reads it.
func exact(c desired.Contested, s request.Selector) bool {
	return s == c.Selector() && slices.Equal(request.New(s.String()).Entries, []request.Selector{s})
}
