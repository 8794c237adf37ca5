{{/* The variables of the containers. What is set here is a setting of docs/configuration.md, or read by the system. */}}

{{- define "waybill.needsDatabase" -}}
{{- if has .component (list "api" "worker" "operator" "janitor" "migration") -}}true{{- end -}}
{{- end -}}

{{- define "waybill.fromSecret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end -}}

{{- define "waybill.fromPod" -}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end -}}

{{/* Every container of ours. */}}
{{- define "waybill.environment.process" -}}
{{- $values := .root.Values -}}
{{- $telemetry := .root.Values.telemetry -}}
- name: WAYBILL_HOME
  value: /data
- name: WAYBILL_LOG_FORMAT
  value: {{ $values.log.format }}
- name: WAYBILL_LOG_LEVEL
  value: {{ $values.log.level }}
- name: WAYBILL_METRICS_HOST
  value: 0.0.0.0
{{- if $telemetry.otlpEndpoint }}
- name: WAYBILL_OTLP_ENDPOINT
  value: {{ $telemetry.otlpEndpoint | quote }}
- name: WAYBILL_OTLP_PROTOCOL
  value: {{ $telemetry.otlpProtocol }}
- name: WAYBILL_TRACE_SAMPLE_RATIO
  value: {{ $telemetry.sampleRatio | quote }}
{{- if $telemetry.existingSecret }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_OTLP_HEADERS" "secret" $telemetry.existingSecret "key" $telemetry.headersKey) }}
{{- end }}
{{- end }}
{{- if $telemetry.traceUrlTemplate }}
- name: WAYBILL_TRACE_URL_TEMPLATE
  value: {{ $telemetry.traceUrlTemplate | quote }}
{{- end }}
{{- end -}}

{{/* What opens the database. The migration may have an address of its own. */}}
{{- define "waybill.environment.database" -}}
{{- $values := .root.Values -}}
{{- if and (eq .component "migration") $values.migration.existingSecret -}}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_DATABASE_URL" "secret" $values.migration.existingSecret "key" $values.migration.urlKey) }}
{{- else -}}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_DATABASE_URL" "secret" (include "waybill.databaseSecret" .root) "key" (include "waybill.databaseKey" .root)) }}
- name: WAYBILL_DATABASE_PGBOUNCER
  value: {{ $values.database.pgbouncer | quote }}
{{- end }}
- name: WAYBILL_DATABASE_CONNECT_TIMEOUT
  value: {{ include "waybill.text" $values.database.connectTimeoutSeconds | quote }}
{{- end -}}

{{- define "waybill.environment.storage" -}}
{{- $storage := .Values.storage -}}
- name: WAYBILL_STORAGE_URL
  value: {{ default "/data/storage" $storage.url | quote }}
{{- with include "waybill.storageSecret" . }}
{{- if $storage.existingSecret }}
{{- if $storage.keyIdKey }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_STORAGE_KEY_ID" "secret" . "key" $storage.keyIdKey) }}
{{- end }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_STORAGE_SECRET" "secret" . "key" $storage.secretKey) }}
{{- else }}
{{- if $storage.keyId }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_STORAGE_KEY_ID" "secret" . "key" "key-id") }}
{{- end }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_STORAGE_SECRET" "secret" . "key" "secret") }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The gateway, and those who call it. */}}
{{- define "waybill.environment.gatewayUrl" -}}
- name: WAYBILL_GATEWAY_URL
  value: http://{{ include "waybill.fullname" . }}-gateway:8081
{{- end -}}

{{- define "waybill.environment.api" -}}
{{- $root := .root -}}
{{- $api := .root.Values.api -}}
- name: WAYBILL_API_HOST
  value: 0.0.0.0
- name: WAYBILL_API_PORT
  value: "8080"
- name: WAYBILL_API_METRICS_PORT
  value: "9080"
- name: WAYBILL_API_HTTPS
  value: {{ ternary (and $root.Values.ingress.enabled (gt (len $root.Values.ingress.tls) 0)) $api.https (kindIs "invalid" $api.https) | quote }}
{{- with $api.hosts }}
{{- $service := printf "%s-api" (include "waybill.fullname" $root) }}
{{- $inside := list $service (printf "%s.%s" $service $root.Release.Namespace) (printf "%s.%s.svc" $service $root.Release.Namespace) (printf "%s.%s.svc.cluster.local" $service $root.Release.Namespace) }}
- name: WAYBILL_API_HOSTS
  value: {{ concat . $inside | join "," | quote }}
{{- end }}
{{- with $api.trustedProxies }}
- name: WAYBILL_API_TRUSTED_PROXIES
  value: {{ join "," . | quote }}
{{- end }}
{{- with $api.corsOrigins }}
- name: WAYBILL_API_CORS_ORIGINS
  value: {{ join "," . | quote }}
{{- end }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_API_SESSION_SECRET" "secret" (include "waybill.sharedSecret" $root) "key" (include "waybill.sharedKey" (dict "root" $root "which" "session"))) }}
{{ include "waybill.environment.gatewayUrl" $root }}
{{- include "waybill.environment.mappings" $root }}
{{- end -}}

{{- define "waybill.environment.worker" -}}
{{- $worker := .root.Values.worker -}}
{{ include "waybill.fromPod" .root }}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: WAYBILL_WORKER_METRICS_PORT
  value: "9082"
- name: WAYBILL_WORKER_POOL_SIZE
  value: {{ $worker.poolSize | quote }}
- name: WAYBILL_SHUTDOWN_GRACE
  value: {{ $worker.shutdownGraceSeconds | quote }}
- name: WAYBILL_GATEWAY_CALLS
  value: {{ include "waybill.text" $worker.gatewayCalls | quote }}
{{ include "waybill.environment.gatewayUrl" .root }}
{{- include "waybill.environment.mappings" .root }}
{{- end -}}

{{- define "waybill.environment.gateway" -}}
{{- $gateway := .root.Values.gateway -}}
- name: WAYBILL_GATEWAY_HOST
  value: 0.0.0.0
- name: WAYBILL_GATEWAY_PORT
  value: "8081"
- name: WAYBILL_GATEWAY_METRICS_PORT
  value: "9081"
- name: WAYBILL_GATEWAY_SPOOL_DIR
  value: /tmp/gateway
- name: WAYBILL_GATEWAY_PROCESSES
  value: {{ $gateway.processes | quote }}
- name: WAYBILL_GATEWAY_MEMORY_MB
  value: {{ include "waybill.text" $gateway.memoryMb | quote }}
- name: WAYBILL_GATEWAY_SHUTDOWN_GRACE
  value: {{ $gateway.shutdownGraceSeconds | quote }}
{{- include "waybill.environment.mappings" .root }}
{{- end -}}

{{- define "waybill.environment.mappings" -}}
{{- if .Values.gateway.mappingsConfigMap }}
- name: WAYBILL_MAPPINGS_DIR
  value: /etc/waybill/mappings
{{- end }}
{{- end -}}

{{- define "waybill.environment.operator" -}}
{{ include "waybill.fromPod" .root }}
- name: WAYBILL_OPERATOR_CONFIG_DIR
  value: /etc/waybill/operator
- name: WAYBILL_OPERATOR_NAME_PREFIX
  value: {{ include "waybill.fullname" .root }}
- name: WAYBILL_OPERATOR_METRICS_PORT
  value: "9083"
- name: WAYBILL_OPERATOR_METRICS_API_PORT
  value: {{ ternary "8443" "0" (eq (include "waybill.servesMetricsApi" .root) "true") | quote }}
- name: WAYBILL_OPERATOR_TLS_DIR
  value: /etc/waybill/tls
{{- end -}}

{{- define "waybill.environment.janitor" -}}
{{ include "waybill.fromPod" .root }}
- name: WAYBILL_JANITOR_TIME_LIMIT
  value: {{ include "waybill.text" .root.Values.janitor.timeLimitSeconds | quote }}
{{- end -}}

{{- define "waybill.environment.migration" -}}
{{- end -}}

{{/* What the chart itself sets for a component's main container. */}}
{{- define "waybill.environment.own" -}}
{{- $root := .root -}}
{{ include "waybill.environment.process" . }}
{{- if include "waybill.needsDatabase" . }}
{{ include "waybill.environment.database" . }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_AUDIT_SECRET" "secret" (include "waybill.sharedSecret" $root) "key" (include "waybill.sharedKey" (dict "root" $root "which" "audit"))) }}
{{- end }}
{{- if has .component (list "api" "worker" "janitor") }}
{{ include "waybill.environment.storage" $root }}
{{- end }}
{{- if has .component (list "api" "worker" "gateway") }}
{{ include "waybill.fromSecret" (dict "name" "WAYBILL_GATEWAY_SECRET" "secret" (include "waybill.sharedSecret" $root) "key" (include "waybill.sharedKey" (dict "root" $root "which" "gateway"))) }}
{{- end }}
{{- with include (printf "waybill.environment.%s" .component) . }}
{{ trim . }}
{{- end }}
{{- end -}}

{{/* All of its variables. */}}
{{- define "waybill.environment" -}}
{{- $root := .root -}}
{{- $of := index .root.Values .component -}}
{{ include "waybill.environment.own" . }}
{{- range $name, $value := $root.Values.settings }}
- name: {{ $name }}
  value: {{ include "waybill.text" $value | quote }}
{{- end }}
{{- with $of.extraEnv }}
{{ tpl (toYaml .) $root }}
{{- end }}
{{- end -}}
