// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/shelltest"
)

// The command that stops an operator calls kubectl and nothing else, whatever its Deployment is called.
func TestPrintedStopTakesNothingForAProgram(t *testing.T) {
	for _, text := range shelltest.Hostile() {
		s := &search{Product: ToolHive, client: &Client{}}
		s.deployment(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "-n" + text, Name: text, Labels: map[string]string{v1beta1.LabelAppName: ToolHive.label},
		}})
		want := [][]string{{"scale", "-n", "-n" + text, "deployment/" + text, "--replicas=0"}}
		if diff := cmp.Diff(want, shelltest.Calls(t, s.found[0].Stop)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.found[0].Stop, diff)
		}
	}
}

// installation is an API server with Deployments, pods and Leases.
type installation struct {
	deployments []appsv1.Deployment
	pods        []corev1.Pod
	leases      []coordinationv1.Lease
}

func (i installation) serve(r *http.Request) (int, any) {
	switch r.URL.Path {
	case "/apis/apps/v1/deployments":
		return http.StatusOK, appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}, Items: i.deployments}
	case "/api/v1/pods":
		return http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: i.pods}
	}
	return http.StatusOK, coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}, Items: i.leases}
}

// podOf is the specification of an operator's pod.
func podOf(args ...string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: operatorContainer, Image: "example.com/freehold:v1", Args: args}}}
}

func (i *installation) deploy(name string, replicas int32, args ...string) {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Freehold.namespace, Name: name}}
	d.Spec.Replicas, d.Status.Replicas, d.Spec.Template.Spec = &replicas, replicas, podOf(args...)
	i.deployments = append(i.deployments, d)
}

// run adds a pod that a ReplicaSet has created, or nothing that is known if the name is empty.
func (i *installation) run(name, replicaSet, hash string, args ...string) *corev1.Pod {
	pod := corev1.Pod{Spec: podOf(args...), ObjectMeta: metav1.ObjectMeta{
		Namespace: Freehold.namespace, Name: name, Labels: map[string]string{v1beta1.LabelAppName: Freehold.label},
	}}
	if replicaSet != "" {
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, UID: "u", Controller: new(true)}}
	}
	i.pods = append(i.pods, pod)
	return &i.pods[len(i.pods)-1]
}

func (i *installation) hold(namespace, name string, renewed time.Time) {
	at := metav1.NewMicroTime(renewed)
	i.leases = append(i.leases, coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("laptop_1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &at},
	})
}

