// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
)

func TestARequestIsReadUpToItsBounds(t *testing.T) {
	entries := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(".spec.a%d", i))
		}
		return strings.Join(all, ",")
	}
	long := "." + strings.Repeat("x", request.MaxBytes/2)
	for name, test := range map[string]struct {
		text string
		want int
		cut  bool
	}{
		"none":                            {"", 0, false},
		"as many as are read":             {entries(request.MaxEntries), request.MaxEntries, false},
		"one more":                        {entries(request.MaxEntries + 1), request.MaxEntries, true},
		"ten thousand":                    {entries(10000), request.MaxEntries, true},
		"few, but long":                   {long + "," + long + "x,.spec", 1, true},
		"a single one that is too long":   {long + long + long, 0, true},
		"quotes that are never closed":    {`.a["` + strings.Repeat("x", request.MaxBytes), 0, true},
		"blanks beyond what is looked at": {".spec" + strings.Repeat(" ", request.MaxBytes), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := request.New(test.text)
			if len(r.Entries) != test.want || r.Cut != test.cut || len(r.Malformed) > 0 {
				t.Errorf("%d entries, cut: %t, malformed %q; want %d, %t", len(r.Entries), r.Cut, r.Malformed, test.want, test.cut)
			}
			if answer := request.AnswerTo(v1beta1.AnnotationTake, test.text); len(answer) > 400 {
				t.Errorf("the answer begins with %d bytes", len(answer))
			}
		})
	}
}

