// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Prefixes of the volumes of certificate authorities in the proxy's pod. They are ToolHive's; the name of the ConfigMap follows.
const (
	oidcBundleVolume      = "oidc-ca-bundle-"
	telemetryBundleVolume = "otel-ca-bundle-"
	// DefaultBundleKey is the key of certificate authorities in a ConfigMap, where a reference names none.
	DefaultBundleKey = "ca.crt"
	// TelemetryBundles is the directory of telemetry's certificate authorities, below that of others: no ConfigMap of others
	// can have its name.
	TelemetryBundles = "otel"
)

// Bundle is a key of a ConfigMap with certificate authorities, and the volume in which the proxy's pod has it.
type Bundle struct{ ConfigMap, Key, Volume string }

// OIDCBundle returns the certificate authorities of an MCPOIDCConfig's issuer; nil for those of the proxy's image.
func OIDCBundle(spec *v1beta1.MCPOIDCConfigSpec) *Bundle {
	if spec.Inline == nil {
		return nil
	}
	return bundle(spec.Inline.CABundleRef, oidcBundleVolume)
}

// TelemetryBundle returns the certificate authorities of an MCPTelemetryConfig's collector; nil for those of the proxy's image.
func TelemetryBundle(spec *v1beta1.MCPTelemetryConfigSpec) *Bundle {
	if spec.OpenTelemetry == nil {
		return nil
	}
	return bundle(spec.OpenTelemetry.CABundleRef, telemetryBundleVolume)
}

func bundle(source *v1beta1.CABundleSource, prefix string) *Bundle {
	if source == nil || source.ConfigMapRef == nil {
		return nil
	}
	ref := source.ConfigMapRef
	return &Bundle{ref.Name, cmp.Or(ref.Key, DefaultBundleKey), prefix + ref.Name}
}

// configMaps returns the names of the ConfigMaps of certificate authorities; nil is none.
func (b *Bundle) configMaps() []string {
	if b == nil || b.ConfigMap == "" {
		return nil
	}
	return []string{b.ConfigMap}
}

// validateBundle checks a reference to certificate authorities, of which the pod's volume gets its name.
func validateBundle(field string, source *v1beta1.CABundleSource, prefix string) error {
	if source == nil {
		return nil
	}
	found := bundle(source, prefix)
	if found == nil || found.ConfigMap == "" {
		return fmt.Errorf("%s.configMapRef.name is missing", field)
	}
	if errs := validation.IsDNS1123Label(found.Volume); len(errs) > 0 {
		return fmt.Errorf("%s.configMapRef.name %q cannot be used, since no volume can be called %s: %s", field, found.ConfigMap, found.Volume, errs[0])
	}
	if errs := validation.IsConfigMapKey(found.Key); len(errs) > 0 {
		return fmt.Errorf("%s.configMapRef.key %q is not a key of a ConfigMap: %s", field, found.Key, errs[0])
	}
	if prefix == oidcBundleVolume && found.ConfigMap == TelemetryBundles {
		return fmt.Errorf("%s.configMapRef.name %q cannot be used: it is the directory of telemetry's certificate authorities in the "+
			"proxy's container; give the ConfigMap another name", field, found.ConfigMap)
	}
	return nil
}

func validateSecretKey(field string, ref *v1beta1.SecretKeyRef) error {
	if errs := validation.IsDNS1123Subdomain(ref.Name); len(errs) > 0 {
		return fmt.Errorf("%s.name %q is not the name of a Secret: %s", field, ref.Name, errs[0])
	}
	if errs := validation.IsConfigMapKey(ref.Key); len(errs) > 0 {
		return fmt.Errorf("%s.key %q is not a key of a Secret: %s", field, ref.Key, errs[0])
	}
	return nil
}

// readable returns why a spec was not read as it is stored; nil when it was. Nothing can say what an unknown field protects.
func readable(unknown []string, malformed string) error {
	const next = "upgrade Freehold to a version that supports the CustomResourceDefinition in this cluster, or "
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("this version of Freehold does not know spec.%s; %sremove the field", unknown[0], next)
	case malformed != "":
		return fmt.Errorf("this version of Freehold cannot read the spec: %s; %scorrect the value", malformed, next)
	}
	return nil
}
