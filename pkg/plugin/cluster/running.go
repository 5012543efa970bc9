// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Product is the product that an operator belongs to.
type Product struct {
	// Name of the product.
	Name string
	// program is the file name of its operator, image the end of its image's name, label the value of the label
	// app.kubernetes.io/name, and lease the name of the Lease by which one of several replicas is chosen.
	program, image, label, lease string
	// namespace is where it is installed unless its user says otherwise.
	namespace string
}

// The products.
var (
	ToolHive = Product{
		Name: "ToolHive", program: "thv-operator", image: "toolhive/operator", label: "toolhive-operator",
		lease: "toolhive-operator-leader-election", namespace: "toolhive-system",
	}
	Freehold = Product{
		Name: "Freehold", program: "freehold", image: "freehold", label: "freehold", lease: "freehold",
		namespace: "freehold-system",
	}
)

// Running is an operator that runs.
type Running struct {
	Product string `json:"product"`
	// Object that shows it, as kubectl takes it, and its namespace.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// How it was found out.
	How string `json:"how"`
	// Stop is the command that stops it; empty where that is not known.
	Stop string `json:"stop,omitempty"`
	// Scope is which MCPServers it looks after, as far as that is known: then all.
	Scope
	// ScopeUnknown is set where nothing shows how it was started.
	ScopeUnknown bool `json:"-"`
	// User that it is to the API server; empty where that is not known.
	User string `json:"-"`
	// Lease by which its replicas elect one; empty for none, and where that is not known.
	Lease types.NamespacedName `json:"-"`
	// CreatedFor is the Deployment that a pod was created for, as NAMESPACE/NAME; empty for none, and for what is no pod.
	CreatedFor string `json:"-"`
	// LeavesConfigs is set when it leaves to others what MCPServers refer to.
	LeavesConfigs bool `json:"-"`
}

// Deployment returns its Deployment as NAMESPACE/NAME; empty where something else shows it.
func (r Running) Deployment() string {
	name, found := strings.CutPrefix(r.Object, deploymentObject)
	if !found {
		return ""
	}
	return r.Namespace + "/" + name
}

// deploymentObject is what the name of a Deployment begins with, as kubectl takes it.
const deploymentObject = "deployment.apps/"

// Unseen is a search for operators that the user may not make in all namespaces.
type Unseen struct {
	// Refusal is the API server's answer.
	Refusal string
	// Instead is the namespace in which was looked: the one in which the product is installed by default. It is empty where the user may
	// not look there either, so that nothing is known.
	Instead string
	// usual is the namespace in which was to be looked.
	usual string
}

// String implements fmt.Stringer.
func (u Unseen) String() string {
	if u.Instead == "" {
		return "you may look for it neither in all namespaces nor in " + u.usual + ": " + u.Refusal
	}
	return "it was looked for in " + u.Instead + " alone: " + u.Refusal
}

// Running finds the running operators of a product, from Deployments, from pods and from Leases. Where the user may not
// look at all namespaces, it looks only at the one in which the product is installed by default; unseen says so.
func (c *Client) Running(p Product, now time.Time) (found []Running, unseen []Unseen, err error) {
	s := &search{Product: p, client: c, now: now, podNames: sets.New[string]()}
	for _, look := range []func(namespace string) error{s.deployments, s.pods, s.leases} {
		missed, err := p.wherever(look)
		if err != nil {
			return nil, nil, err
		}
		if missed != nil {
			unseen = append(unseen, *missed)
		}
	}
	return s.found, unseen, nil
}

// wherever looks in all namespaces or, where the user may not do that, in the one in which the product is installed by default. It
// returns what the user may not look at; nil for nothing.
func (p Product) wherever(look func(namespace string) error) (missed *Unseen, err error) {
	if err = look(metav1.NamespaceAll); !apierrors.IsForbidden(err) {
		return nil, err
	}
	missed = &Unseen{Refusal: err.Error(), Instead: p.namespace, usual: p.namespace}
	if err = look(p.namespace); apierrors.IsForbidden(err) {
		missed.Instead, err = "", nil
	}
	return missed, err
}

type search struct {
	Product
	client *Client
	now    time.Time
	found  []Running
	// podNames are those of all pods of the product's operators.
	podNames sets.Set[string]
}

func (s *search) deployments(namespace string) error {
	found, err := list[appsv1.Deployment](s.client, versions[managers.Deployment], namespace, metav1.ListOptions{})
	for _, deployment := range found {
		s.deployment(deployment)
	}
	return err
}

func (s *search) deployment(d *appsv1.Deployment) {
	why, wanted := s.runs(d.Labels, &d.Spec.Template.Spec), ptr.Deref(d.Spec.Replicas, 1)
	if why == "" || wanted == 0 && d.Status.Replicas == 0 {
		return
	}
	how := fmt.Sprintf("%s; it is to have %d replicas and has %d", why, wanted, d.Status.Replicas)
	s.add(&d.Spec.Template.Spec, Running{
		Object: deploymentObject + d.Name, Namespace: d.Namespace, How: how,
		Stop: s.client.Kubectl("scale", "-n", d.Namespace, "deployment/"+d.Name, "--replicas=0"),
	})
}