func TestMalformedEntriesAreReadApart(t *testing.T) {
	r := request.New(`.spec, .c], deployment.apps/web:, .d[name="x, .e`)
	if diff := cmp.Diff([]request.Selector{{Path: ".spec"}}, r.Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if want := []string{".c]", "deployment.apps/web:", `.d[name="x, .e`}; !slices.Equal(want, r.Malformed) {
		t.Errorf("malformed: %q", r.Malformed)
	}
	for _, entry := range []string{".a[b", ".c]", ".a[]", ".", ".a.", `.a[b="c]`, "deployment.apps/web:", "a\x01b"} {
		if r := request.New(entry); len(r.Malformed) != 1 || len(r.Entries) != 0 || r.Empty() {
			t.Errorf("%q is read as %+v", entry, r.Entries)
		}
	}
	for _, entry := range []string{
		".spec.replicas", `.a[name="]\""].b`, `.a[=1]`, `.a[b[c,d],e]`, ".metadata.annotations.a/b.c", "kubectl-edit", "system:node",
	} {
		if r := request.New(entry); len(r.Malformed) != 0 || len(r.Entries) != 1 {
			t.Errorf("%q is taken for malformed", entry)
		}
	}
}

// Two requests that begin alike are answered in other words, and so is one that is longer than what is quoted.
func TestAnswersAreApart(t *testing.T) {
	long := strings.Repeat(".spec.template ", 20)
	answers := []string{
		request.AnswerTo(v1beta1.AnnotationTake, ".spec"), request.AnswerTo(v1beta1.AnnotationTake, ".spe"), request.AnswerTo(v1beta1.AnnotationYield, ".spec"),
		request.AnswerTo(v1beta1.AnnotationTake, long+"a"), request.AnswerTo(v1beta1.AnnotationTake, long+"b"),
	}
	for i, a := range answers {
		for j, b := range answers {
			if i != j && strings.HasPrefix(a, b) {
				t.Errorf("%q also answers %q", a, b)
			}
		}
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	object := apply.ObjectRef{Kind: managers.Deployment}
	object.Name = "web"
	owner := ownership.Owner{Manager: "helm", Operation: "Apply", Since: time.Unix(100, 0)}
	r := request.Record{Request: request.Digest(".spec"), Took: `.spec of deployment.apps/web from "helm"`}
	for range 2 {
		if !r.Add(request.ClaimID(object, owner)) || len(r.Claims) != 1 {
			t.Errorf("claims %q", r.Claims)
		}
	}
	again := request.ReadRecord(r.String())
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if !again.IsOf(".spec") || again.IsOf(".spe") || (request.Record{}).IsOf("") || request.ReadRecord("nonsense").IsOf("nonsense") {
		t.Error("it is about another request")
	}
	for name, other := range map[string]ownership.Owner{
		"another manager":  {Manager: "hel", Operation: "Apply", Since: owner.Since},
		"a later claim":    {Manager: "helm", Operation: "Apply", Since: owner.Since.Add(time.Second)},
		"another entry":    {Manager: "helm", Operation: "Update", Since: owner.Since},
		"a subresource":    {Manager: "helm", Operation: "Apply", Subresource: "scale", Since: owner.Since},
		"one without time": {Manager: "helm", Operation: "Apply"},
	} {
		if r.Has(request.ClaimID(object, other)) {
			t.Errorf("%s is in the record", name)
		}
	}
	for i := range 2 * request.MaxClaims {
		r.Add(fmt.Sprint(i))
	}
	if len(r.Claims) != request.MaxClaims || len(r.String()) > 2048 {
		t.Errorf("%d claims in %d bytes", len(r.Claims), len(r.String()))
	}
}

func TestAPathIsDividedIntoItsElements(t *testing.T) {
	for path, want := range map[string][]string{
		".spec.replicas": {".spec", ".replicas"},
		`.spec.template.spec.containers[name="mcp.x"].env[name="A]\"["].value`: {
			".spec", ".template", ".spec", ".containers", `[name="mcp.x"]`, ".env", `[name="A]\"["]`, ".value",
		},
		".metadata.annotations.example.com/a.b":            {".metadata", ".annotations", ".example.com/a.b"},
		".spec.template.spec.nodeSelector.kubernetes.io/x": {".spec", ".template", ".spec", ".nodeSelector", ".kubernetes.io/x"},
		".data.runconfig.json":                             {".data", ".runconfig.json"},
		`.metadata.finalizers[="a.b/c"]`:                   {".metadata", ".finalizers", `[="a.b/c"]`},
		`.spec.ports[port=80,protocol="TCP"].name`:         {".spec", ".ports", `[port=80,protocol="TCP"]`, ".name"},
	} {
		if diff := cmp.Diff(want, request.Elements(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestEntriesFitUpToTheBounds(t *testing.T) {
	entries := func(n int, path string) (entries []request.Selector) {
		for i := range n {
			entries = append(entries, request.Selector{Path: fmt.Sprint(path, i)})
		}
		return entries
	}
	for name, test := range map[string]struct {
		entries []request.Selector
		want    bool
	}{
		"as many as are read": {entries(request.MaxEntries, ".spec.a"), true},
		"one more":            {entries(request.MaxEntries+1, ".spec.a"), false},
		"few, but long":       {entries(2, "."+strings.Repeat("x", request.MaxBytes/2)), false},
	} {
		if got := request.Fits(test.entries); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What gets another alternative from another manager, such as a variable another source, is settled as a whole.
func TestAnAlternativeIsSettledAsAWhole(t *testing.T) {
	const container = `.spec.template.spec.containers[name="toolhive"]`
	const variable = container + `.env[name="A"]`
	gate := strings.Replace(variable, `"A"`, `"THV_MCPSERVER_GENERATION"`, 1)
	proxy := apply.NewObjectRef(managers.Deployment, "shop", "web")
	for _, test := range []struct {
		path    string
		removed bool
		want    string
		leaves  bool
	}{
		{variable + ".valueFrom.secretKeyRef", true, variable, true},
		{variable + ".value", true, variable, true},
		{variable + ".value", false, variable + ".value", true},
		{gate + ".valueFrom.fieldRef", true, gate, false},
		{variable + ".valueFrom.secretKeyRef", false, variable + ".valueFrom.secretKeyRef", true},
		{container + ".livenessProbe.tcpSocket.port", true, container + ".livenessProbe", true},
		{container + ".lifecycle.preStop.sleep", true, container + ".lifecycle.preStop", true},
		{`.spec.template.spec.volumes[name="data"].emptyDir`, true, `.spec.template.spec.volumes[name="data"]`, true},
		{`.spec.template.spec.volumes[name="authz-config"].emptyDir`, true, `.spec.template.spec.volumes[name="authz-config"]`, false},
		{container + `.ports[containerPort=8080,protocol="TCP"].name`, true, container + `.ports[containerPort=8080,protocol="TCP"]`, false},
		{container + `.ports[containerPort=8080,protocol="TCP"]`, true, container + `.ports[containerPort=8080,protocol="TCP"]`, false},
		{container + `.ports[containerPort=8080,protocol="TCP"].name`, false, container + `.ports[containerPort=8080,protocol="TCP"].name`, true},
		{`.spec.ports[port=8080,protocol="TCP"].name`, true, `.spec.ports[port=8080,protocol="TCP"]`, false},
		{".spec.template.metadata.annotations.env.example.com/a", true, ".spec.template.metadata.annotations.env.example.com/a", true},
		{".spec.template.metadata.labels.env", true, ".spec.template.metadata.labels.env", true},
		{".spec.strategy.rollingUpdate", true, ".spec.strategy.rollingUpdate", true},
	} {
		if got := request.Settling(test.path, test.removed); got != test.want {
			t.Errorf("a conflict about %s is settled by %s, want %s", test.path, got, test.want)
		}
		if got := request.YieldableBy(proxy, test.path, test.removed); got != test.leaves {
			t.Errorf("%s can be left to others: %t", test.path, got)
		}
	}
}

// A request that is made anew has another text than those that are spent, and the same entries, whatever they are.
func TestARequestMadeAnewHasAnotherTextAndTheSameEntries(t *testing.T) {
	for _, text := range []string{".spec", "a, .b", ".a[b"} {
		spent := []string{text, "," + text}
		anew := request.Anew(text, func(text string) bool { return slices.Contains(spent, text) })
		if want := ",," + text; anew != want {
			t.Errorf("%q is made anew as %q, want %q", text, anew, want)
		}
		if diff := cmp.Diff(request.Read(text), request.Read(anew)); diff != "" {
			t.Errorf("%q has other entries (-want +got):\n%s", anew, diff)
		}
		if same := request.Anew(text, func(string) bool { return false }); same != text {
			t.Errorf("%q, which is not spent, is made anew as %q", text, same)
		}
	}
}
