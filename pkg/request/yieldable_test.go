// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/request"
)

// What makes a proxy read its policy cannot be left to others; the same fields of a backend, and others beside them, can.
func TestWhatProtectsAProxyIsNotYieldable(t *testing.T) {
	template := []any{"spec", "template"}
	in := func(parts ...any) fieldpath.Path { return fieldmanager.Path(append(template[:2:2], parts...)...) }
	byName := func(name string) any { return fieldpath.KeyByFields("name", name) }
	container := func(parts ...any) fieldpath.Path {
		return in(append([]any{"spec", "containers", byName("toolhive")}, parts...)...)
	}
	mount := func(path string, parts ...any) fieldpath.Path {
		return container(append([]any{"volumeMounts", fieldpath.KeyByFields("mountPath", path)}, parts...)...)
	}
	proxy, backend := apply.ObjectRef{Kind: managers.Deployment}, apply.ObjectRef{Kind: managers.StatefulSet}
	proxy.Name, backend.Name = "web", "web"
	for _, test := range []struct {
		path           fieldpath.Path
		proxy, backend bool
	}{
		{in("metadata", "annotations", "toolhive.stacklok.dev/runconfig-checksum"), false, true},
		{in("metadata", "annotations", "freehold.dev/config-uids"), false, true},
		{in("metadata", "annotations", "theirs"), true, true},
		{in("spec", "serviceAccountName"), false, true},
		{in("spec", "volumes", byName("runconfig")), false, true},
		{in("spec", "volumes", byName("runconfig"), "configMap", "name"), false, true},
		{in("spec", "volumes", byName("authz-config"), "configMap", "items"), false, true},
		{in("spec", "volumes", byName("data")), true, true},
		{mount("/etc/runconfig"), false, true},
		{mount("/etc/runconfig", "readOnly"), false, true},
		{mount("/etc/toolhive/authz", "name"), false, true},
		{mount("/data", "name"), true, true},
		{container("image"), true, true},
		{fieldmanager.Path("metadata", "labels", "toolhive"), false, false},
		{fieldmanager.Path("metadata", "labels", "toolhive.stacklok.io/component"), true, true},
		{in("metadata", "labels", "toolhive"), true, true},
	} {
		if got := request.Yieldable(proxy, test.path); got != test.proxy {
			t.Errorf("%s of the proxy is yieldable: %t", test.path, got)
		}
		if got := request.Yieldable(backend, test.path); got != test.backend {
			t.Errorf("%s of the backend is yieldable: %t", test.path, got)
		}
		if got := request.YieldablePath(proxy, test.path.String()); got != test.proxy {
			t.Errorf("%s of the proxy, as a conflict names it, is yieldable: %t", test.path, got)
		}
	}
}

// The settings of a rolling update are left to others together with the type of the strategy: the API server refuses OnDelete beside
// them.
func TestSettingsOfAStrategyGoWithItsType(t *testing.T) {
	strategy := func(parts ...any) fieldpath.Path {
		return fieldmanager.Path(append([]any{"spec", "updateStrategy"}, parts...)...)
	}
	backend := apply.NewObjectRef(managers.StatefulSet, "shop", "web")
	kind, settings, partition := strategy("type"), strategy("rollingUpdate"), strategy("rollingUpdate", "partition")
	for _, path := range []fieldpath.Path{settings, partition} {
		if request.Yieldable(backend, path) || request.YieldablePath(backend, path.String()) {
			t.Errorf("%s can be left to others by itself", path)
		}
	}
	if !request.Yieldable(backend, kind) || !request.YieldablePath(backend, kind.String()) {
		t.Errorf("%s cannot be left to others", kind)
	}
	for entry, want := range map[string]bool{
		".spec.updateStrategy": true, ".spec.updateStrategy.type": true, ".spec": true,
		".spec.updateStrategy.rollingUpdate": false, ".spec.updateStrategy.rollingUpdate.partition": false, ".spec.replicas": false,
	} {
		yields := request.New("statefulset.apps/web:"+entry).Yields(backend, nil)
		for _, path := range []fieldpath.Path{kind, settings, partition} {
			if got := yields(path); got != want {
				t.Errorf("%s leaves %s to others: %t", entry, path, got)
			}
		}
	}
}
