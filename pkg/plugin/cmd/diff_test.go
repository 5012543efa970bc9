// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// deny refuses requests of the plugin about some kinds, by their verbs.
func (w *world) deny(kinds []schema.GroupKind, verbs ...string) {
	refused := apiserver.Refuse(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("simulated")))
	w.before = func(r *apiserver.Request) *apiserver.Answer {
		if r.Kind != nil && slices.Contains(kinds, r.Kind.GroupKind()) && slices.Contains(verbs, r.Verb) {
			return &refused
		}
		return nil
	}
}

// ConfigMaps that the user may not list, or not read, are left out, and the Deployment is compared with the UIDs of ConfigMaps that it has.
func TestADiffLeavesOutConfigMapsThatCannotBeRead(t *testing.T) {
	for name, verbs := range map[string][]string{
		"no right":                     {"get", "list", "apply"},
		"no right but that to get":     {"list", "apply"},
		"no right but that to list":    {"get", "apply"},
		"the operator's rights to try": {"get", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.deny([]schema.GroupKind{managers.ConfigMap}, verbs...)
			out, errOut := w.must(ExitFailed, "diff", "web", known)
			if out != "No differences in what could be looked at.\n" || !strings.Contains(errOut, "you may not read configmap/web-runconfig") {
				t.Errorf("it says\n%s%s", out, errOut)
			}
			if !slices.Contains(verbs, "list") {
				return // What is not listed is not there, and is shown as new.
			}
			w.apply("helm", serverRef, content{"spec": content{"proxyPort": int64(8081)}})
			out, errOut = w.must(ExitFound, "diff", "web", known)
			if !strings.Contains(out, "+++ deployment.apps/web by freehold-proxy") || strings.Contains(out, "configmap/") ||
				strings.Contains(out, "-        "+v1beta1.AnnotationConfigUIDs) {
				t.Errorf("it shows\n%s%s", out, errOut)
			}
		})
	}
}

// To find nothing in what the user may read is no all-clear, and the exit code says so. What is found there is found.
func TestNothingFoundInPartIsNoAllClear(t *testing.T) {
	workloads := []schema.GroupKind{managers.Deployment, managers.StatefulSet}
	var configs []schema.GroupKind
	for _, config := range managers.Configs() {
		configs = append(configs, config.GroupKind())
	}
	for name, test := range map[string]struct {
		args   []string
		refers bool
		hidden []schema.GroupKind
		says   string
	}{
		"diff":              {args: []string{"diff", "web"}, hidden: workloads, says: "you may not read deployment.apps/web"},
		"conflicts":         {args: []string{"conflicts", "web"}, hidden: workloads, says: "you may not read deployment.apps/web"},
		"take":              {args: []string{"take", "web", "--yes"}, hidden: workloads, says: "you may not read deployment.apps/web"},
		"yield":             {args: []string{"yield", "web", "--yes"}, hidden: workloads, says: "you may not read deployment.apps/web"},
		"what others name":  {args: []string{"conflicts"}, hidden: configs, says: "you may not list mcpoidcconfigs"},
		"what it refers to": {args: []string{"diff", "web"}, refers: true, hidden: configs, says: "and of what it reads, is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if test.refers {
				w.apply("helm", serverRef, content{"spec": content{"oidcConfigRef": content{"name": "corp", "audience": "web"}}})
			}
			w.deny(test.hidden, "get", "list")
			out, errOut := w.must(ExitFailed, append(test.args, known)...)
			if !strings.Contains(out, "in what could be looked at.") || !strings.Contains(errOut, test.says) || !strings.Contains(errOut, "not everything could be looked at") {
				t.Errorf("it says\n%s%s", out, errOut)
			}
		})
	}
}

// For programs it is in the answer what could not be looked at. What is found decides on the exit code.
func TestConflictsFoundInPartSayWhatIsMissing(t *testing.T) {
	w := newWorld(t, nil)
	w.deny([]schema.GroupKind{managers.StatefulSet}, "get")
	expect := func(code, servers int) {
		t.Helper()
		out, _ := w.must(code, "conflicts", "-o", "json", known)
		found := decode[printers.Conflicts](t, out)
		want := []string{"statefulset.apps/web in namespace shop: you may not read it"}
		if diff := cmp.Diff(want, found.NotChecked); diff != "" || len(found.Servers) != servers {
			t.Errorf("it finds %v (-want +got):\n%s", found.Servers, diff)
		}
	}
	expect(ExitFailed, 0)
	w.contest(otherImage)
	expect(ExitFound, 1)
}

// With -A diff looks at each MCPServer of the cluster; programs read what it found.
func TestADiffOfAllIsForProgramsToo(t *testing.T) {
	w := newWorld(t, nil)
	out, _ := w.must(ExitDone, "diff", "-A", known, "-o", "json")
	if found := decode[printers.Differences](t, out); len(found.Differences) > 0 || found.Any() {
		t.Errorf("without a difference it prints %s", out)
	}
	w.apply("helm", serverRef, content{"spec": content{"proxyPort": int64(8081)}})
	out, _ = w.must(ExitFound, "diff", "-A", known, "-o", "json")
	found := decode[printers.Differences](t, out)
	if len(found.Differences) == 0 {
		t.Fatalf("it prints %s", out)
	}
	for _, d := range found.Differences {
		if d.Namespace != "shop" || d.Server != "web" || d.Writer == "" || !strings.HasPrefix(d.Diff, "--- "+d.Object) {
			t.Errorf("it finds %+v", d)
		}
	}
	shown, _ := w.must(ExitFound, "diff", "web", known)
	if len(shown) == 0 || !strings.Contains(shown, found.Differences[0].Diff[:40]) {
		t.Errorf("people read\n%s", shown)
	}
	if code, _, errOut := w.run("diff", "web", "-A", known); code != ExitFailed || !strings.Contains(errOut, "not both") {
		t.Errorf("with a name and -A it ends with %d: %s", code, errOut)
	}
}