// A Deployment accounts for its own pods, and an operator for its own Lease. Other operators of the namespace show all the same.
func TestOtherOperatorsShowBesideADeployment(t *testing.T) {
	const rest, inA = "--mcpserver-selector=shard notin (a)", "--mcpserver-selector=shard=a"
	const leaseOfA = "--leader-elect-resource-name=freehold-a"
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		do   func(i *installation)
		want []string
	}{
		"pods of Deployments": {func(i *installation) {
			i.deploy("freehold", 2, rest)
			i.deploy("freehold-a", 1, inA, leaseOfA)
			i.run("freehold-5d8f7c-x", "freehold-5d8f7c", "5d8f7c", rest)
			i.run("freehold-a-6f9d-x", "freehold-a-6f9d", "6f9d", inA, leaseOfA)
			i.run("freehold-a-77aa-x", "freehold-a-77aa", "77aa", inA, leaseOfA) // of another revision
		}, []string{"deployment.apps/freehold", "deployment.apps/freehold-a"}},
		"a shard that is on its way out": {func(i *installation) {
			i.deploy("freehold", 2, rest)
			i.deploy("freehold-a", 0, inA, leaseOfA)
			at := metav1.NewTime(now)
			i.run("freehold-a-6f9d-x", "freehold-a-6f9d", "6f9d", inA, leaseOfA).DeletionTimestamp = &at
			i.run("freehold-a-6f9d-y", "freehold-a-6f9d", "6f9d", inA, leaseOfA).DeletionTimestamp = &at // One replica stands for all.
		}, []string{"deployment.apps/freehold", "pod/freehold-a-6f9d-x shard=a"}},
		"the first operator is on its way out": {func(i *installation) {
			i.deploy("freehold", 0, rest)
			i.deploy("freehold-a", 2, inA, leaseOfA)
			i.run("freehold-5d8f7c-x", "freehold-5d8f7c", "5d8f7c", rest)
		}, []string{"deployment.apps/freehold-a", "pod/freehold-5d8f7c-x shard notin (a)"}},
		"a Deployment whose name begins like that of another": {func(i *installation) {
			i.deploy("freehold", 2, rest)
			i.run("freehold-a-6f9d-x", "freehold-a-6f9d", "6f9d", inA)
		}, []string{"deployment.apps/freehold", "pod/freehold-a-6f9d-x shard=a"}},
		"a pod without a controller": {func(i *installation) {
			i.deploy("freehold", 2, rest)
			i.run("mine", "", "", inA)
		}, []string{"deployment.apps/freehold", "pod/mine shard=a"}},
		"a Lease of the Deployment": {func(i *installation) {
			i.deploy("freehold", 2)
			i.hold(Freehold.namespace, Freehold.lease, now)
		}, []string{"deployment.apps/freehold"}},
		"a Lease of a pod": {func(i *installation) {
			i.run("mine", "", "")
			i.hold(Freehold.namespace, Freehold.lease, now)
		}, []string{"pod/mine "}},
		"a Lease of no operator that was found": {func(i *installation) {
			i.deploy("freehold-a", 2, inA, leaseOfA)
			i.hold(Freehold.namespace, Freehold.lease, now)
		}, []string{"deployment.apps/freehold-a", "lease.coordination.k8s.io/freehold "}},
		"a Lease of another namespace": {func(i *installation) {
			i.deploy("freehold", 2, "--leader-elect-resource-namespace=leases")
			i.hold("leases", Freehold.lease, now)
		}, []string{"deployment.apps/freehold"}},
		"a Lease that a pod of the Deployment had before": {func(i *installation) {
			i.deploy("freehold", 2, "--leader-elect-resource-name=other")
			i.run("freehold-5d8f7c-x", "freehold-5d8f7c", "5d8f7c")
			i.hold(Freehold.namespace, Freehold.lease, now)
			i.leases[0].Spec.HolderIdentity = new("freehold-5d8f7c-x_6c5b8e20")
		}, []string{"deployment.apps/freehold"}},
		"a Lease that is not renewed": {func(i *installation) { i.hold(Freehold.namespace, Freehold.lease, now.Add(-time.Minute)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := &installation{}
			test.do(i)
			found, unseen, err := clientOf(t, i.serve).Running(Freehold, now)
			if err != nil || len(unseen) > 0 {
				t.Fatalf("error %v, unseen %q", err, unseen)
			}
			var got []string
			for _, r := range found {
				if r.Deployment() == "" {
					r.Object += " " + r.Selector
				}
				got = append(got, r.Object)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoLeaseWasRenewedANegativeTimeAgo(t *testing.T) {
	i, now := &installation{}, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	i.hold(Freehold.namespace, Freehold.lease, now.Add(time.Hour))
	found, _, err := clientOf(t, i.serve).Running(Freehold, now)
	if err != nil || len(found) != 1 || !strings.HasSuffix(found[0].How, "renewed it 0s ago") {
		t.Errorf("it finds %+v, error %v", found, err)
	}
}

// A container is an operator's by the program that it runs, or by its image. A word among the arguments of another program is none.
func TestAnOperatorsContainerIsKnownByItsProgramOrImage(t *testing.T) {
	for name, test := range map[string]struct {
		product       Product
		image         string
		command, args []string
		want          bool
	}{
		"a command":                       {product: Freehold, command: []string{"/usr/bin/freehold", "--v=2"}, want: true},
		"a command, and arguments":        {product: ToolHive, command: []string{"/thv-operator"}, args: []string{"--leader-elect"}, want: true},
		"arguments alone":                 {product: ToolHive, args: []string{"/ko-app/thv-operator"}, want: true},
		"an image":                        {product: Freehold, image: "example.com/freehold@sha256:0", args: []string{"--v=2"}, want: true},
		"a namespace of another program":  {product: Freehold, args: []string{"logs", "-f", "-n", "freehold-system", "deployment/freehold"}},
		"an argument of another program":  {product: ToolHive, command: []string{"/bin/ship"}, args: []string{"/var/log/thv-operator"}},
		"a later word of another command": {product: Freehold, command: []string{"/bin/ship", "freehold"}},
		"first of a command's arguments":  {product: Freehold, command: []string{"/bin/ship"}, args: []string{"freehold"}},
		"a flag":                          {product: Freehold, args: []string{"--name=/freehold"}},
		"another image":                   {product: Freehold, image: "example.com/freehold/shipper:v1"},
		"nothing":                         {product: Freehold},
	} {
		container := &corev1.Container{Name: "main", Image: test.image, Command: test.command, Args: test.args}
		if why := test.product.shownBy(container); (why != "") != test.want {
			t.Errorf("%s: it is %s's operator since %q, want %v", name, test.product.Name, why, test.want)
		}
	}
}

func TestToolHivesDeploymentAccountsForItsLease(t *testing.T) {
	i := &installation{}
	i.deploy("thv", 1)
	i.deployments[0].Spec.Template.Spec.Containers[0].Image = "example.com/toolhive/operator:v1"
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	i.hold(Freehold.namespace, ToolHive.lease, now)
	found, _, err := clientOf(t, i.serve).Running(ToolHive, now)
	if err != nil || len(found) != 1 || found[0].Object != "deployment.apps/thv" {
		t.Errorf("it finds %+v, error %v", found, err)
	}
}
