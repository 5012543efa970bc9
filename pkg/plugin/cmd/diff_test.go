// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// deny refuses requests of the plugin about a kind, by their verbs.
func (w *world) deny(kind schema.GroupKind, verbs ...string) {
	refused := apiserver.Refuse(apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, "", nil))
	w.before = func(r *apiserver.Request) *apiserver.Answer {
		if r.Kind != nil && r.Kind.Group == kind.Group && r.Kind.Kind == kind.Kind && slices.Contains(verbs, r.Verb) {
			return &refused
		}
		return nil
	}
}

// TestDiffWithoutConfigMaps: ConfigMaps that the user may not list, or not read, are left out, and the Deployment is compared with the UIDs
// of ConfigMaps that it has.
func TestDiffWithoutConfigMaps(t *testing.T) {
	for name, verbs := range map[string][]string{
		"no right":                     {"get", "list", "apply"},
		"no right but that to get":     {"list", "apply"},
		"no right but that to list":    {"get", "apply"},
		"the operator's rights to try": {"get", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.deny(managers.ConfigMap, verbs...)
			out, errOut := w.must(ExitDone, "diff", "web", known)
			if out != "No differences.\n" || !strings.Contains(errOut, "you may not read configmap/web-runconfig") {
				t.Errorf("it says\n%s%s", out, errOut)
			}
			if !slices.Contains(verbs, "list") {
				return // What is not listed is not there, and is shown as new.
			}
			w.apply("helm", serverRef, content{"spec": content{"proxyPort": int64(8081)}})
			out, errOut = w.must(ExitFound, "diff", "web", known)
			if !strings.Contains(out, "+++ deployment.apps/web by freehold-proxy") || strings.Contains(out, "configmap/") ||
				strings.Contains(out, "-        "+v1beta1.AnnotationConfigUIDs) {
				t.Errorf("it shows\n%s%s", out, errOut)
			}
		})
	}
}
