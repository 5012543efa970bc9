// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Two writers of one kind share an object by claims that do not overlap. A third one that does is refused when the
// program starts, not when it fights the others in a cluster.
func ExampleRegistry() {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicas := fieldmanager.Path("spec", "replicas")
	whole := fieldmanager.Claim{Within: []fieldpath.Path{fieldmanager.Path("spec")}, Except: []fieldpath.Path{replicas}}

	registry := &fieldmanager.Registry{}
	registry.MustRegister(
		fieldmanager.Writer{Name: "web-workload", Kind: deployment, Claim: whole},
		fieldmanager.Writer{Name: "web-replicas", Kind: deployment, Claim: fieldmanager.Claim{Within: []fieldpath.Path{replicas}}},
	)
	image := fieldmanager.Path("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "web"), "image")
	fmt.Println(registry.Register(fieldmanager.Writer{
		Name: "web-images", Kind: deployment, Claim: fieldmanager.Claim{Within: []fieldpath.Path{image}},
	}))
	fmt.Println(whole.Covers(image), whole.Covers(replicas))
	// Output:
	// field managers "web-workload" and "web-images" claim the same fields of Deployment.apps
	// true false
}