// add adds an operator with what its pod says about it.
func (s *search) add(pod *corev1.PodSpec, r Running) {
	r.Product, r.User = s.Name, userOf(accountOf(r.Namespace, pod))
	if s.Name == Freehold.Name {
		process, err := processOf(r.Namespace, pod)
		r.Scope, r.LeavesConfigs, r.ScopeUnknown = process.Scope, process.leavesConfigs, err != nil
		if process.Elects {
			r.Lease = process.Lease
		}
	} else {
		namespaces, known := namespacesOf(r.Namespace, pod)
		r.Namespaces, r.ScopeUnknown, r.Lease = namespaces, !known, types.NamespacedName{Namespace: r.Namespace, Name: s.lease}
	}
	s.found = append(s.found, r)
}

// runs returns why a pod is taken for one of the operator's; empty if it is not.
func (p Product) runs(labels map[string]string, pod *corev1.PodSpec) string {
	for i := range pod.Containers {
		if why := p.shownBy(&pod.Containers[i]); why != "" {
			return why
		}
	}
	if labels[v1beta1.LabelAppName] == p.label {
		return fmt.Sprintf("it has the label %s=%s", v1beta1.LabelAppName, p.label)
	}
	return ""
}

// shownBy returns why a container is taken for one of the operator's; empty if it is not.
func (p Product) shownBy(container *corev1.Container) string {
	words := container.Command
	if len(words) == 0 {
		words = container.Args
	}
	// Words behind the program are its arguments, such as the name of a Deployment whose logs it reads.
	if len(words) > 0 && path.Base(words[0]) == p.program && !strings.HasPrefix(words[0], "-") {
		return fmt.Sprintf("its container %s runs %s", container.Name, words[0])
	}
	image, _, _ := strings.Cut(container.Image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	if image == p.image || strings.HasSuffix(image, "/"+p.image) {
		return fmt.Sprintf("its container %s has the image %s", container.Name, container.Image)
	}
	return ""
}

// namespacesOf returns those that the pod of ToolHive's operator says it watches, and reports whether they are known.
func namespacesOf(namespace string, pod *corev1.PodSpec) (namespaces []string, known bool) {
	for i := range pod.Containers {
		if text := environmentOf(namespace, &pod.Containers[i])[watchNamespace]; text != "" {
			namespaces = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	if !areNamespaces(namespaces) {
		return nil, false
	}
	return namespaces, true
}

// pods finds those that no Deployment accounts for that was found, such as one that is on its way out after its Deployment was scaled to 0.
// Other operators may run in the same namespace. The first pod of a ReplicaSet stands for the others, which have the same template.
func (s *search) pods(namespace string) error {
	found, err := list[corev1.Pod](s.client, pods, namespace, metav1.ListOptions{LabelSelector: v1beta1.LabelAppName + "=" + s.label})
	replicaSets := sets.New[string]()
	for _, pod := range found {
		why := s.runs(pod.Labels, &pod.Spec)
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if why == "" || ended {
			continue
		}
		s.podNames.Insert(pod.Name)
		r := Running{Object: "pod/" + pod.Name, Namespace: pod.Namespace}
		if name, _ := createdFor(pod); name != "" {
			r.CreatedFor = pod.Namespace + "/" + name
			replicaSet := r.CreatedFor + "-" + pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
			known := slices.ContainsFunc(s.found, func(other Running) bool { return other.Deployment() == r.CreatedFor })
			if known || replicaSets.Has(replicaSet) {
				continue
			}
			replicaSets.Insert(replicaSet)
		}
		if r.How = why; pod.DeletionTimestamp != nil {
			r.How += "; it is on its way out"
		}
		s.add(&pod.Spec, r)
	}
	return err
}

// accountsFor reports whether a Lease is that of an operator that was found, or a pod holds it that was seen: one that had another Lease
// before. The name of a holder is that of its pod, and something random.
func (s *search) accountsFor(lease types.NamespacedName, holder string) bool {
	pod, _, _ := strings.Cut(holder, "_")
	return s.podNames.Has(pod) || slices.ContainsFunc(s.found, func(r Running) bool { return r.Lease == lease })
}

// leases finds an operator that is none of the cluster's pods, by the Lease that it renews.
func (s *search) leases(namespace string) error {
	found, err := list[coordinationv1.Lease](s.client, leases, namespace, metav1.ListOptions{FieldSelector: "metadata.name=" + s.lease})
	for _, lease := range found {
		name := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
		if holder, ok := Holder(lease, s.now); ok && !s.accountsFor(name, holder) {
			s.found = append(s.found, Running{
				Product: s.Name, Object: "lease.coordination.k8s.io/" + lease.Name, Namespace: lease.Namespace, ScopeUnknown: true, Lease: name,
				How: fmt.Sprintf("%s holds it, and renewed it %v ago", holder, Ago(lease.Spec.RenewTime.Time, s.now).Round(time.Second)),
			})
		}
	}
	return err
}

// Ago returns how long ago something was; 0 where a clock that is ahead says that it is still to come.
func Ago(at, now time.Time) time.Duration { return max(0, now.Sub(at)) }

// Holder returns the holder of a Lease, empty for none, and reports whether it was renewed in time.
func Holder(lease *coordinationv1.Lease, now time.Time) (holder string, inTime bool) {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return "", false
	}
	lasts := time.Duration(*spec.LeaseDurationSeconds) * time.Second
	return *spec.HolderIdentity, now.Sub(spec.RenewTime.Time) < lasts
}
