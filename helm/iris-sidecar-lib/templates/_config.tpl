{{/* Image reference, digest first. Takes the tree of values; `version` of the chart where the tag is empty. */}}
{{- define "iris-sidecar.image" -}}
{{- with .image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | toString }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the program keeps everything: a folder of its own inside the volume, because it makes it private. */}}
{{- define "iris-sidecar.home" -}}/var/lib/iris-sidecar/home{{- end -}}

{{/* The folder of the Secret's keys. */}}
{{- define "iris-sidecar.secrets" -}}/etc/iris-sidecar/secrets{{- end -}}

{{/* The collector downstream, or nothing. */}}
{{- define "iris-sidecar.forward" -}}
{{- with .forward.endpoint }}
forward:
  endpoint: {{ . | quote }}
  protocol: {{ $.forward.protocol }}
  verdicts: {{ $.forward.verdicts }}
  {{- if $.forward.caKey }}
  {{- if not $.existingSecret }}{{ fail "forward.caKey: names a key of existingSecret, which is not set" }}{{ end }}
  ca_file: {{ printf "%s/%s" (include "iris-sidecar.secrets" $) $.forward.caKey | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* What is taken out before anything is kept or sent on. */}}
{{- define "iris-sidecar.redact" -}}
{{- if .redact.enabled }}
redact:
  enabled: true
{{- end }}
{{- end -}}

{{/* What a cluster wants of a judge, should a key be configured: nothing personal leaves, and no argument of a call moves a limit. */}}
{{- define "iris-sidecar.judge" }}
judge:
  redact: true
  ceiling_usd_call: 0.25
  ceiling_usd_day: 1
citations:
  fetch: never
  domains: intersect
  ceiling_usd_call: 1
{{- end -}}

{{/* Three quarters of a quantity such as `4Gi`, in bytes: what everything in the home folder may take of its volume. */}}
{{- define "iris-sidecar.budget" -}}
{{- $units := dict "" 1 "k" 1e3 "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (regexFind "[a-zA-Z]*$" . | get $units | float64) 0.75 | int64 -}}
{{- end -}}

{{/* Configuration of a sidecar: OTLP on loopback, the web door keyed or off, what `config` says on top. */}}
{{- define "iris-sidecar.config" -}}
{{- $own := include "iris-sidecar.config.own" . | fromYaml -}}
{{- toYaml (mergeOverwrite $own (deepCopy .config)) -}}
{{- end -}}

{{- define "iris-sidecar.config.own" -}}
receive:
  grpc:
    listen: 127.0.0.1:{{ .ports.grpc }}
  http:
    listen: 127.0.0.1:{{ .ports.http }}
web:
{{- if .web.enabled }}
  listen: 127.0.0.1:{{ .ports.web }}
  api_key_file: {{ include "iris-sidecar.secrets" . }}/api-key
{{- else }}
  listen: "off"
{{- end }}
ops:
  listen: {{ printf "%s:%v" .opsAddress .ports.ops | quote }}
{{- include "iris-sidecar.forward" . }}
{{- include "iris-sidecar.redact" . }}
{{- include "iris-sidecar.judge" . }}
retention:
  days: 1
  {{- if not .volume.source }}
  bytes_max: {{ include "iris-sidecar.budget" .volume.sizeLimit }}
  {{- end }}
logging:
  format: json
{{- end -}}
