// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// port is a port of a container or a Service. Server-side apply tells ports apart by their numbers and protocols. The API server does
// not let two have the same name.
type port struct {
	name     string
	number   int32
	protocol corev1.Protocol
}

func portOf(name *string, number *int32, protocol *corev1.Protocol) port {
	return port{ptr.Deref(name, ""), ptr.Deref(number, 0), cmp.Or(ptr.Deref(protocol, ""), corev1.ProtocolTCP)}
}

// addPorts adds the ports of a live object that have the name of a wanted one and are others. Key is the key of a number in the entries
// of the list. If the object is not known, the whole list may have such ports.
func (u *unionsFound) addPorts(list fieldpath.Path, key string, wanted, live []port, known bool) {
	for _, ours := range wanted {
		if ours.name == "" {
			continue
		}
		if !known {
			*u = append(*u, apply.Union{Path: list.String()})
		}
		for _, theirs := range live {
			if theirs.name == ours.name && theirs != ours {
				entry := below(list, fieldpath.KeyByFields(key, theirs.number, "protocol", string(theirs.protocol)))
				*u = append(*u, apply.Union{Path: entry.String()})
			}
		}
	}
}

// portsOf adds the ports of a container; the pod is nil if it is not known.
func (u *unionsFound) portsOf(path fieldpath.Path, container *corev1ac.ContainerApplyConfiguration, pod *corev1.PodSpec) {
	var wanted, live []port
	for i := range container.Ports {
		p := &container.Ports[i]
		wanted = append(wanted, portOf(p.Name, p.ContainerPort, p.Protocol))
	}
	if pod != nil {
		for i := range pod.Containers {
			if pod.Containers[i].Name != ptr.Deref(container.Name, "") {
				continue
			}
			for _, p := range pod.Containers[i].Ports {
				live = append(live, portOf(&p.Name, &p.ContainerPort, &p.Protocol))
			}
		}
	}
	u.addPorts(below(path, "ports"), "containerPort", wanted, live, pod != nil)
}

// unionsOfService returns the ports of a Service that have the name of another one of its configuration.
func unionsOfService(config *corev1ac.ServiceApplyConfiguration, object metav1.Object) []apply.Union {
	if config.Spec == nil {
		return nil
	}
	var found unionsFound
	var wanted, live []port
	for i := range config.Spec.Ports {
		p := &config.Spec.Ports[i]
		wanted = append(wanted, portOf(p.Name, p.Port, p.Protocol))
	}
	service, _ := object.(*corev1.Service)
	if service != nil {
		for _, p := range service.Spec.Ports {
			live = append(live, portOf(&p.Name, &p.Port, &p.Protocol))
		}
	}
	found.addPorts(fieldpath.MakePathOrDie("spec", "ports"), "port", wanted, live, service != nil)
	return found
}
