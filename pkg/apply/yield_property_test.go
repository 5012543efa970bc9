// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// kept are the fields of proxy that cannot be left to others.
var kept = []string{
	".metadata.ownerReferences", ".metadata.annotations." + sourceAnnotation, ".spec.selector",
	".spec.template.metadata.annotations.gate",
	`.spec.template.spec.containers[name="toolhive"].env[name="GENERATION"]`,
}

// leaving leaves fields to others, each with all below it, but for those that cannot be left.
func leaving(entries ...string) func(path fieldpath.Path) bool {
	within := func(path fieldpath.Path, entries []string) bool {
		for i := range path {
			if slices.Contains(entries, path[:i+1].String()) {
				return true
			}
		}
		return false
	}
	return func(path fieldpath.Path) bool { return within(path, entries) && !within(path, kept) }
}

// proxy is an intent that has fields of every sort, among them those that cannot be left to others.
func proxy(image string) *configuration {
	env := func(name, value string) *corev1ac.EnvVarApplyConfiguration {
		return corev1ac.EnvVar().WithName(name).WithValue(value)
	}
	return appsv1ac.Deployment("web", namespace).
		WithLabels(map[string]string{"app": "web", "toolhive": "true"}).
		WithAnnotations(map[string]string{"note": "x"}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName("a").WithUID("u")).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(map[string]string{"app": "web"}).
				WithAnnotations(map[string]string{"gate": "2", "checksum": "y"}).
				WithSpec(corev1ac.PodSpec().
					WithServiceAccountName("web").
					WithVolumes(corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium("Memory"))).
					WithContainers(
						corev1ac.Container().WithName("toolhive").WithImage(image).WithArgs("run", "it").
							WithEnv(env("GENERATION", "1"), env("A", "a"), env("B", "b")).
							WithPorts(corev1ac.ContainerPort().WithContainerPort(80).WithProtocol("TCP").WithName("http")).
							WithVolumeMounts(corev1ac.VolumeMount().WithName("tmp").WithMountPath("/tmp")).
							WithLivenessProbe(corev1ac.Probe().WithPeriodSeconds(9).
								WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/health"))),
						corev1ac.Container().WithName("sidecar").WithImage("side:1").WithEnv(env("C", "c")),
					))))
}

// fieldsOf returns what a manager owns of the stored object.
func (s *store) fieldsOf(manager string) *fieldpath.Set {
	s.t.Helper()
	set, err := ownership.Fields(ownership.ApplyEntry(s.stored, manager, ""))
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

// beginnings are all paths that lead to members of a set, each of which an entry of the annotation may have.
func beginnings(set *fieldpath.Set) []string {
	var all []string
	set.Iterate(func(path fieldpath.Path) {
		for i := range path {
			if text := path[:i+1].String(); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	})
	slices.Sort(all)
	return all
}

// Whatever is left to others keeps its value, what cannot be left stays the writer's, and the second look finds nothing
// more to do.
func TestYieldChangesNoValue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := created(t, content, stamped, proxy("a:1"))
		before := s.fieldsOf(content.Name)
		yielded := leaving(rapid.SliceOfNDistinct(rapid.SampledFrom(beginnings(before)), 1, 3, rapid.ID).Draw(rt, "yield")...)
		leave := func(req *apply.Request) { req.Yield = yielded }
		was := s.live()
		if out := s.sync(proxy("a:1"), leave); out.Err != nil {
			rt.Fatal(out.Err)
		}
		same := func(why string) {
			got := s.live()
			got.ManagedFields, got.ResourceVersion, got.Annotations[sourceAnnotation] = was.ManagedFields, was.ResourceVersion, was.Annotations[sourceAnnotation]
			if diff := cmp.Diff(was, got); diff != "" {
				rt.Fatalf("%s: the object has changed (-before +after):\n%s", why, diff)
			}
		}
		same("after it was yielded")
		s.requests = nil
		if out := s.sync(proxy("a:1"), leave); out.Err != nil || len(s.requests) > 0 {
			rt.Fatalf("the second look sends %q, error %v", s.requests, out.Err)
		}
		after := s.fieldsOf(content.Name)
		before.Iterate(func(path fieldpath.Path) {
			if !yielded(path) && !after.Has(path) {
				rt.Fatalf("%s cannot be left to others, and is the writer's no more", path)
			}
		})
		// Another edit of the MCPServer does not touch what is left to others either.
		out := s.sync(proxy("a:2"), leave)
		if out.Err != nil {
			rt.Fatal(out.Err)
		}
		if !after.Has(fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "toolhive"), "image")) {
			same("after another edit")
		}
		// Nor does the end of it: the same values are ours again.
		if out := s.sync(proxy("a:1"), nil); out.Err != nil {
			rt.Fatal(out.Err)
		}
		same("after the annotation is gone")
	})
}

// A list item is left to others although a field of it cannot be: that field, and what names the item, stay.
func TestAnItemIsYieldedButForAFieldThatStays(t *testing.T) {
	const toolhive = `.spec.template.spec.containers[name="toolhive"]`
	for _, path := range []string{toolhive, ".spec.template.spec.containers", ".spec.template.spec", ".spec.template", ".spec"} {
		t.Run(path, func(t *testing.T) {
			s := created(t, content, stamped, proxy("a:1"))
			before := s.live().Spec
			leave := func(req *apply.Request) { req.Yield = leaving(path) }
			for range 2 {
				if out := s.sync(proxy("a:1"), leave); out.Err != nil {
					t.Fatal(out.Err)
				}
			}
			if diff := cmp.Diff(before, s.stored.Spec); diff != "" {
				t.Errorf("the object has changed (-before +after):\n%s", diff)
			}
			for _, stays := range []string{toolhive, toolhive + ".name", toolhive + `.env[name="GENERATION"].value`} {
				s.expectOwners(stays, content.Name)
			}
			for _, left := range []string{toolhive + ".image", toolhive + `.env[name="A"].value`, toolhive + ".args"} {
				s.expectOwners(left)
			}
			s.update("kubectl-edit", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
			s.expect("left to others", "edit ownership")
			if out := s.sync(proxy("a:2"), leave); out.Err != nil || s.image() != "theirs" {
				t.Errorf("image %s, error %v", s.image(), out.Err)
			}
		})
	}
}

// No manager owns the name and the kind of an object, so nobody can leave them to others, whatever an entry selects. An apply
// without them would never be sent.
func TestWhatNoManagerOwnsIsNotYielded(t *testing.T) {
	for entry, left := range map[string][]string{
		".metadata":      {".metadata.annotations.note", ".metadata.labels.app", ".metadata.labels.toolhive"},
		".metadata.name": nil, ".kind": nil, ".apiVersion": nil,
	} {
		t.Run(entry, func(t *testing.T) {
			s := created(t, content, stamped, proxy("a:1"))
			leave := func(req *apply.Request) { req.Yield = leaving(entry) }
			for _, image := range []string{"a:1", "a:2", "a:2"} {
				out := s.sync(proxy(image), leave)
				if out.Err != nil || s.stored.Spec.Template.Spec.Containers[0].Image != image {
					t.Fatalf("image %s, want %s; %v", s.image(), image, out.Err)
				}
				var got []string
				for path := range out.Left.All() {
					got = append(got, path.String())
				}
				if slices.Sort(got); !slices.Equal(left, got) {
					t.Errorf("left are %q, want %q", got, left)
				}
			}
		})
	}
}
