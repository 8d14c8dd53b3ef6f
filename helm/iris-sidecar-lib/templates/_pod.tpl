{{/*
A pod spec with the sidecar in it: the container first among `initContainers`, its volumes, and the environment of every
other container. Takes `values`, the tree of values, and `spec`, the pod spec as YAML. Refuses a pod in which the sidecar
would not be alone with its secrets.
*/}}
{{- define "iris-sidecar.pod" -}}
{{- $values := .values -}}
{{- $spec := fromYaml .spec -}}
{{- with $spec.Error }}{{ fail (printf "iris-sidecar.pod: the pod spec is no YAML: %s" .) }}{{ end -}}
{{- include "iris-sidecar.check" (dict "values" $values "spec" $spec) -}}
{{- if $values.application.setEnvironment -}}
{{- $environment := include "iris-sidecar.environment" $values | fromYamlArray -}}
{{- range $container := concat ($spec.initContainers | default list) ($spec.containers | default list) -}}
{{- $env := $container.env | default list -}}
{{- $known := list -}}
{{- range $env }}{{ $known = append $known .name }}{{ end -}}
{{- if not (has "OTEL_EXPORTER_OTLP_ENDPOINT" $known) -}}
{{- range $environment -}}
{{- if not (has .name $known) }}{{ $env = append $env . }}{{ end -}}
{{- end -}}
{{- $_ := set $container "env" $env -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $sidecar := include "iris-sidecar.container" $values | fromYaml -}}
{{- $_ := set $spec "initContainers" (prepend ($spec.initContainers | default list) $sidecar) -}}
{{- $volumes := include "iris-sidecar.volumes" $values | fromYamlArray -}}
{{- $_ := set $spec "volumes" (concat ($spec.volumes | default list) $volumes) -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "iris-sidecar.check" -}}
{{- $name := .values.containerName -}}
{{- if and .spec.shareProcessNamespace (not .values.allowSharedProcessNamespace) -}}
{{- fail "shareProcessNamespace: every container of the same user could read the sidecar's files and secrets through /proc; write allowSharedProcessNamespace: true to accept that" -}}
{{- end -}}
{{- if and .spec.hostNetwork (not .values.allowHostNetwork) -}}
{{- fail "hostNetwork: the pod's loopback is the node's, and every such pod could send and ask here; write allowHostNetwork: true to accept that" -}}
{{- end -}}
{{- range concat (.spec.initContainers | default list) (.spec.containers | default list) -}}
{{- if eq .name $name -}}{{ fail (printf "the pod already has a container named %s; set containerName" $name) }}{{- end -}}
{{- end -}}
{{- range .spec.volumes | default list -}}
{{- if or (eq .name (printf "%s-data" $name)) (eq .name (printf "%s-secret" $name)) -}}
{{- fail (printf "the pod already has a volume named %s; set containerName" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
