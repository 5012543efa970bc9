{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}

{{ if $type.IsAlias }}A {{ markdownRenderTypeLink $type.UnderlyingType }}. {{ end }}{{ template "text" $type.Doc }}
{{- if $type.References }}

Used in:
{{- range $i, $reference := $type.SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $reference }}{{ end }}.
{{- end }}
{{- with index $type.Markers "kubebuilder:validation:XValidation" }}

The API server refuses what breaks one of these rules:
{{ range . }}
- {{ .Message }}: `{{ .Rule }}`
{{- end }}
{{- end }}
{{- if $type.Members }}

| Field | Type | Default | Validation | Description |
|---|---|---|---|---|
{{- if $type.GVK }}
| `apiVersion` | string | | | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` |
| `kind` | string | | | `{{ $type.GVK.Kind }}` |
{{- end }}
{{- range $type.Members }}
| `{{ .Name }}` | {{ template "fieldType" .Type }} | {{ with .Default }}`{{ . }}`{{ end }} | {{ template "validation" . }} | {{ template "text" .Doc }} |
{{- end }}
{{- end }}
{{- if $type.EnumValues }}

| Value | Meaning |
|---|---|
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ template "text" (regexReplaceAll "^[A-Z][A-Za-z]+ " .Doc "") }} |
{{- end }}
{{- end }}
{{ end -}}
{{- end -}}

{{- define "fieldType" -}}
{{- if eq .Name "RawExtension" }}object{{ else }}{{ markdownRenderType . }}{{ end -}}
{{- end -}}

{{- define "validation" -}}
{{- range $i, $rule := .Validation -}}
{{- if $i }}; {{ end -}}
{{- if eq $rule "Required: {}" }}required
{{- else if eq $rule "Optional: {}" }}optional
{{- else }}{{ markdownRenderFieldDoc $rule }}
{{- end -}}
{{- end -}}
{{- /* Which parts of a list are owned apart from each other. */ -}}
{{- with index .Markers "listType" }}; listType: {{ index . 0 }}{{ end -}}
{{- with index .Markers "listMapKey" }} by {{ index . 0 }}{{ end -}}
{{- end -}}

{{- define "text" -}}
{{- . | trim | replace "\n" " " | replace "<" "&lt;" | markdownRenderFieldDoc -}}
{{- end -}}
