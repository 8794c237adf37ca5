{{/* Secrets that the chart makes: once, kept over upgrades, and the same in all templates of one rendering. */}}

{{/* The value in `secret` under `key` (base64), as the cluster has it; otherwise `fresh`. */}}
{{- define "waybill.kept" -}}
{{- $values := .root.Values -}}
{{- if not (hasKey $values "_kept") -}}{{- $_ := set $values "_kept" dict -}}{{- end -}}
{{- $id := printf "%s/%s" .secret .key -}}
{{- if not (hasKey $values._kept $id) -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .secret | default dict -}}
{{- $data := get $there "data" | default dict -}}
{{- $_ := set $values._kept $id (get $data .key | default (b64enc .fresh)) -}}
{{- end -}}
{{- get $values._kept $id -}}
{{- end -}}

{{- define "waybill.postgresPassword" -}}
{{- include "waybill.kept" (dict "root" . "secret" (printf "%s-database" (include "waybill.fullname" .)) "key" "password" "fresh" (randAlphaNum 40)) -}}
{{- end -}}

{{/* The address of the database as the chart's own secret has it (base64). */}}
{{- define "waybill.databaseUrl" -}}
{{- if .Values.postgres.enabled -}}
{{- printf "postgresql://%s:%s@%s-postgres.%s:5432/%s" .Values.postgres.user (include "waybill.postgresPassword" . | b64dec) (include "waybill.fullname" .) .Release.Namespace .Values.postgres.database | b64enc -}}
{{- else -}}
{{- .Values.database.url | b64enc -}}
{{- end -}}
{{- end -}}

{{- define "waybill.madeSecret" -}}
{{- include "waybill.kept" (dict "root" .root "secret" (include "waybill.sharedSecret" .root) "key" (printf "%s-secret" .which) "fresh" (randAlphaNum 48)) -}}
{{- end -}}

{{/* The form of a key is that of `waybill apikey create`. Its id is below 2^128 because it begins with 0. */}}
{{- define "waybill.madeAdminKey" -}}
{{- include "waybill.kept" (dict "root" . "secret" (include "waybill.adminKeySecret" .) "key" "api-key" "fresh" (printf "wb_0%s_%s" (randAlphaNum 21) (randAlphaNum 43))) -}}
{{- end -}}

{{/*
A checksum over all secrets that the chart makes, for the annotation that replaces pods when one changes. It says nothing
about a weak password among them, because the others are random and long. Without any of those there is none.
*/}}
{{- define "waybill.secretsChecksum" -}}
{{- if not .Values.secrets.existingSecret -}}
{{- $all := list -}}
{{- range $which := list "session" "gateway" "audit" -}}
{{- $all = append $all (include "waybill.madeSecret" (dict "root" $ "which" $which)) -}}
{{- end -}}
{{- if or .Values.postgres.enabled (not .Values.database.existingSecret) -}}
{{- $all = append $all (include "waybill.databaseUrl" .) -}}
{{- end -}}
{{- $all = append $all (printf "%s:%s" .Values.storage.keyId .Values.storage.secret) -}}
{{- sha256sum (join "\n" $all) -}}
{{- end -}}
{{- end -}}
