// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/workload"
)

const (
	wantedConfig  = "web-runconfig-0123456789abcdef"
	earlierConfig = "web-runconfig-fedcba9876543210"
)

// reads makes a pod read ConfigMaps.
func reads(configs ...string) (pod corev1.PodSpec) {
	for _, name := range configs {
		pod.Volumes = append(pod.Volumes, configMapVolume(name, name))
	}
	return pod
}

// What no pod uses, and none can come to use, goes; and nothing else does.
func TestPruningIsDecided(t *testing.T) {
	const config, service, account = "configmap/" + earlierConfig, "service/mcp-web-headless", "serviceaccount/web-sa"
	for name, c := range map[string]struct {
		change func(in *pruning)
		// proxy, set and old change the Deployment, the StatefulSet, and all that is not wanted.
		proxy func(*appsv1.Deployment)
		set   func(*appsv1.StatefulSet)
		old   func(metav1.Object)
		want  []string
	}{
		"nothing uses them":         {want: []string{service, account, config}},
		"they are another one's":    {old: func(o metav1.Object) { o.SetOwnerReferences(controlled("Rollout", "web", "x")) }},
		"the template reads it":     {proxy: func(d *appsv1.Deployment) { d.Spec.Template.Spec = reads(wantedConfig, earlierConfig) }, want: []string{service, account}},
		"the template is not new":   {proxy: func(d *appsv1.Deployment) { d.Spec.Template.Spec = reads("other") }, want: []string{account, config}},
		"pods are to be replaced":   {proxy: func(d *appsv1.Deployment) { d.Status.Replicas = 2 }, want: []string{account, config}},
		"the template is not seen":  {proxy: func(d *appsv1.Deployment) { d.Generation++ }, want: []string{account}},
		"the proxy was refused":     {change: func(in *pruning) { in.unwritten.Insert(webDeployment) }, want: []string{account}},
		"the backend was refused":   {change: func(in *pruning) { in.unwritten.Insert(in.StatefulSetRef()) }, want: []string{service, config}},
		"the backend is not seen":   {set: func(s *appsv1.StatefulSet) { s.Generation++ }, want: []string{service, config}},
		"the backend is rolling":    {set: func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "2" }, want: []string{service, config}},
		"the backend's template":    {set: func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.ServiceAccountName = "web-sa" }, want: []string{service, config}},
		"there is no proxy":         {change: func(in *pruning) { delete(in.Children, webDeployment) }, want: []string{account}},
		"a revision to return to":   {change: inRevision(earlierConfig), want: []string{service, account}},
		"another revision":          {change: inRevision("other"), want: []string{service, account, config}},
		"a revision is not seen":    {proxy: ofRevision("2"), want: []string{service, account}},
		"no revision is seen":       {change: func(in *pruning) { in.Ask = &outskirts{} }, want: []string{service, account}},
		"it has no revision":        {proxy: func(d *appsv1.Deployment) { d.Annotations = nil }, want: []string{service, account}},
		"it is back at an earlier":  {proxy: ofRevision("2"), change: inRevisionOf("2", "other"), want: []string{service, account, config}},
		"its revision is no number": {proxy: ofRevision("1/2"), want: []string{service, account}},
		"a pod reads it":            {change: inPod(reads(wantedConfig, earlierConfig)), want: []string{service, account}},
		"a pod of an earlier proxy": {change: inPod(reads("other")), want: []string{account, config}},
		"a pod that may be one": {change: func(in *pruning) {
			in.Ask = &outskirts{sets: []observed.ReplicaSet{presentSet()}, unplaced: []*workload.Pod{workload.PodOf(&corev1.Pod{Spec: reads(earlierConfig)})}}
		}, want: []string{account}},
		"a pod has the account": {change: func(in *pruning) {
			pod := backendPod(in.Server, "uid")
			pod.Spec.ServiceAccountName = "web-sa"
			in.Pods["set-web"] = []*workload.Pod{workload.PodOf(pod)}
		}, want: []string{service, config}},
		"a reference cannot be used":    {change: func(in *pruning) { in.held = true }, want: []string{service, account}},
		"written at a later generation": {old: ofGeneration2},
		"that is a forgery": {old: ofGeneration2, change: func(in *pruning) {
			in.forged = []apply.ObjectRef{apply.NewObjectRef(managers.ConfigMap, "shop", earlierConfig)}
		}, want: []string{config}},
		"ToolHive's, which is there": {old: heldByOperator, change: func(in *pruning) { in.intruded = true }},
		"ToolHive's, which is gone":  {old: heldByOperator, want: []string{service, account, config}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			proxy, set := webProxy(server, func(d *appsv1.Deployment) { d.Spec.Template.Spec = reads(wantedConfig) }), webBackend(server)
			ofRevision("1")(proxy)
			if c.proxy != nil {
				c.proxy(proxy)
			}
			if c.set != nil {
				c.set(set)
			}
			objects := []metav1.Object{proxy, set, childOf(server, wantedConfig, &corev1.ConfigMap{})}
			for _, old := range []metav1.Object{
				childOf(server, "mcp-web-headless", &corev1.Service{}), childOf(server, "web-sa", &corev1.ServiceAccount{}),
				childOf(server, earlierConfig, &corev1.ConfigMap{}),
			} {
				if c.old != nil {
					c.old(old)
				}
				objects = append(objects, old)
			}
			in := pruning{
				Snapshot: sees(server, objects...), unwritten: sets.New[apply.ObjectRef](),
				runConfig: wantedConfig,
			}
			in.unwanted = []apply.ObjectRef{
				apply.NewObjectRef(managers.ServiceKind, "shop", "mcp-web-headless"), apply.NewObjectRef(managers.ServiceAccount, "shop", "web-sa"),
				apply.NewObjectRef(managers.RoleBinding, "shop", "web-proxy-runner"), apply.NewObjectRef(managers.ConfigMap, "shop", earlierConfig),
			}
			in.Ask = &outskirts{sets: []observed.ReplicaSet{presentSet()}}
			if c.change != nil {
				c.change(&in)
			}
			doomed, gone := in.decide()
			if diff := cmp.Diff(c.want, refNames(doomed)); diff != "" {
				t.Errorf("deletes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"rolebinding.rbac.authorization.k8s.io/web-proxy-runner"}, refNames(gone)); diff != "" {
				t.Errorf("forgets (-want +got):\n%s", diff)
			}
		})
	}
}

