{{/* What the operator reads: the pod of a worker, and the pool `default`. */}}
{{- define "waybill.operatorConfig" -}}
worker-template.yaml: |
  {{- include "waybill.workerPod" . | fromYaml | toYaml | nindent 2 }}
{{- if .Values.worker.enabled }}
default-pool.yaml: |
  {{- include "waybill.defaultPool" . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "waybill.defaultPool" -}}
{{- $worker := .Values.worker -}}
{{- $scaling := $worker.autoscaling -}}
{{- $source := .Values.autoscaling.metricsSource -}}
queues:
  {{- toYaml $worker.queues | nindent 2 }}
kinds:
  {{- toYaml $worker.kinds | nindent 2 }}
concurrency: {{ $worker.concurrency }}
processes: {{ $worker.processes }}
replicas: {{ ternary $worker.replicas $scaling.minReplicas (eq $source "none") }}
autoscaling:
  # The adapter serves the same metric to the same HorizontalPodAutoscaler as the operator does.
  source: {{ get (dict "builtin" "builtin" "prometheus-adapter" "builtin" "keda" "external" "cpu" "cpu" "none" "none") $source }}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  drainTargetSeconds: {{ $scaling.drainTargetSeconds }}
  cpuUtilization: {{ $scaling.cpuUtilization }}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
resources:
  {{- toYaml $worker.resources | nindent 2 }}
disruptionBudget:
  enabled: {{ $worker.disruptionBudget.enabled }}
  maxUnavailable: {{ $worker.disruptionBudget.maxUnavailable }}
{{- end -}}

{{/* Volumes of the operator's pods: its configuration, and the certificate of the metrics API. */}}
{{- define "waybill.operatorVolumes" -}}
- name: config
  configMap:
    name: {{ include "waybill.fullname" . }}-operator
{{- if include "waybill.servesMetricsApi" . }}
- name: tls
  secret:
    secretName: {{ include "waybill.tlsSecret" . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "waybill.operatorMounts" -}}
- {name: config, mountPath: /etc/waybill/operator, readOnly: true}
{{- if include "waybill.servesMetricsApi" . }}
- {name: tls, mountPath: /etc/waybill/tls, readOnly: true}
{{- end }}
{{- end -}}
