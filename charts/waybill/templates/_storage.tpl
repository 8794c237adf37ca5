{{/* Where documents and results are. Templates that answer a question give "true" or nothing. */}}

{{- define "waybill.usesVolume" -}}
{{- if and (not .Values.storage.url) .Values.storage.volume.enabled -}}true{{- end -}}
{{- end -}}

{{- define "waybill.mountsVolume" -}}
{{- if and (include "waybill.usesVolume" .root) (has .component (list "api" "worker" "janitor")) -}}true{{- end -}}
{{- end -}}

{{- define "waybill.onOneNode" -}}
{{- $volume := .Values.storage.volume -}}
{{- if and (include "waybill.usesVolume" .) $volume.oneNode (not (has "ReadWriteMany" $volume.accessModes)) -}}true{{- end -}}
{{- end -}}

{{- define "waybill.claim" -}}
{{- default (printf "%s-storage" (include "waybill.fullname" .)) .Values.storage.volume.existingClaim -}}
{{- end -}}

{{- define "waybill.storageClass" -}}
{{- if eq . "-" }}
storageClassName: ""
{{- else if . }}
storageClassName: {{ . | quote }}
{{- end }}
{{- end -}}
