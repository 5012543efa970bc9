{{/* The labels of all objects. */}}
{{- define "freehold.labels" -}}
app.kubernetes.io/name: freehold
app.kubernetes.io/part-of: freehold
{{- end }}

{{/* The labels by which the operator's pods are selected. They never change, as a Deployment's selector cannot. */}}
{{- define "freehold.selectorLabels" -}}
app.kubernetes.io/component: operator
app.kubernetes.io/name: freehold
{{- end }}

{{/* Whether the cluster assigns user ids: "true", or nothing. */}}
{{- define "freehold.openshift" -}}
{{- $is := toString .Values.operator.openshift -}}
{{- if or (eq $is "true") (and (eq $is "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}true{{ end -}}
{{- end }}

{{/* The rules of the operator, of a ClusterRole or of Roles. */}}
{{- define "freehold.rules" -}}
{{ toYaml (.Files.Get "files/clusterrole.yaml" | fromYaml).rules }}
{{- if include "freehold.openshift" . }}
# The API server serves no such subresource: this lets the operator set blockOwnerDeletion, and write nothing.
- apiGroups: [toolhive.stacklok.dev]
  resources: [mcpservers/finalizers]
  verbs: [update]
{{- end }}
{{- end }}

{{/* Whether the operator is for all namespaces: "true", or nothing. */}}
{{- define "freehold.clusterScope" -}}
{{- $rbac := .Values.operator.rbac -}}
{{- if eq $rbac.scope "cluster" -}}
{{- if $rbac.allowedNamespaces }}{{ fail "operator.rbac.allowedNamespaces needs operator.rbac.scope=namespace" }}{{ end -}}
true
{{- else if not $rbac.allowedNamespaces }}{{ fail "operator.rbac.scope=namespace needs operator.rbac.allowedNamespaces" }}
{{- end -}}
{{- end }}

{{/* The variables about the Redis of MCPServers that name no store. */}}
{{- define "freehold.redis" -}}
{{- $redis := .Values.operator.defaultRedis -}}
{{- $global := (.Values.global).redis | default dict -}}
{{- $address := $redis.addr -}}
{{- if and (not $address) $global.host }}{{ $address = printf "%s:%v" $global.host ($global.port | default 6379) }}{{ end -}}
{{- $authorities := $redis.tls.caCertSecretRef -}}
{{- if and $authorities.name (not $redis.tls.enabled) }}{{ fail "operator.defaultRedis.tls.caCertSecretRef.name needs operator.defaultRedis.tls.enabled=true" }}{{ end -}}
{{- if $address -}}
- name: TOOLHIVE_DEFAULT_REDIS_ADDR
  value: {{ $address | quote }}
{{- with $redis.existingSecret | default $global.existingSecret }}
- name: TOOLHIVE_DEFAULT_REDIS_SECRET_NAME
  value: {{ . | quote }}
- name: TOOLHIVE_DEFAULT_REDIS_SECRET_KEY
  value: {{ $redis.existingSecretKey | default $global.existingSecretKey | default "redis-password" | quote }}
{{- end }}
{{- if $redis.tls.enabled }}
- name: TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED
  value: "true"
{{- with $authorities.name }}
- name: TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME
  value: {{ . | quote }}
- name: TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY
  value: {{ $authorities.key | default "ca.crt" | quote }}
{{- end }}
{{- end }}
{{- else if $redis.tls.enabled }}{{ fail "operator.defaultRedis.tls.enabled needs operator.defaultRedis.addr or global.redis.host" }}
{{- end -}}
{{- end }}
