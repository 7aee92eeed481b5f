{{- define "onlineauto.labels" -}}
app.kubernetes.io/name: onlineauto
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What all containers have in common. */}}
{{- define "onlineauto.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [onlineauto]
ports:
  - {name: http, containerPort: 8001}
# Kernels that the image lacks are compiled first, which takes a minute.
startupProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 5, failureThreshold: 60}
# While the log cannot be written, or learning fails, a restart rarely helps: it takes five minutes of that.
livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 30}
readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, timeoutSeconds: 2}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: loop, mountPath: /loop}
  - {name: tokens, mountPath: /tokens, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "onlineauto.pod" -}}
automountServiceAccountToken: false
# A server that ends writes its log and hands its records over.
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "onlineauto.claim" -}}
spec:
  accessModes: [{{ ternary "ReadWriteMany" "ReadWriteOnce" .Values.learner.standby }}]
  {{- with .Values.learner.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .Values.learner.storage }}
{{- end }}

{{- define "onlineauto.volumes" -}}
- name: tokens
  secret:
    secretName: {{ .Values.tokens }}
- name: tmp
  emptyDir: {}
{{- end }}
