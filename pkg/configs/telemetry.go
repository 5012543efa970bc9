// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

var telemetryKind = kind(
	Kind{Name: Telemetry, Valid: v1beta1.ReasonValidationSucceeded, Invalid: v1beta1.ReasonValidationFailed}, toolhivev1beta1ac.MCPTelemetryConfig,
	func(c *v1beta1.MCPTelemetryConfig) *v1beta1.MCPTelemetryConfigSpec { return &c.Spec }, func(c *v1beta1.MCPTelemetryConfig) *v1beta1.ConfigStatus { return &c.Status },
	ValidateTelemetry, func(spec *v1beta1.MCPTelemetryConfigSpec) []string { return TelemetryBundle(spec).configMaps() },
)

// TelemetryConfigRef is spec.telemetryConfigRef.
var TelemetryConfigRef = refer(telemetryKind, Reference{
	Field: "telemetryConfigRef", Condition: v1beta1.ConditionTelemetryConfigRefValidated,
	Valid: v1beta1.ReasonTelemetryConfigRefValid, NotFound: v1beta1.ReasonTelemetryConfigRefNotFound,
	Invalid: v1beta1.ReasonTelemetryConfigRefInvalid, Unavailable: v1beta1.ReasonTelemetryConfigRefError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.TelemetryConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithTelemetryConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.MCPTelemetryConfigReference { return &s.TelemetryConfigRef },
	func(ref *v1beta1.MCPTelemetryConfigReference) Named { return Named{Telemetry, ref.Name} })

// ValidateTelemetry returns why an MCPTelemetryConfig cannot be used; nil when it can.
func ValidateTelemetry(spec *v1beta1.MCPTelemetryConfigSpec) error {
	if err := readable(spec.UnknownFields, spec.Malformed); err != nil {
		return err
	}
	otel := spec.OpenTelemetry
	if otel == nil {
		return nil
	}
	if otel.Endpoint != "" && (otel.Tracing == nil || !otel.Tracing.Enabled) && (otel.Metrics == nil || !otel.Metrics.Enabled) {
		return errors.New("spec.openTelemetry.endpoint is set, and neither tracing nor metrics is enabled: there is nothing to send")
	}
	if tracing := otel.Tracing; tracing != nil && tracing.SamplingRate != "" {
		if rate, err := strconv.ParseFloat(tracing.SamplingRate, 64); err != nil || rate < 0 || rate > 1 {
			return fmt.Errorf("spec.openTelemetry.tracing.samplingRate is %q; it must be between 0 and 1", tracing.SamplingRate)
		}
	}
	if err := validateHeaders(otel); err != nil {
		return err
	}
	if otel.CABundleRef != nil && otel.Insecure {
		return errors.New("spec.openTelemetry.caBundleRef has no effect with insecure; set only one of them")
	}
	return validateBundle("spec.openTelemetry.caBundleRef", otel.CABundleRef, telemetryBundleVolume)
}

func validateHeaders(otel *v1beta1.MCPTelemetryOTelConfig) error {
	variables := map[string]string{}
	for i := range otel.SensitiveHeaders {
		header, field := &otel.SensitiveHeaders[i], fmt.Sprintf("spec.openTelemetry.sensitiveHeaders[%d]", i)
		if header.Name == "" {
			return fmt.Errorf("%s.name is missing", field)
		}
		if err := validateSecretKey(field+".secretKeyRef", &header.SecretKeyRef); err != nil {
			return err
		}
		if _, both := otel.Headers[header.Name]; both {
			return fmt.Errorf("%s is header %q, which spec.openTelemetry.headers has as well; give it once", field, header.Name)
		}
		variable := HeaderVariable(header.Name)
		if other, taken := variables[variable]; taken {
			return fmt.Errorf("%s is header %q, whose value would be in the same variable as that of %q; rename one of them", field, header.Name, other)
		}
		variables[variable] = header.Name
	}
	return nil
}

// HeaderVariable returns the name of the proxy's variable with the value of a sensitive header.
func HeaderVariable(header string) string {
	return "TOOLHIVE_OTEL_HEADER_" + strings.ToUpper(strings.ReplaceAll(header, "-", "_"))
}
