// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// apiDefault is a value that the API server fills in at a place where it becomes part of what we own: in a
// key by which a list is merged, inside an element that is owned as a whole (atomic), or as the only content of
// a struct that the user left empty. Everywhere else a default has no owner and does no harm. Here it would make what
// we own always differ from what we want, so we write it as well.
type apiDefault struct {
	// path from the pod's spec; [] stands for each element, and containers for init containers as well.
	path string
	// value that the API server sets when the user sets none.
	value string
	fill  func(*corev1.PodSpec)
}

// apiDefaults is the whole list for a pod template, from the lists and structs that are atomic or keyed in
// the schema of k8s.io/api v0.37 (a test knows them all) and from the defaulting functions of
// k8s.io/kubernetes v1.37, pkg/apis/core/v1.
var apiDefaults = []apiDefault{
	{
		path: "containers[].ports[].protocol", value: "TCP",
		fill: eachContainer(func(c *corev1.Container) {
			for i := range c.Ports {
				orDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		}),
	},
	{
		path: "containers[].env[].valueFrom.fieldRef.apiVersion", value: "v1",
		fill: eachContainer(func(c *corev1.Container) {
			for i := range c.Env {
				if from := c.Env[i].ValueFrom; from != nil {
					fillFieldRef(from.FieldRef)
				}
			}
		}),
	},
	{
		path: "containers[].env[].valueFrom.fileKeyRef.optional", value: "false",
		fill: eachContainer(func(c *corev1.Container) {
			for i := range c.Env {
				if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
					setDefault(&from.FileKeyRef.Optional, false)
				}
			}
		}),
	},
	{
		path: "volumes[].downwardAPI.items[].fieldRef.apiVersion", value: "v1",
		fill: func(spec *corev1.PodSpec) {
			for i := range spec.Volumes {
				if source := spec.Volumes[i].DownwardAPI; source != nil {
					fillFieldRefs(source.Items)
				}
			}
		},
	},
	{
		path: "volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", value: "v1",
		fill: eachProjection(func(p *corev1.VolumeProjection) {
			if p.DownwardAPI != nil {
				fillFieldRefs(p.DownwardAPI.Items)
			}
		}),
	},
	{
		path: "volumes[].downwardAPI.defaultMode", value: "420",
		fill: func(spec *corev1.PodSpec) {
			for i := range spec.Volumes {
				if source := spec.Volumes[i].DownwardAPI; source != nil && len(source.Items) == 0 {
					setDefault(&source.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
				}
			}
		},
	},
	{
		path: "volumes[].projected.defaultMode", value: "420",
		fill: func(spec *corev1.PodSpec) {
			for i := range spec.Volumes {
				if source := spec.Volumes[i].Projected; source != nil && len(source.Sources) == 0 {
					setDefault(&source.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
				}
			}
		},
	},
	{
		path: "volumes[].projected.sources[].serviceAccountToken.expirationSeconds", value: "3600",
		fill: eachProjection(func(p *corev1.VolumeProjection) {
			if p.ServiceAccountToken != nil {
				setDefault(&p.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}),
	},
}

// canonicalise brings a pod's spec into the form in which the API server stores it, as far as that concerns
// what we own of it, and merges list items for which an apply would be refused.
func (r *renderer) canonicalise(spec *corev1.PodSpec) {
	for _, d := range apiDefaults {
		d.fill(spec)
	}
	roundQuantities(spec)
	r.mergeLists(spec)
}

// roundQuantities rounds up to a thousandth, as the API server does. Quantities are made canonical by their
// own JSON.
func roundQuantities(spec *corev1.PodSpec) {
	eachContainer(func(c *corev1.Container) {
		roundUp(c.Resources.Limits)
		roundUp(c.Resources.Requests)
	})(spec)
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	for i := range spec.Volumes {
		if e := spec.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			roundUp(e.VolumeClaimTemplate.Spec.Resources.Limits)
			roundUp(e.VolumeClaimTemplate.Spec.Resources.Requests)
		}
	}
}

func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// mergeLists merges the lists that server-side apply keys by some of their elements' fields, or treats as
// sets. Two elements of one key are an error there; here the last one is taken.
func (r *renderer) mergeLists(spec *corev1.PodSpec) {
	path := podTemplatePath + ".spec."
	merge(r, &spec.InitContainers, path+"initContainers", "name", func(c corev1.Container) string { return c.Name })
	merge(r, &spec.Containers, path+"containers", "name", func(c corev1.Container) string { return c.Name })
	merge(r, &spec.Volumes, path+"volumes", "name", func(v corev1.Volume) string { return v.Name })
	merge(r, &spec.ImagePullSecrets, path+"imagePullSecrets", "name", func(s corev1.LocalObjectReference) string { return s.Name })
	merge(r, &spec.HostAliases, path+"hostAliases", "ip", func(a corev1.HostAlias) string { return a.IP })
	merge(r, &spec.SchedulingGates, path+"schedulingGates", "name", func(g corev1.PodSchedulingGate) string { return g.Name })
	merge(r, &spec.ResourceClaims, path+"resourceClaims", "name", func(c corev1.PodResourceClaim) string { return c.Name })
	merge(r, &spec.EvictionResponders, path+"evictionResponders", "name", func(e corev1.EvictionResponder) string { return e.Name })
	merge(r, &spec.TopologySpreadConstraints, path+"topologySpreadConstraints", "topologyKey or whenUnsatisfiable",
		func(c corev1.TopologySpreadConstraint) [2]string {
			if c.TopologyKey == "" || c.WhenUnsatisfiable == "" {
				return [2]string{}
			}
			return [2]string{c.TopologyKey, string(c.WhenUnsatisfiable)}
		})
	if spec.Resources != nil {
		r.mergeClaims(spec.Resources, path+"resources")
	}
	for i := range spec.InitContainers {
		r.mergeContainer(&spec.InitContainers[i], path+"initContainers")
	}
	for i := range spec.Containers {
		r.mergeContainer(&spec.Containers[i], path+"containers")
	}
}

type portKey struct {
	port     int32
	protocol corev1.Protocol
}

// String names the port in a message.
func (k portKey) String() string { return fmt.Sprintf("%d/%s", k.port, k.protocol) }

func (r *renderer) mergeContainer(c *corev1.Container, list string) {
	path := fmt.Sprintf("%s[%s].", list, c.Name)
	merge(r, &c.Env, path+"env", "name", func(e corev1.EnvVar) string { return e.Name })
	merge(r, &c.VolumeMounts, path+"volumeMounts", "mountPath", func(m corev1.VolumeMount) string { return m.MountPath })
	merge(r, &c.VolumeDevices, path+"volumeDevices", "devicePath", func(d corev1.VolumeDevice) string { return d.DevicePath })
	merge(r, &c.Ports, path+"ports", "containerPort", func(p corev1.ContainerPort) portKey {
		if p.ContainerPort == 0 {
			return portKey{}
		}
		return portKey{p.ContainerPort, p.Protocol}
	})
	r.mergeClaims(&c.Resources, path+"resources")
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].BindMountOptions = unique(c.VolumeMounts[i].BindMountOptions)
	}
	for i := range c.RestartPolicyRules {
		if codes := c.RestartPolicyRules[i].ExitCodes; codes != nil {
			codes.Values = unique(codes.Values)
		}
	}
}

func (r *renderer) mergeClaims(resources *corev1.ResourceRequirements, path string) {
	merge(r, &resources.Claims, path+".claims", "name", func(c corev1.ResourceClaim) string { return c.Name })
}

// merge keeps the last element of each key, at its place, and reports elements without a key, by the field
// that they lack.
func merge[T any, K comparable](r *renderer, list *[]T, path, field string, keyOf func(T) K) {
	var none K
	last := make(map[K]int, len(*list))
	for i, element := range *list {
		key := keyOf(element)
		if key == none {
			r.invalidPodTemplate("%s[%d].%s is missing.", path, i, field)
			continue
		}
		if earlier, ok := last[key]; ok && !equality.Semantic.DeepEqual((*list)[earlier], element) {
			r.duplicates = append(r.duplicates, duplicate{
				what:   fmt.Sprintf("%s[%v]", path, key),
				winner: sourcePodTemplate,
				losers: []string{sourcePodTemplate},
			})
		}
		last[key] = i
	}
	if len(last) == len(*list) {
		return
	}
	merged := make([]T, 0, len(last))
	for i, element := range *list {
		if last[keyOf(element)] == i {
			merged = append(merged, element)
		}
	}
	*list = merged
}

// unique keeps the first of equal values.
func unique[T comparable](values []T) []T {
	seen := make(map[T]bool, len(values))
	var kept []T
	for _, value := range values {
		if !seen[value] {
			seen[value] = true
			kept = append(kept, value)
		}
	}
	return kept
}

func eachContainer(do func(*corev1.Container)) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		for i := range spec.InitContainers {
			do(&spec.InitContainers[i])
		}
		for i := range spec.Containers {
			do(&spec.Containers[i])
		}
	}
}

func eachProjection(do func(*corev1.VolumeProjection)) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		for i := range spec.Volumes {
			if source := spec.Volumes[i].Projected; source != nil {
				for j := range source.Sources {
					do(&source.Sources[j])
				}
			}
		}
	}
}

func fillFieldRefs(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fillFieldRef(items[i].FieldRef)
	}
}

func fillFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		orDefault(&ref.APIVersion, "v1")
	}
}

func orDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
