// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

var kubernetes = applyconfigurations.NewTypeConverter(scheme.Scheme)

// entry is one of managedFields: "manager" or "manager/subresource", and what it owns.
type entry struct{ who, fields string }

// object reads an object and gives it managedFields.
func object(t testing.TB, text string, entries ...entry) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	// As a client reads it: whole numbers are int64.
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	var managed []metav1.ManagedFieldsEntry
	for _, e := range entries {
		manager, subresource, _ := strings.Cut(e.who, "/")
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: o.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(e.fields),
			Time: &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		})
	}
	o.SetManagedFields(managed)
	return o
}

// lines is a report in a short form: the owners of each line, and the line. An owner from an atomic field above has a *
// before it.
func lines(r *fieldowners.Report) string {
	var out strings.Builder
	for _, line := range r.Lines {
		var who []string
		for _, i := range r.OwnersOf(line) {
			star := ""
			if r.Fields[line.Fields[len(line.Fields)-1]].Whole != "" {
				star = "*"
			}
			who = append(who, star+r.Entries[i].Manager)
		}
		if len(who) == 0 {
			who = []string{map[fieldowners.State]string{
				fieldowners.Container: "", fieldowners.Unowned: "-", fieldowners.Unownable: "api",
			}[r.Fields[line.Fields[len(line.Fields)-1]].State]}
		}
		fmt.Fprintf(&out, "%-8s| %s\n", strings.Join(who, " "), line.Text)
	}
	return out.String()
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: u
  labels: {a: "1", example.com/b: "2", c: "3"}
  finalizers: [example.com/x, example.com/y]
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    spec:
      nodeSelector: {zone: a}
      terminationGracePeriodSeconds: 30
      volumes: [{name: tmp, emptyDir: {}}]
      containers:
      - name: one
        args: [--a, "--b=1"]
        env:
        - {name: X, value: "line 1\nline 2"}
        - {name: "Y", value: ""}
        ports:
        - {containerPort: 80, protocol: TCP}
        - {containerPort: 80, protocol: UDP}
      - name: two
        image: i
status:
  replicas: 3
`

var deploymentEntries = []entry{
	{"app", `{"f:metadata":{"f:labels":{"f:a":{},"f:example.com/b":{}},"f:finalizers":{"v:\"example.com/x\"":{}}},
		"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:nodeSelector":{},
		"f:volumes":{"k:{\"name\":\"tmp\"}":{".":{},"f:name":{},"f:emptyDir":{}}},
		"f:containers":{"k:{\"name\":\"one\"}":{".":{},"f:name":{},"f:args":{},
		"f:env":{"k:{\"name\":\"X\"}":{".":{},"f:name":{},"f:value":{}}},
		"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`},
	{"two", `{"f:metadata":{"f:labels":{".":{},"f:a":{}},"f:finalizers":{".":{},"v:\"example.com/y\"":{}}},
		"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"one\"}":{
		"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}}}}}}`},
	{"hpa/scale", `{"f:spec":{"f:replicas":{}}}`},
	{"kcm/status", `{"f:status":{"f:replicas":{}}}`},
}

// Every kind of path: fields of structs and maps, items of lists by one key and by several, of sets, atomic maps and
// lists, a field owned itself and by its parts, several owners, none, and a value of several lines.
const deploymentLines = `api     | apiVersion: apps/v1
api     | kind: Deployment
        | metadata:
two     |   finalizers:
app     |   - example.com/x
two     |   - example.com/y
two     |   labels:
app two |     a: "1"
-       |     c: "3"
app     |     example.com/b: "2"
api     |   name: web
api     |   uid: u
        | spec:
hpa     |   replicas: 3
app     |   selector:
*app    |     matchLabels:
*app    |       app: web
        |   template:
        |     spec:
        |       containers:
app     |       - args:
*app    |         - --a
*app    |         - --b=1
        |         env:
app     |         - name: X
app     |           value: |-
app     |             line 1
app     |             line 2
-       |         - name: "Y"
-       |           value: ""
app     |         name: one
two     |         ports:
app     |         - containerPort: 80
-       |           protocol: TCP
two     |         - containerPort: 80
two     |           protocol: UDP
-       |       - image: i
-       |         name: two
app     |       nodeSelector:
*app    |         zone: a
-       |       terminationGracePeriodSeconds: 30
        |       volumes:
app     |       - emptyDir: {}
app     |         name: tmp
        | status:
kcm     |   replicas: 3
`

func TestALineTellsAFieldAndItsOwners(t *testing.T) {
	for name, schema := range map[string]managedfields.TypeConverter{"with a schema": kubernetes, "without": nil} {
		t.Run(name, func(t *testing.T) {
			o := object(t, deployment, deploymentEntries...)
			before := o.DeepCopy()
			report, err := fieldowners.New(o, schema)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(deploymentLines, lines(report)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("the object was modified:\n%s", diff)
			}
			if report.Ref() != "deployment.apps/web" {
				t.Errorf("it is called %s", report.Ref())
			}
		})
	}
}

// A struct that was owned while it was empty, and that the API server has filled since, is no atomic one. Only the
// schema knows.
func TestAStructThatWasEmptyIsNotAtomic(t *testing.T) {
	const text = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  strategy: {type: Recreate}
`
	owned := entry{"app", `{"f:spec":{"f:strategy":{}}}`}
	report, err := fieldowners.New(object(t, text, owned), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(report); !strings.Contains(got, "app     |   strategy:\n-       |     type: Recreate\n") {
		t.Errorf("with a schema:\n%s", got)
	}
	if report, err = fieldowners.New(object(t, text, owned), nil); err != nil {
		t.Fatal(err)
	}
	if got := lines(report); !strings.Contains(got, "*app    |     type: Recreate\n") {
		t.Errorf("without:\n%s", got)
	}
}

// Of a kind that no schema knows, lists are told by who owns what of them.
func TestListsOfAnUnknownKindAreToldByTheirOwners(t *testing.T) {
	const text = `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec:
  atomic: [{name: x, size: 1}]
  byName: [{name: x, size: 1}, {name: "y", size: 2.5}]
  numbers: [1, 2, true]
  "": empty
`
	report, err := fieldowners.New(object(t, text, entry{"app", `{"f:spec":{"f:atomic":{},
		"f:byName":{"k:{\"name\":\"y\"}":{".":{},"f:name":{},"f:size":{}}},"f:numbers":{"v:2":{},"v:true":{}}}}`}), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	want := `        | spec:
-       |   "": empty
app     |   atomic:
*app    |   - name: x
*app    |     size: 1
        |   byName:
-       |   - name: x
-       |     size: 1
app     |   - name: "y"
app     |     size: 2.5
        |   numbers:
-       |   - 1
app     |   - 2
app     |   - true
`
	if _, got, _ := strings.Cut(lines(report), "name: a\n"); got != want {
		t.Errorf("lines (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestAnObjectWithoutManagedFieldsHasNoOwners(t *testing.T) {
	report, err := fieldowners.New(object(t, deployment), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Fields {
		if f.State == fieldowners.Owned || len(f.Owners) > 0 {
			t.Errorf("%s has owners %v", f.Path, f.Owners)
		}
		if f.Leaf && f.State == fieldowners.Container {
			t.Errorf("%s is a %s", f.Path, f.State)
		}
	}
}

func TestUnreadableManagedFieldsAreAnError(t *testing.T) {
	if _, err := fieldowners.New(object(t, deployment, entry{"app", `{"k:{":{}}`}), kubernetes); err == nil || !strings.Contains(err.Error(), `"app"`) {
		t.Errorf("error %v, want one that names the manager", err)
	}
}

func TestEachManagerIsOnASide(t *testing.T) {
	for who, want := range map[string]fieldowners.Side{
		"freehold-proxy": fieldowners.Freehold, "freehold-status/status": fieldowners.Freehold,
		"kubectl-edit": fieldowners.User, "kubectl/scale": fieldowners.User, "helm": fieldowners.User, "argocd-controller": fieldowners.User,
		"thv-operator": fieldowners.User, "somebody": fieldowners.User, "kubectl-freehold": fieldowners.User,
		"kube-controller-manager/status": fieldowners.System, "kube-scheduler": fieldowners.System, "kubelet/status": fieldowners.System,
		// A HorizontalPodAutoscaler is set up by a user.
		"kube-controller-manager/scale": fieldowners.User,
		"before-first-apply":            fieldowners.System,
	} {
		manager, subresource, _ := strings.Cut(who, "/")
		if got := fieldowners.SideOf(ownership.Owner{Manager: manager, Subresource: subresource}); got != want {
			t.Errorf("%s is on the side %s, want %s", who, got, want)
		}
	}
}
