{{- define "gvDetails" -}}
{{- $gv := . -}}
## {{ $gv.GroupVersionString }}
{{ if eq $gv.Version "v1beta1" }}
The fields are the same in the version `v1alpha1` of this group, which is deprecated and still served. They are stored as
`{{ $gv.Version }}`.
{{- else }}
The kinds that have no other version.
{{- end }}
{{- $first := list }}
{{- range list "MCPServer" "MCPOIDCConfig" "MCPAuthzConfig" "MCPExternalAuthConfig" "MCPToolConfig" "MCPTelemetryConfig" "MCPWebhookConfig" "MCPGroup" }}
{{- $first = concat $first (list . (print . "Spec") (print . "Status")) }}
{{- end }}
{{- range $first }}
{{- with index $gv.Types . }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- range $gv.SortedTypes }}
{{- if not (has .Name $first) }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- end -}}
