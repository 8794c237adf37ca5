{{/* Names of objects and images. What is longer than a name may be is cut, never refused. */}}

{{- define "waybill.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The beginning of all names. With the longest ending, a CronJob's name must not have more than 52 characters. */}}
{{- define "waybill.fullname" -}}
{{- $name := include "waybill.name" . -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $release .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The image of a component; `of` has its value `image`, `image` the name in the registry. */}}
{{- define "waybill.image" -}}
{{- $image := .root.Values.image -}}
{{- if .of.image -}}
{{- .of.image -}}
{{- else -}}
{{- printf "%s/waybill-%s:%s" (trimSuffix "/" $image.registry) .image (include "waybill.text" (default .root.Chart.AppVersion $image.tag)) -}}
{{- end -}}
{{- end -}}

{{- define "waybill.serviceAccountName" -}}
{{- $of := index .root.Values .component -}}
{{- if $of.serviceAccount.create -}}
{{- default (printf "%s-%s" (include "waybill.fullname" .root) .component) $of.serviceAccount.name -}}
{{- else -}}
{{- default "default" $of.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A value as text. YAML's numbers arrive as floating point, and a large one must not become 2e+08. */}}
{{- define "waybill.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{/* Names of secrets, given or made. */}}

{{- define "waybill.databaseSecret" -}}
{{- default (printf "%s-database" (include "waybill.fullname" .)) (ternary "" .Values.database.existingSecret .Values.postgres.enabled) -}}
{{- end -}}

{{- define "waybill.databaseKey" -}}
{{- ternary .Values.database.urlKey "url" (and (not .Values.postgres.enabled) (ne .Values.database.existingSecret "")) -}}
{{- end -}}

{{- define "waybill.sharedSecret" -}}
{{- default (printf "%s-secrets" (include "waybill.fullname" .)) .Values.secrets.existingSecret -}}
{{- end -}}

{{- define "waybill.sharedKey" -}}
{{- $secrets := .root.Values.secrets -}}
{{- if $secrets.existingSecret -}}
{{- get (dict "session" $secrets.sessionKey "gateway" $secrets.gatewayKey "audit" $secrets.auditKey) .which -}}
{{- else -}}
{{- printf "%s-secret" .which -}}
{{- end -}}
{{- end -}}

{{- define "waybill.adminKeySecret" -}}
{{- default (printf "%s-admin-key" (include "waybill.fullname" .)) .Values.adminKey.existingSecret -}}
{{- end -}}

{{- define "waybill.adminKeyKey" -}}
{{- ternary .Values.adminKey.key "api-key" (ne .Values.adminKey.existingSecret "") -}}
{{- end -}}

{{- define "waybill.storageSecret" -}}
{{- if .Values.storage.existingSecret -}}
{{- .Values.storage.existingSecret -}}
{{- else if .Values.storage.secret -}}
{{- printf "%s-storage" (include "waybill.fullname" .) -}}
{{- end -}}
{{- end -}}
