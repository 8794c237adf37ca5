{{/* The external metrics API that the operator serves, and its certificate. */}}

{{- define "waybill.servesMetricsApi" -}}
{{- if and .Values.operator.enabled (eq .Values.autoscaling.metricsSource "builtin") -}}true{{- end -}}
{{- end -}}

{{- define "waybill.tlsSecret" -}}
{{- printf "%s-operator-tls" (include "waybill.fullname" .) -}}
{{- end -}}

{{- define "waybill.metricsApiNames" -}}
{{- $service := printf "%s-operator" (include "waybill.fullname" .) -}}
{{- list (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) | toYaml -}}
{{- end -}}

{{/*
The certificate as the chart makes it: kept until a third of its life is over, then made anew by the next upgrade. It is
made once in a rendering, because the secret and the APIService must agree.
*/}}
{{- define "waybill.certificate" -}}
{{- if not (hasKey .Values "_certificate") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "waybill.tlsSecret" .) | default dict -}}
{{- $data := get $there "data" | default dict -}}
{{- $renewAfter := dig "metadata" "annotations" "waybill.dev/renew-after" "0" $there -}}
{{- if and (get $data "ca.crt") (get $data "tls.crt") (get $data "tls.key") (lt (now | unixEpoch | int64) (int64 $renewAfter)) -}}
{{- $_ := set .Values "_certificate" (dict "ca.crt" (get $data "ca.crt") "tls.crt" (get $data "tls.crt") "tls.key" (get $data "tls.key") "renewAfter" $renewAfter) -}}
{{- else -}}
{{- $days := int .Values.operator.tls.validityDays -}}
{{- $names := include "waybill.metricsApiNames" . | fromYamlArray -}}
{{- $ca := genCA (printf "%s-operator" (include "waybill.fullname" .)) $days -}}
{{- $made := genSignedCert (first $names) nil $names $days $ca -}}
{{- $renewAfter = add (now | unixEpoch | int64) (mul (div $days 3) 86400) | toString -}}
{{- $_ := set .Values "_certificate" (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $made.Cert) "tls.key" (b64enc $made.Key) "renewAfter" $renewAfter) -}}
{{- end -}}
{{- end -}}
{{- toYaml .Values._certificate -}}
{{- end -}}
