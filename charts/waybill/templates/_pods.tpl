{{/* What the pods of all components have in common. Each takes `root` and `component`. */}}

{{/* What a container may do: nothing that it was not given. */}}
{{- define "waybill.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
privileged: false
readOnlyRootFilesystem: true
{{- end -}}

{{/*
Where a component's pods run, and as whom. Service links are off: the service `waybill-api` would set the variable
WAYBILL_API_PORT in every pod of the namespace.
*/}}
{{- define "waybill.podBasics" -}}
{{- $root := .root -}}
{{- $of := index .root.Values .component -}}
{{- $pods := .root.Values.pods -}}
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml $pods.securityContext | nindent 2 }}
{{- with default $pods.priorityClassName $of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with default $pods.nodeSelector $of.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $pods.tolerations $of.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "waybill.affinity" . }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The component's own affinity, and what keeps all pods with a volume that one node can mount on that node. */}}
{{- define "waybill.affinity" -}}
{{- $of := index .root.Values .component -}}
{{- $affinity := deepCopy (default dict $of.affinity) -}}
{{- if and (include "waybill.mountsVolume" .) (include "waybill.onOneNode" .root) -}}
{{- $together := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (dict "waybill.dev/volume" (include "waybill.fullname" .root))) -}}
{{- $pods := get $affinity "podAffinity" | default dict -}}
{{- $required := append (get $pods "requiredDuringSchedulingIgnoredDuringExecution" | default list) $together -}}
{{- $_ := set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "podAffinity" $pods -}}
{{- end -}}
{{- with $affinity -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* How pods that stay are spread over zones and nodes. */}}
{{- define "waybill.spread" -}}
{{- $root := .root -}}
{{- $context := . -}}
{{- $of := index .root.Values .component -}}
{{- if $of.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $of.topologySpreadConstraints | nindent 2 }}
{{- else if $root.Values.pods.spread }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "waybill.selector" $context | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Waits until the database has the schema that this image needs. It needs no right but to read. */}}
{{- define "waybill.awaitSchema" -}}
{{- $of := index .root.Values .component -}}
- name: await-schema
  image: {{ include "waybill.image" (dict "root" .root "of" $of "image" .component) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [python, -m, waybill.db.schema_gate, {{ include "waybill.text" .root.Values.migration.waitSeconds | quote }}]
  env:
    {{- include "waybill.environment.process" . | nindent 4 }}
    {{- include "waybill.environment.database" . | nindent 4 }}
  securityContext:
    {{- include "waybill.containerSecurity" . | nindent 4 }}
  resources:
    {{- toYaml .root.Values.migration.resources | nindent 4 }}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* The beginning of a component's main container: image, variables, rights, resources, mounts. */}}
{{- define "waybill.container" -}}
{{- $root := .root -}}
{{- $of := index .root.Values .component -}}
image: {{ include "waybill.image" (dict "root" $root "of" $of "image" (default .component .image)) }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
env:
  {{- include "waybill.environment" . | nindent 2 }}
{{- with $of.extraEnvFrom }}
envFrom:
  {{- tpl (toYaml .) $root | nindent 2 }}
{{- end }}
securityContext:
  {{- include "waybill.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml $of.resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if include "waybill.mountsVolume" . }}
  - {name: storage, mountPath: /data}
  {{- end }}
  {{- if and $root.Values.gateway.mappingsConfigMap (has .component (list "api" "gateway" "worker")) }}
  - {name: mappings, mountPath: /etc/waybill/mappings, readOnly: true}
  {{- end }}
  {{- with .mounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $of.extraVolumeMounts }}
  {{- tpl (toYaml .) $root | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "waybill.volumes" -}}
{{- $root := .root -}}
{{- $of := index .root.Values .component -}}
volumes:
  - name: tmp
    emptyDir:
      sizeLimit: {{ $root.Values.pods.tmpSize }}
  {{- if include "waybill.mountsVolume" . }}
  - name: storage
    persistentVolumeClaim:
      claimName: {{ include "waybill.claim" $root }}
  {{- end }}
  {{- if and $root.Values.gateway.mappingsConfigMap (has .component (list "api" "gateway" "worker")) }}
  - name: mappings
    configMap:
      name: {{ $root.Values.gateway.mappingsConfigMap }}
  {{- end }}
  {{- with .volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $of.extraVolumes }}
  {{- tpl (toYaml .) $root | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Probes of a service: `port` is a port's name. The first start of a cold node may take a while. */}}
{{- define "waybill.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* Waits before SIGTERM, in an image without a shell. */}}
{{- define "waybill.preStop" -}}
{{- if gt (int .seconds) 0 }}
lifecycle:
  preStop:
    {{- if semverCompare ">=1.30-0" .root.Capabilities.KubeVersion.Version }}
    sleep: {seconds: {{ int .seconds }}}
    {{- else }}
    exec: {command: [python, -c, "import time; time.sleep({{ int .seconds }})"]}
    {{- end }}
{{- end }}
{{- end -}}
