{{/* Refuses values that cannot work: all of them in one message, each with what to do. */}}

{{- define "waybill.checks" -}}
{{- $problems := list -}}
{{- range list "waybill.checks.names" "waybill.checks.images" "waybill.checks.database" "waybill.checks.storage" "waybill.checks.secrets" "waybill.checks.workers" "waybill.checks.scaling" "waybill.checks.settings" "waybill.checks.entrances" "waybill.checks.accounts" -}}
{{- range splitList "\n" (include . $) -}}
{{- with trim . -}}{{- $problems = append $problems (printf "- %s" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\nThese values do not work:\n\n%s\n" (join "\n" $problems)) -}}
{{- end -}}
{{- end -}}

{{/* One problem in each line. */}}

{{/* Names that people know from elsewhere, or from an older release of this chart: files/other-names.yaml. */}}
{{- define "waybill.checks.names" -}}
{{- $values := .Values -}}
{{- range $name, $advice := .Files.Get "files/other-names.yaml" | fromYaml -}}
{{- $here := $values -}}
{{- $found := true -}}
{{- range splitList "." $name -}}
{{- if and $found (kindIs "map" $here) (hasKey $here .) -}}{{- $here = get $here . -}}{{- else -}}{{- $found = false -}}{{- end -}}
{{- end }}
{{- if $found }}
{{ $name }}: there is no such value. {{ $advice }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.images" -}}
{{- if not .Values.image.registry -}}
{{- $missing := list -}}
{{- range $component := list "api" "worker" "gateway" "operator" "janitor" "migration" -}}
{{- $of := index $.Values $component -}}
{{- if and (not $of.image) (or (not (hasKey $of "enabled")) $of.enabled) -}}{{- $missing = append $missing $component -}}{{- end -}}
{{- end -}}
{{- if $missing }}
image.registry: is not set, and has no default, because the images are built by you. `make images REGISTRY=localhost` builds them. Load them into the nodes (for kind: `kind load docker-image localhost/waybill-{api,worker,gateway,janitor,operator,cli}:{{ include "waybill.text" (default .Chart.AppVersion .Values.image.tag) }}`) and add `--set image.registry=localhost`; or build with REGISTRY=registry.example.com/team, push them, and name that. docs/images.md has the details.
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.database" -}}
{{- $database := .Values.database -}}
{{- if .Values.postgres.enabled -}}
{{- if or $database.url $database.existingSecret }}
database: an address is given, and postgres.enabled is true, which runs a Postgres for evaluation. Set postgres.enabled=false to use yours.
{{- end -}}
{{- else if and $database.url $database.existingSecret }}
database: both url and existingSecret are set. Choose one; a secret stays out of the release's record.
{{- else if not (or $database.url $database.existingSecret) }}
database: postgres.enabled is false, so say where your Postgres is: database.existingSecret (a secret with the key `{{ $database.urlKey }}`), or database.url.
{{- end -}}
{{- with $database.url }}
{{- if not (regexMatch "^(postgres|postgresql|postgresql\\+asyncpg)://" .) }}
database.url: must be an address such as postgresql://user:password@host:5432/waybill.
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.storage" -}}
{{- $storage := .Values.storage -}}
{{- $volume := $storage.volume -}}
{{- if $storage.url -}}
{{- if not (regexMatch "^(s3|gs|az)://." $storage.url) }}
storage.url: must begin with s3://, gs:// or az://. For a folder leave it empty: the chart then mounts a volume.
{{- end -}}
{{- if $volume.existingClaim }}
storage: both url and volume.existingClaim are set. Choose one.
{{- end -}}
{{- else if not $volume.enabled }}
storage: there is neither a url nor a volume. Documents need a place: set storage.url to a bucket, or storage.volume.enabled=true.
{{- else -}}
{{- if has "ReadWriteOncePod" $volume.accessModes }}
storage.volume.accessModes: a ReadWriteOncePod volume can be used by one pod only, and API, workers and janitor share it. Use ReadWriteMany, or ReadWriteOnce with storage.volume.oneNode=true, or a bucket (storage.url).
{{- else if and (not (has "ReadWriteMany" $volume.accessModes)) (not $volume.oneNode) }}
storage.volume: a ReadWriteOnce volume cannot be mounted on several nodes, and oneNode is false. Use a volume with accessModes=[ReadWriteMany], keep all pods that mount it on one node (storage.volume.oneNode=true), or use a bucket (storage.url).
{{- end -}}
{{- end -}}
{{- if and $storage.existingSecret (or $storage.secret $storage.keyId) }}
storage: both existingSecret and secret or keyId are set. Choose one.
{{- else if and $storage.keyId (not $storage.secret) }}
storage.keyId: its secret is missing. Set storage.secret, or better storage.existingSecret.
{{- end -}}
{{- if and (or $storage.secret $storage.existingSecret) (not $storage.url) }}
storage: there are credentials and no url. Set storage.url to the bucket that they are for.
{{- end -}}
{{- end -}}

{{- define "waybill.checks.secrets" -}}
{{- if and .Values.adminKey.enabled (not .Values.migration.enabled) }}
adminKey: nobody would register the key, because migration.enabled is false. Set adminKey.enabled=false, and register one yourself: waybill apikey create admin -p admin.
{{- end -}}
{{- with .Values.telemetry.otlpEndpoint }}
{{- if not (regexMatch "^https?://[^/]+" .) }}
telemetry.otlpEndpoint: must be an address such as http://collector.observability:4318.
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.workers" -}}
{{- $source := .Values.autoscaling.metricsSource -}}
{{- if and (has $source (list "builtin" "prometheus-adapter")) (not .Values.operator.enabled) }}
autoscaling.metricsSource: `{{ $source }}` needs the operator, which tells how many workers are wanted. Set operator.enabled=true, or choose keda, cpu or none.
{{- end -}}
{{- if include "waybill.servesMetricsApi" . -}}
{{- $there := lookup "apiregistration.k8s.io/v1" "APIService" "" "v1beta1.external.metrics.k8s.io" | default dict -}}
{{- $annotations := dig "metadata" "annotations" dict $there | default dict -}}
{{- $ours := and (eq (get $annotations "meta.helm.sh/release-name") .Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .Release.Namespace) -}}
{{- if and $there (not $ours) -}}
{{- $service := dig "spec" "service" dict $there | default dict }}
autoscaling.metricsSource: `builtin` serves the external metrics API, of which a cluster has only one, and this cluster's belongs to {{ printf "%s/%s" (get $service "namespace" | default "somebody") (get $service "name" | default "else") }}. If that is KEDA, set autoscaling.metricsSource=keda; if it is the Prometheus adapter, prometheus-adapter; otherwise cpu or none.
{{- end -}}
{{- end -}}
{{- include "waybill.checks.definition" . -}}
{{- end -}}

{{/* Helm would refuse to take over what another release has installed, in words that do not help. */}}
{{- define "waybill.checks.definition" -}}
{{- if and .Values.operator.enabled .Values.crds.install -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "workerpools.waybill.dev" | default dict -}}
{{- $annotations := dig "metadata" "annotations" dict $there | default dict -}}
{{- $ours := and (eq (get $annotations "meta.helm.sh/release-name") .Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .Release.Namespace) -}}
{{- if and $there (not $ours) }}
crds.install: the definition of WorkerPool is in this cluster already; {{ with get $annotations "meta.helm.sh/release-name" }}the release {{ get $annotations "meta.helm.sh/release-namespace" }}/{{ . }} has brought it{{ else }}somebody else has brought it{{ end }}. Set crds.install=false to use that one.
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.scaling" -}}
{{- range $component := list "api" "gateway" "worker" -}}
{{- $scaling := (index $.Values $component).autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{ $component }}.autoscaling: minReplicas ({{ $scaling.minReplicas }}) is more than maxReplicas ({{ $scaling.maxReplicas }}).
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A variable that is there twice is refused by the API server, and only one would count. */}}
{{- define "waybill.checks.settings" -}}
{{- $always := list "WAYBILL_WORKER_CONCURRENCY" "WAYBILL_WORKER_PROCESSES" "WAYBILL_WORKER_QUEUES" "WAYBILL_WORKER_KINDS" "WAYBILL_API_HOSTS" "WAYBILL_API_TRUSTED_PROXIES" "WAYBILL_API_CORS_ORIGINS" "WAYBILL_OTLP_ENDPOINT" "WAYBILL_OTLP_PROTOCOL" "WAYBILL_OTLP_HEADERS" "WAYBILL_TRACE_SAMPLE_RATIO" "WAYBILL_TRACE_URL_TEMPLATE" "WAYBILL_STORAGE_KEY_ID" "WAYBILL_STORAGE_SECRET" "WAYBILL_MAPPINGS_DIR" -}}
{{- $all := $always -}}
{{- range $component := list "api" "worker" "gateway" "operator" "janitor" "migration" -}}
{{- $own := $always -}}
{{- range include "waybill.environment.own" (dict "root" $ "component" $component) | fromYamlArray -}}{{- $own = append $own .name -}}{{- end -}}
{{- $all = concat $all $own -}}
{{- range (index $.Values $component).extraEnv -}}
{{- if or (has .name $own) (hasKey $.Values.settings .name) }}
{{ $component }}.extraEnv: {{ .name }} is set already, by the chart or by `settings`. Use the value that is there for it: README.md lists them.
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := keys .Values.settings | sortAlpha -}}
{{- if has $name $all }}
settings.{{ $name }}: the chart sets this one itself. Use the value that is there for it: README.md lists them.
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waybill.checks.entrances" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
ingress.hosts: is empty. Name the host that people type, such as [waybill.example.com].
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
httpRoute.parentRefs: is empty. Name the gateway that the route belongs to, such as [{name: public, namespace: gateways}].
{{- end -}}
{{- end -}}

{{/* Rights for the account `default` would be rights for every pod of the namespace. */}}
{{- define "waybill.checks.accounts" -}}
{{- range $component := list "operator" "janitor" -}}
{{- $of := index $.Values $component -}}
{{- $hasRights := and $of.enabled (or (eq $component "operator") $.Values.janitor.watchPods) -}}
{{- if and $hasRights (eq (include "waybill.serviceAccountName" (dict "root" $ "component" $component)) "default") }}
{{ $component }}.serviceAccount: with the account `default`, every pod of the namespace would have the {{ $component }}'s rights. Name one of its own (serviceAccount.name), or let the chart make it (serviceAccount.create=true).
{{- end -}}
{{- end -}}
{{- end -}}
