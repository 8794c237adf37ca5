{{/*
A worker's pod: for the plain Deployment, and for the operator, which adds what a pool says (queues, kinds, concurrency,
processes, resources, overrides).
*/}}
{{- define "waybill.workerPod" -}}
{{- $context := dict "root" . "component" "worker" -}}
{{- $worker := .Values.worker -}}
metadata:
  labels:
    {{- include "waybill.podLabels" $context | nindent 4 }}
  annotations:
    {{- include "waybill.podAnnotations" $context | nindent 4 }}
spec:
  serviceAccountName: {{ include "waybill.serviceAccountName" $context }}
  automountServiceAccountToken: false
  # A worker stops claiming at once when it is told to stop, so nothing needs to happen before that.
  terminationGracePeriodSeconds: {{ add $worker.shutdownGraceSeconds 30 }}
  {{- include "waybill.podBasics" $context | nindent 2 }}
  {{- include "waybill.spread" $context | nindent 2 }}
  initContainers:
    {{- include "waybill.awaitSchema" $context | nindent 4 }}
  containers:
    - name: worker
      command: [python, -m, waybill_worker]
      {{- include "waybill.container" $context | nindent 6 }}
      ports:
        - {name: metrics, containerPort: 9082}
      {{- include "waybill.probes" "metrics" | nindent 6 }}
  {{- include "waybill.volumes" $context | nindent 2 }}
{{- end -}}

{{/* What the values say of the pool, as variables of a plain Deployment. */}}
{{- define "waybill.poolEnvironment" -}}
{{- $worker := .Values.worker -}}
- name: WAYBILL_WORKER_CONCURRENCY
  value: {{ $worker.concurrency | quote }}
- name: WAYBILL_WORKER_PROCESSES
  value: {{ $worker.processes | quote }}
{{- with $worker.queues }}
- name: WAYBILL_WORKER_QUEUES
  value: {{ join "," . | quote }}
{{- end }}
{{- with $worker.kinds }}
- name: WAYBILL_WORKER_KINDS
  value: {{ join "," . | quote }}
{{- end }}
{{- end -}}

{{/* The query that tells how many workers are wanted, for KEDA: the same function as everywhere. */}}
{{- define "waybill.wantedQuery" -}}
{{- $worker := .Values.worker -}}
SELECT waybill_workers_wanted({{ include "waybill.sqlTexts" $worker.queues }}, {{ include "waybill.sqlTexts" $worker.kinds }}, {{ mul $worker.concurrency $worker.processes }}, {{ $worker.autoscaling.drainTargetSeconds }})
{{- end -}}

{{- define "waybill.sqlTexts" -}}
{{- $quoted := list -}}
{{- range . }}{{- $quoted = append $quoted (squote .) }}{{- end -}}
ARRAY[{{ join ", " $quoted }}]::text[]
{{- end -}}
