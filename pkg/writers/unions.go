// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// besideHandler are the fields of a probe that are no handlers.
var besideHandler = []string{
	"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds",
}

// unions is apply.Target.Unions: those of the pods of a workload, and of the ports of a Service.
func unions(config any, live metav1.Object) []apply.Union {
	var template *corev1ac.PodTemplateSpecApplyConfiguration
	var pod *corev1.PodSpec
	switch wanted := config.(type) {
	case *appsv1ac.DeploymentApplyConfiguration:
		if wanted.Spec != nil {
			template = wanted.Spec.Template
		}
		if d, _ := live.(*appsv1.Deployment); d != nil {
			pod = &d.Spec.Template.Spec
		}
	case *appsv1ac.StatefulSetApplyConfiguration:
		if wanted.Spec != nil {
			template = wanted.Spec.Template
		}
		if s, _ := live.(*appsv1.StatefulSet); s != nil {
			pod = &s.Spec.Template.Spec
		}
	case *corev1ac.ServiceApplyConfiguration:
		return unionsOfService(wanted, live)
	}
	if template == nil || template.Spec == nil {
		return nil
	}
	var found unionsFound
	path := fieldpath.MakePathOrDie("spec", "template", "spec")
	for i := range template.Spec.Volumes {
		volume := &template.Spec.Volumes[i]
		found.add(named(path, "volumes", volume.Name), volume, "name")
	}
	for i := range template.Spec.InitContainers {
		container := &template.Spec.InitContainers[i]
		found.of(named(path, "initContainers", container.Name), container)
	}
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		at := named(path, "containers", container.Name)
		found.of(at, container)
		found.portsOf(at, container, pod)
	}
	return found
}

type unionsFound []apply.Union

// of adds the unions of a container.
func (u *unionsFound) of(path fieldpath.Path, c *corev1ac.ContainerApplyConfiguration) {
	for i := range c.Env {
		env := &c.Env[i]
		variable := named(path, "env", env.Name)
		switch {
		case env.ValueFrom != nil:
			*u = append(*u, apply.Union{Path: variable.String(), Set: "valueFrom", Beside: []string{"name"}})
			u.add(below(variable, "valueFrom"), env.ValueFrom)
		case ptr.Deref(env.Value, "") != "": // An empty value may stand beside a source.
			*u = append(*u, apply.Union{Path: variable.String(), Set: "value", Beside: []string{"name"}})
		}
	}
	u.add(below(path, "startupProbe"), c.StartupProbe, besideHandler...)
	u.add(below(path, "livenessProbe"), c.LivenessProbe, besideHandler...)
	u.add(below(path, "readinessProbe"), c.ReadinessProbe, besideHandler...)
	if hooks := c.Lifecycle; hooks != nil {
		u.add(below(path, "lifecycle", "postStart"), hooks.PostStart)
		u.add(below(path, "lifecycle", "preStop"), hooks.PreStop)
	}
}

// add adds a part of a configuration, a pointer to a struct, if it sets an alternative.
func (u *unionsFound) add(path fieldpath.Path, part any, beside ...string) {
	value := reflect.ValueOf(part)
	if value.IsNil() {
		return
	}
	if set := firstSet(value.Elem(), beside); set != "" {
		*u = append(*u, apply.Union{Path: path.String(), Set: set, Beside: beside})
	}
}

// firstSet returns the name of the first field of a struct that is set, apart from some; empty for none.
func firstSet(of reflect.Value, but []string) string {
	for field, value := range of.Fields() {
		if field.Anonymous {
			if set := firstSet(value, but); set != "" {
				return set
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value.Kind() == reflect.Pointer && !value.IsNil() && !slices.Contains(but, name) {
			return name
		}
	}
	return ""
}

// named returns the path of an entry of a list below another path. The API server refuses an entry without a name.
func named(path fieldpath.Path, list string, name *string) fieldpath.Path {
	return below(path, list, fieldpath.KeyByFields("name", ptr.Deref(name, "")))
}

// below returns a path below another one, of parts as fieldpath.MakePath takes them.
func below(path fieldpath.Path, parts ...any) fieldpath.Path {
	return slices.Concat(path, fieldpath.MakePathOrDie(parts...))
}
