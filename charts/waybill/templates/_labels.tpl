{{/* Labels and annotations. */}}

{{/* Of every object. */}}
{{- define "waybill.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "waybill.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: waybill
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of the objects of a component. */}}
{{- define "waybill.componentLabels" -}}
{{ include "waybill.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* What selects the pods of a component. It must never change: a Deployment's selector cannot. */}}
{{- define "waybill.selector" -}}
app.kubernetes.io/name: {{ include "waybill.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The metadata of an object: root, component, name, annotations. */}}
{{- define "waybill.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- if .component }}
  {{- include "waybill.componentLabels" . | nindent 2 }}
  {{- else }}
  {{- include "waybill.labels" .root | nindent 2 }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The labels of a component's pods, without the chart's version: a new chart with the same pods replaces none. */}}
{{- define "waybill.podLabels" -}}
{{- $of := index .root.Values .component -}}
{{- $own := omit (include "waybill.componentLabels" . | fromYaml) "helm.sh/chart" "app.kubernetes.io/managed-by" -}}
{{- $labels := merge dict $own $of.podLabels .root.Values.pods.labels -}}
{{- if and (include "waybill.mountsVolume" .) (include "waybill.onOneNode" .root) -}}
{{- $_ := set $labels "waybill.dev/volume" (include "waybill.fullname" .root) -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* The annotations of a component's pods. The checksum replaces pods when what they read at the start has changed. */}}
{{- define "waybill.podAnnotations" -}}
{{- $of := index .root.Values .component -}}
{{- $annotations := merge dict $of.podAnnotations .root.Values.pods.annotations .root.Values.commonAnnotations -}}
{{- with include "waybill.secretsChecksum" .root -}}
{{- $_ := set $annotations "checksum/secrets" . -}}
{{- end -}}
{{- range $name, $text := (default dict .checksums) -}}
{{- $_ := set $annotations (printf "checksum/%s" $name) (sha256sum $text) -}}
{{- end -}}
{{- toYaml $annotations -}}
{{- end -}}
