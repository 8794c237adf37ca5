{{/* Objects that several components have. One file per object calls these. Each takes `root` and `component`. */}}

{{- define "waybill.serviceAccount" -}}
{{- $of := index .root.Values .component -}}
{{- if $of.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "waybill.metadata" (merge (dict "name" (include "waybill.serviceAccountName" .) "annotations" $of.serviceAccount.annotations) .) | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}
{{- end -}}

{{- define "waybill.disruptionBudget" -}}
{{- $of := index .root.Values .component -}}
{{- if $of.disruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "waybill.metadata" (merge (dict "name" (printf "%s-%s" (include "waybill.fullname" .root) .component)) .) | nindent 2 }}
spec:
  maxUnavailable: {{ $of.disruptionBudget.maxUnavailable }}
  # A pod that is not ready anyway must not keep a node from being emptied.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "waybill.selector" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* Scales on CPU. */}}
{{- define "waybill.autoscaler" -}}
{{- $of := index .root.Values .component -}}
{{- $name := printf "%s-%s" (include "waybill.fullname" .root) .component -}}
{{- if $of.autoscaling.enabled -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "waybill.metadata" (merge (dict "name" $name) .) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ $name }}
  minReplicas: {{ $of.autoscaling.minReplicas }}
  maxReplicas: {{ $of.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ $of.autoscaling.cpuUtilization }}
    {{- with $of.autoscaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $of.autoscaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* A Deployment's beginning, up to its pod template: replicas are left to whoever scales it. */}}
{{- define "waybill.deploymentBasics" -}}
{{- $of := index .root.Values .component -}}
{{- if not .autoscaled }}
replicas: {{ $of.replicas }}
{{- end }}
revisionHistoryLimit: {{ .root.Values.revisionHistoryLimit }}
{{- with $of.strategy }}
strategy:
  {{- toYaml . | nindent 2 }}
{{- end }}
selector:
  matchLabels:
    {{- include "waybill.selector" . | nindent 4 }}
{{- end -}}
