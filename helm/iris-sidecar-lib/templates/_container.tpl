{{/*
The sidecar as an entry of `initContainers`. With `restartPolicy: Always` it starts before the containers, is stopped
after them, and does not keep a Job from completing. Takes the tree of values.
*/}}
{{- define "iris-sidecar.container" -}}
{{- if and .web.enabled (not .existingSecret) }}
{{- fail "web.enabled: the web door needs existingSecret, a Secret with the key `api-key`: other containers of the pod reach it too" }}
{{- end -}}
name: {{ .containerName }}
image: {{ include "iris-sidecar.image" . | quote }}
imagePullPolicy: {{ .image.pullPolicy }}
restartPolicy: Always
args: [serve, --config, "env:SIDECAR_CONFIG"]
env:
  - name: IRIS_HOME
    value: {{ include "iris-sidecar.home" . }}
  - name: SIDECAR_CONFIG
    value: |
      {{- include "iris-sidecar.config" . | nindent 6 }}
  {{- with .extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: iris-ops
    containerPort: {{ .ports.ops }}
    protocol: TCP
{{ include "iris-sidecar.probes" .ports.ops }}
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: {{ .containerName }}-data
    mountPath: {{ dir (include "iris-sidecar.home" .) }}
  {{- if .existingSecret }}
  - name: {{ .containerName }}-secret
    mountPath: {{ include "iris-sidecar.secrets" . }}
    readOnly: true
  {{- end }}
{{- end -}}

{{/*
Probes at the port given. The startup probe holds the agent's containers back until spans can be taken. There is no
readiness probe: it would make the agent's pod unready together with the sidecar.
*/}}
{{- define "iris-sidecar.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 1
  timeoutSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* The sidecar's volumes, as a list. Takes the tree of values. */}}
{{- define "iris-sidecar.volumes" -}}
- name: {{ .containerName }}-data
  {{- if .volume.source }}
  {{- toYaml .volume.source | nindent 2 }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .volume.sizeLimit }}
  {{- end }}
{{- if .existingSecret }}
- name: {{ .containerName }}-secret
  secret:
    secretName: {{ .existingSecret }}
    # The sidecar has a user of its own and the pod's files belong to root; no other container mounts this.
    defaultMode: 0444
{{- end }}
{{- end -}}

{{/* What the agent's containers need to know, as a list of environment variables. Takes the tree of values. */}}
{{- define "iris-sidecar.environment" -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: http://127.0.0.1:{{ if eq .application.protocol "grpc" }}{{ .ports.grpc }}{{ else }}{{ .ports.http }}{{ end }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ .application.protocol }}
{{- end -}}
