{{- define "gvDetails" -}}
{{- $gv := . -}}
## {{ $gv.GroupVersionString }}

The fields are the same in the version `v1alpha1` of this group, which is deprecated and still served. They are stored as
`{{ $gv.Version }}`.
{{- $first := list "MCPServer" "MCPServerSpec" "MCPServerStatus" }}
{{- range $first }}
{{ template "type" (index $gv.Types .) }}
{{- end }}
{{- range $gv.SortedTypes }}
{{- if not (has .Name $first) }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- end -}}
