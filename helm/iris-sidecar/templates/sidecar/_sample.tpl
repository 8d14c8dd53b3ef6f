{{/* The pod of the sample agent, as anybody would write it; the library puts the sidecar in. */}}
{{- define "iris-sidecar.sample" -}}
serviceAccountName: {{ include "iris-sidecar.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
{{- with include "iris-sidecar.placement" . }}
{{ . }}
{{- end }}
containers:
  - name: agent
    image: {{ .Values.agent.image | quote }}
    {{- with .Values.agent.command }}
    command:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.agent.args }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.agent.env }}
    env:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.agent.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      runAsUser: 65533
      capabilities:
        drop: [ALL]
{{- end -}}
