// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// Variables of OpenTelemetry's own, which the proxyrunner's libraries read.
const (
	envOTelAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	envOTelHeaders    = "OTEL_EXPORTER_OTLP_HEADERS"
)

// resolveTelemetry decides what the proxy reports about itself.
func (r *renderer) resolveTelemetry() {
	ref, found := refer(r, configs.TelemetryConfigRef)
	if ref == nil || !r.usable(ref, nil) {
		return
	}
	spec := &found.Spec
	telemetry := &runconfig.Telemetry{ServiceName: cmp.Or(r.server.Spec.TelemetryConfigRef.ServiceName, r.name)}
	r.proxy.firstEnv = append(r.proxy.firstEnv, variables(sourceTelemetry, envValue(envOTelAttributes,
		fmt.Sprintf("service.name=%s,service.namespace=%s", telemetry.ServiceName, r.namespace)))...)
	if prometheus := spec.Prometheus; prometheus != nil {
		telemetry.EnablePrometheusMetricsPath, telemetry.MetricsOnTransportPort = prometheus.Enabled, prometheus.MetricsOnTransportPort
		r.noteMetricsPort(ref, prometheus)
	}
	if otel := spec.OpenTelemetry; otel != nil {
		r.export(ref, telemetry, otel)
		r.sensitiveHeaders(telemetry, otel)
	}
	if bundle := configs.TelemetryBundle(spec); bundle != nil {
		r.proxy.collectorBundle, telemetry.CACertPath = mountBundle(bundle, pathBundles+"/"+configs.TelemetryBundles)
		r.rollFor(bundle)
		if found := r.in.References.Bundles[bundle.ConfigMap]; found == nil {
			r.amend(ref, "the ConfigMap %s with certificate authorities does not exist, and new pods of the proxy do not start without it",
				quote(bundle.ConfigMap))
		} else if problem := bounds.Problem(found); problem != "" {
			r.amend(ref, tooLargeBundle, quote(bundle.ConfigMap), problem)
		} else if _, ok := contentOf(found, bundle.Key); !ok {
			r.amend(ref, "the ConfigMap %s has no key %s with certificate authorities, and new pods of the proxy do not start without it",
				quote(bundle.ConfigMap), quote(bundle.Key))
		}
	}
	r.proxy.telemetry = telemetry
}

// export configures which signals go where, unless that is turned off.
func (r *renderer) export(ref *reference, telemetry *runconfig.Telemetry, otel *v1beta1.MCPTelemetryOTelConfig) {
	if !otel.Enabled {
		if otel.Endpoint != "" || otel.Tracing != nil && otel.Tracing.Enabled || otel.Metrics != nil && otel.Metrics.Enabled {
			r.amend(ref, "openTelemetry.enabled in it is false, so the proxy sends neither traces nor metrics")
		}
		return
	}
	telemetry.Endpoint = strings.TrimPrefix(strings.TrimPrefix(otel.Endpoint, "https://"), "http://")
	telemetry.Insecure, telemetry.Headers = otel.Insecure, otel.Headers
	telemetry.CustomAttributes, telemetry.UseLegacyAttributes = otel.ResourceAttributes, otel.UseLegacyAttributes
	if tracing := otel.Tracing; tracing != nil {
		telemetry.TracingEnabled = tracing.Enabled
		if rate, err := strconv.ParseFloat(tracing.SamplingRate, 64); err == nil && rate > 0 {
			telemetry.SamplingRate = strconv.FormatFloat(rate, 'f', -1, 64)
		}
	}
	telemetry.MetricsEnabled = otel.Metrics != nil && otel.Metrics.Enabled
}

// sensitiveHeaders makes headers of Secrets. ToolHive puts them into variables that nothing reads. The exporter reads all headers
// from one variable, but none from there once the RunConfig has headers of its own; so where there are sensitive ones, all are in
// the variable.
func (r *renderer) sensitiveHeaders(telemetry *runconfig.Telemetry, otel *v1beta1.MCPTelemetryOTelConfig) {
	if len(otel.SensitiveHeaders) == 0 {
		return
	}
	var headers []string
	for _, header := range otel.SensitiveHeaders {
		variable := configs.HeaderVariable(header.Name)
		r.proxy.firstEnv = append(r.proxy.firstEnv,
			variables(sourceTelemetry, envSecret(variable, header.SecretKeyRef.Name, header.SecretKeyRef.Key))...)
		headers = append(headers, fmt.Sprintf("%s=$(%s)", literal(header.Name), variable))
	}
	for _, name := range slices.Sorted(maps.Keys(telemetry.Headers)) {
		// Percent-encoding leaves $ alone, of which the kubelet makes one of two.
		headers = append(headers, literal(name)+"="+strings.ReplaceAll(url.PathEscape(telemetry.Headers[name]), "$", "%24"))
	}
	telemetry.Headers = nil
	r.proxy.firstEnv = append(r.proxy.firstEnv, variables(sourceTelemetry, envValue(envOTelHeaders, strings.Join(headers, ",")))...)
}

// literal returns a text as a variable's value has it, which the kubelet expands.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// noteMetricsPort refuses what an earlier proxyrunner ignores: the metrics would stay where they were to be taken away.
func (r *renderer) noteMetricsPort(ref *reference, prometheus *v1beta1.PrometheusConfig) {
	if off := prometheus.MetricsOnTransportPort; off == nil || *off {
		return
	}
	switch runner := r.runner(); {
	case runner == nil:
		r.noteUnknownRunner("The %s sets prometheus.metricsOnTransportPort to false, which proxyrunners before v%s ignore: they go on serving "+
			"metrics on the proxy's port; make sure that it is newer.", ref.text(), sinceMetricsPort)
	case runner.LessThan(sinceMetricsPort):
		r.hold(ref, v1beta1.ReasonRunnerTooOld, "The %s sets prometheus.metricsOnTransportPort to false, which proxyrunners before v%s ignore: "+
			"they go on serving metrics on the proxy's port. Run the operator with a newer --runner-image.", ref.text(), sinceMetricsPort)
	}
}
