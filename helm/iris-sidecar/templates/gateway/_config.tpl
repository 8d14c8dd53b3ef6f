{{/* Configuration of a gateway: every door beyond loopback, each with a credential or the word that it has none. */}}
{{- define "iris-sidecar.gateway.config" -}}
{{- $own := include "iris-sidecar.gateway.config.own" . | fromYaml -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) -}}
{{- end -}}

{{- define "iris-sidecar.gateway.config.own" -}}
{{- $values := .Values -}}
receive:
  grpc:
    listen: {{ printf "%s:%v" $values.listenAddress $values.ports.grpc | quote }}
    allow_unauthenticated: {{ include "iris-sidecar.gateway.open" . }}
  http:
    listen: {{ printf "%s:%v" $values.listenAddress $values.ports.http | quote }}
    allow_unauthenticated: {{ include "iris-sidecar.gateway.open" . }}
    allowed_hosts: {{ include "iris-sidecar.gateway.hosts" . }}
  {{- if $values.receive.requireToken }}
  token_file: {{ include "iris-sidecar.secrets" . }}/token
  {{- end }}
  {{- if $values.tls.existingSecret }}
  tls:
    cert_file: {{ include "iris-sidecar.gateway.tls" . }}/tls.crt
    key_file: {{ include "iris-sidecar.gateway.tls" . }}/tls.key
    {{- if $values.tls.clientCertificates }}
    client_ca_file: {{ include "iris-sidecar.gateway.tls" . }}/ca.crt
    {{- end }}
  {{- end }}
web:
{{- if $values.web.enabled }}
  listen: {{ printf "%s:%v" $values.listenAddress $values.ports.web | quote }}
  api_key_file: {{ include "iris-sidecar.secrets" . }}/api-key
  {{- if $values.tls.existingSecret }}
  tls:
    cert_file: {{ include "iris-sidecar.gateway.tls" . }}/tls.crt
    key_file: {{ include "iris-sidecar.gateway.tls" . }}/tls.key
  {{- end }}
  allowed_hosts: {{ include "iris-sidecar.gateway.hosts" . }}
{{- else }}
  listen: "off"
{{- end }}
ops:
  listen: {{ printf "%s:%v" $values.opsAddress $values.ports.ops | quote }}
{{- include "iris-sidecar.forward" $values }}
{{- include "iris-sidecar.redact" $values }}
{{- include "iris-sidecar.judge" . }}
{{- if or $values.persistence.enabled (not $values.volume.source) }}
retention:
  bytes_max: {{ ternary $values.persistence.size $values.volume.sizeLimit $values.persistence.enabled | include "iris-sidecar.budget" }}
{{- end }}
logging:
  format: json
{{- end -}}

{{/* Whether senders of OTLP need neither a token nor a certificate. */}}
{{- define "iris-sidecar.gateway.open" -}}
{{- not (or .Values.receive.requireToken (and .Values.tls.existingSecret .Values.tls.clientCertificates)) -}}
{{- end -}}

{{/* The folder of the certificate. */}}
{{- define "iris-sidecar.gateway.tls" -}}/etc/iris-sidecar/tls{{- end -}}

{{/* Names by which clients may call: those of the Service, and those the user adds. */}}
{{- define "iris-sidecar.gateway.hosts" -}}
{{- $name := include "iris-sidecar.fullname" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $hosts := list $name $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) -}}
{{- toJson (concat $hosts .Values.allowedHosts) -}}
{{- end -}}
