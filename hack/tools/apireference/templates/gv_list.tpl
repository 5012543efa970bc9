{{- define "gvList" -}}
<!-- Written by hack/update-docs.sh; edit the comments in apis/toolhive/v1beta1, not this. -->
# API reference

The fields of an MCPServer, the types of its conditions, and the annotations that Freehold reads and writes. All of it is
taken from the Go types and constants; [api.md](api.md) tells how programs use them.
{{ range . }}
{{ template "gvDetails" . }}
{{- end -}}
{{- end -}}
