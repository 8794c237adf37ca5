{{/* Network policies: each denies everything to a component but what it lists. Rules are those of a NetworkPolicy. */}}

{{- define "waybill.policyBasics" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "waybill.metadata" (merge (dict "name" (printf "%s-%s" (include "waybill.fullname" .root) .component)) .) | nindent 2 }}
{{- end -}}

{{/* Pods of one of these components: `components`. */}}
{{- define "waybill.podsOf" -}}
matchLabels:
  app.kubernetes.io/name: {{ include "waybill.name" .root }}
  app.kubernetes.io/instance: {{ .root.Release.Name }}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: [{{ join ", " .components }}]}
{{- end -}}

{{- define "waybill.ports" -}}
{{- range . }}
- {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end -}}

{{- define "waybill.ingress.prometheus" -}}
{{- with .root.Values.networkPolicies.prometheus }}
- from:
    {{- toYaml . | nindent 4 }}
  ports:
    - {protocol: TCP, port: metrics}
{{- end }}
{{- end -}}

{{- define "waybill.egress.dns" -}}
{{- $dns := .root.Values.networkPolicies.dns -}}
- to:
    {{- toYaml $dns.peers | nindent 4 }}
  ports:
    {{- range $dns.ports }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}

{{- define "waybill.egress.otlp" -}}
{{- with .root.Values.telemetry.otlpEndpoint }}
{{- $host := get (urlParse .) "host" }}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $host) | default (ternary "443" "80" (hasPrefix "https:" .)) }}
- ports:
    - {protocol: TCP, port: {{ $port }}}
  {{- with $.root.Values.networkPolicies.otlp.peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "waybill.egress.database" -}}
{{- $database := .root.Values.networkPolicies.database -}}
{{- if .root.Values.postgres.enabled -}}
- ports:
    - {protocol: TCP, port: 5432}
  to:
    - podSelector:
        {{- include "waybill.podsOf" (dict "root" .root "components" (list "postgres")) | nindent 8 }}
{{- else -}}
- ports:
    {{- include "waybill.ports" $database.ports | trim | nindent 4 }}
  {{- with $database.peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "waybill.egress.storage" -}}
{{- $storage := .root.Values.networkPolicies.storage -}}
{{- if .root.Values.storage.url }}
- ports:
    {{- include "waybill.ports" $storage.ports | trim | nindent 4 }}
  {{- with $storage.peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "waybill.egress.gateway" -}}
- ports:
    - {protocol: TCP, port: 8081}
  to:
    - podSelector:
        {{- include "waybill.podsOf" (dict "root" .root "components" (list "gateway")) | nindent 8 }}
{{- end -}}

{{- define "waybill.egress.kubernetesApi" -}}
{{- $api := .root.Values.networkPolicies.kubernetesApi -}}
- ports:
    {{- include "waybill.ports" $api.ports | trim | nindent 4 }}
  {{- with $api.peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "waybill.egress.extra" -}}
{{- $of := index .root.Values .component -}}
{{- with $of.extraEgress }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}
