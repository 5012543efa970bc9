{{- define "gvList" -}}
<!-- Written by hack/update-docs.sh; edit the comments in apis/toolhive, not this. -->
# API reference

This page lists the fields of an MCPServer and of the objects that it refers to, the types of its conditions, and the annotations
that Freehold reads and writes. It is generated from the Go types and constants; [api.md](api.md) explains how programs use them.
{{- /* The version of most kinds goes first. */ -}}
{{ range . }}{{ if eq .Version "v1beta1" }}

{{ template "gvDetails" . }}
{{- end }}{{ end -}}
{{ range . }}{{ if ne .Version "v1beta1" }}

{{ template "gvDetails" . }}
{{- end }}{{ end -}}
{{- end -}}
