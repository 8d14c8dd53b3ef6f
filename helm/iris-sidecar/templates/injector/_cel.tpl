{{/* A value as a CEL expression. JSON's texts, numbers and literals are CEL's too; `dyn` lets a map hold several types. */}}
{{- define "iris-sidecar.cel" -}}
{{- if kindIs "map" . -}}
{{- $fields := list -}}
{{- range $name, $value := . -}}
{{- $fields = append $fields (printf "%s: dyn(%s)" (toJson $name) (include "iris-sidecar.cel" $value)) -}}
{{- end -}}
{ {{- join ", " $fields -}} }
{{- else if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . }}{{ $items = append $items (printf "dyn(%s)" (include "iris-sidecar.cel" .)) }}{{ end -}}
[{{ join ", " $items }}]
{{- else if kindIs "float64" . -}}
{{- if eq (float64 (int64 .)) . }}{{ int64 . }}{{ else }}{{ toJson . }}{{ end -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}
