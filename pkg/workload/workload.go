// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The names of the containers in which ToolHive, and Freehold, run the two programs of an MCPServer.
const (
	// ProxyContainer has the proxyrunner.
	ProxyContainer = "toolhive"
	// BackendContainer has the MCP server. The proxyrunner and spec.podTemplateSpec know it by that name.
	BackendContainer = "mcp"
)

// The environment variables that tell an MCP server where to listen.
const (
	EnvTransport = "MCP_TRANSPORT"
	EnvPort      = "MCP_PORT"
)

// Deployment is what is read of a Deployment.
type Deployment struct {
	metav1.ObjectMeta

	Replicas *int32
	Paused   bool
	Template Template
	Status   appsv1.DeploymentStatus
}

// StatefulSet is what is read of a StatefulSet.
type StatefulSet struct {
	metav1.ObjectMeta

	Replicas            *int32
	UpdateStrategy      appsv1.StatefulSetUpdateStrategy
	PodManagementPolicy appsv1.PodManagementPolicyType
	Template            Template
	Status              appsv1.StatefulSetStatus
}

// Template is what is read of a pod template.
type Template struct {
	Marks

	ServiceAccount string
	// ConfigMaps are those of ConfigMapsOf.
	ConfigMaps []string
	Endpoint   Endpoint
}

// Marks are the annotations of pods, and of their templates, that say what they were made from. Each is empty when there is none.
type Marks struct {
	// RestartedAt is v1beta1.AnnotationRestartedAt, Generation is v1beta1.AnnotationGeneration, and AttachedTo is
	// v1beta1.AnnotationAttachedTo.
	RestartedAt, Generation, AttachedTo string
}

// Endpoint is where a pod of the proxy, or of the backend, listens, and how. The zero value is nowhere.
type Endpoint struct {
	// Port as a decimal number; empty for none.
	Port string
	// Transport of a backend.
	Transport string
}

// ServiceAccount is what is read of a ServiceAccount.
type ServiceAccount struct {
	metav1.ObjectMeta

	// ImagePullSecrets are the names of Secrets.
	ImagePullSecrets []string
}

// Service is what is kept of a Service that leads elsewhere than Freehold has it lead. Of any other the metadata is kept alone.
type Service struct {
	metav1.ObjectMeta

	// Astray says why.
	Astray string
}

// DeploymentOf returns what is read of a Deployment, with all its metadata.
func DeploymentOf(d *appsv1.Deployment) *Deployment {
	return &Deployment{d.ObjectMeta, d.Spec.Replicas, d.Spec.Paused, TemplateOf(&d.Spec.Template), d.Status}
}

// StatefulSetOf returns what is read of a StatefulSet, with all its metadata.
func StatefulSetOf(s *appsv1.StatefulSet) *StatefulSet {
	return &StatefulSet{
		s.ObjectMeta, s.Spec.Replicas, s.Spec.UpdateStrategy, s.Spec.PodManagementPolicy, TemplateOf(&s.Spec.Template), s.Status,
	}
}

// ServiceAccountOf returns what is read of a ServiceAccount, with all its metadata.
func ServiceAccountOf(account *corev1.ServiceAccount) *ServiceAccount {
	found := &ServiceAccount{ObjectMeta: account.ObjectMeta}
	for _, secret := range account.ImagePullSecrets {
		found.ImagePullSecrets = append(found.ImagePullSecrets, secret.Name)
	}
	return found
}

// TemplateOf returns what is read of a pod template.
func TemplateOf(template *corev1.PodTemplateSpec) Template {
	return Template{marksOf(template.Annotations), template.Spec.ServiceAccountName, ConfigMapsOf(&template.Spec), EndpointOf(template)}
}

func marksOf(annotations map[string]string) Marks {
	return Marks{
		annotations[v1beta1.AnnotationRestartedAt], annotations[v1beta1.AnnotationGeneration], annotations[v1beta1.AnnotationAttachedTo],
	}
}

// EndpointOf returns where the pods of a template listen, as Freehold and ToolHive write it.
func EndpointOf(template *corev1.PodTemplateSpec) (e Endpoint) {
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		switch container.Name {
		case ProxyContainer:
			if len(container.Ports) > 0 {
				e.Port = strconv.Itoa(int(container.Ports[0].ContainerPort))
			}
		case BackendContainer:
			for _, variable := range container.Env {
				switch variable.Name {
				case EnvTransport:
					e.Transport = variable.Value
				case EnvPort:
					e.Port = variable.Value
				}
			}
		}
	}
	return e
}

// ConfigMapsOf returns the names of the ConfigMaps that a pod's volumes are made from, sorted and without repetition.
func ConfigMapsOf(pod *corev1.PodSpec) []string {
	var names []string
	for i := range pod.Volumes {
		if source := pod.Volumes[i].ConfigMap; source != nil {
			names = append(names, source.Name)
		}
		if projected := pod.Volumes[i].Projected; projected != nil {
			for _, source := range projected.Sources {
				if source.ConfigMap != nil {
					names = append(names, source.ConfigMap.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Reduced is one of the structs of objects above.
type Reduced interface {
	metav1.Object
	// WithMeta returns a copy with other metadata.
	WithMeta(meta metav1.ObjectMeta) Reduced
}

// WithMeta implements Reduced.
func (d Deployment) WithMeta(meta metav1.ObjectMeta) Reduced { d.ObjectMeta = meta; return &d }

// WithMeta implements Reduced.
func (s StatefulSet) WithMeta(meta metav1.ObjectMeta) Reduced { s.ObjectMeta = meta; return &s }

// WithMeta implements Reduced.
func (a ServiceAccount) WithMeta(meta metav1.ObjectMeta) Reduced { a.ObjectMeta = meta; return &a }

// WithMeta implements Reduced.
func (s Service) WithMeta(meta metav1.ObjectMeta) Reduced { s.ObjectMeta = meta; return &s }