// presentSet is the ReplicaSet of the first revision.
func presentSet() observed.ReplicaSet { return setOfRevision("1", wantedConfig) }

func setOfRevision(revision, config string) observed.ReplicaSet {
	set := proxySet("web", "deployment-web")
	set.Annotations = map[string]string{observed.AnnotationRevision: revision}
	set.Spec.Template.Spec = reads(config)
	return observed.ReducedReplicaSet(set)
}

// ofRevision says which one the Deployment is at.
func ofRevision(revision string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, observed.AnnotationRevision, revision)
	}
}

func inRevision(config string) func(*pruning) { return inRevisionOf("", config) }

// inRevisionOf adds a ReplicaSet of another revision that reads a ConfigMap.
func inRevisionOf(revision, config string) func(*pruning) {
	return func(in *pruning) {
		in.Ask = &outskirts{sets: []observed.ReplicaSet{presentSet(), setOfRevision(revision, config)}}
	}
}

func inPod(spec corev1.PodSpec) func(*pruning) {
	return func(in *pruning) {
		in.Pods["deployment-web"] = []*workload.Pod{workload.PodOf(&corev1.Pod{Spec: spec})}
	}
}

func ofGeneration2(object metav1.Object) {
	object.GetAnnotations()[v1beta1.AnnotationSource] = apply.Source{UID: "server-web", Generation: 2}.String()
}

func heldByOperator(object metav1.Object) {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, "v1", `{}`)})
}
