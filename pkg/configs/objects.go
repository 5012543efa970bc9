// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/authserver"
	"github.com/freehold-dev/freehold/pkg/bounds"
)

// Configuration is an object of one of the kinds of this package except MCPGroup.
type Configuration struct {
	Kind *Kind
	// Status is the object's own.
	Status *v1beta1.ConfigStatus
	spec   any
	// problem is what is too large; then the spec is not known. dropped are the fields that the API server has dropped.
	problem, dropped string
}

// Read returns an object, a pointer to the type of its kind, as a configuration; nil for another type.
func Read(object any) *Configuration {
	for ref := range Hashed() {
		if spec, status := ref.Kind.read(object); spec != nil {
			meta := object.(metav1.Object)
			return &Configuration{ref.Kind, status, spec, bounds.Problem(meta), bounds.Dropped(meta)}
		}
	}
	return nil
}

// Validate returns why the configuration cannot be used; nil when it can.
func (c *Configuration) Validate() error {
	if err := c.Known(); err != nil {
		return err
	}
	return c.Kind.validate(c.spec)
}

// Known returns why the spec is not the one that was given; nil when it is.
func (c *Configuration) Known() error {
	if c.TooLarge() {
		return fmt.Errorf("it is too large: %s; make it smaller (--max-object-size sets the bytes)", c.problem)
	}
	if c.dropped != "" {
		return fmt.Errorf("the API server dropped %s from the manifest that was applied, as the CustomResourceDefinition in this cluster does not have it; "+
			"write the manifest for that CustomResourceDefinition and apply it with --validate=strict, or, where the object is right as it is, "+
			"remove its annotation %s", c.dropped, corev1.LastAppliedConfigAnnotation)
	}
	return nil
}

// TooLarge reports whether nothing is known of the spec, since the object is too large.
func (c *Configuration) TooLarge() bool { return c.problem != "" }

// Hash returns the hash of the spec.
func (c *Configuration) Hash() (string, error) { return Hash(c.spec) }

// ConfigMaps returns the names of the ConfigMaps that the configuration refers to, sorted.
func (c *Configuration) ConfigMaps() []string { return c.Kind.configMaps(c.spec) }

// Advisories are conditions of a config that never make it invalid. They are about an embedded authorization server; any other config
// has none.
func Advisories(config any) []authserver.Advisory {
	external, ok := config.(*v1beta1.MCPExternalAuthConfig)
	if !ok || external.Spec.Type != v1beta1.ExternalAuthTypeEmbeddedAuthServer {
		return nil
	}
	return authserver.Advisories(external.Spec.EmbeddedAuthServer)
}
