{{/*
The objects come from files/, which hack/manifests generates from deploy/. The templates read
an object, apply the values to it, and print it. So the chart and deploy/ have one source.
*/}}

{{/* The image of the operators. */}}
{{- define "etcd-operator.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* One object of an operator: a dict of object, values (those of the operator) and root. */}}
{{- define "etcd-operator.object" -}}
{{- $object := .object }}
{{- $namespace := .root.Release.Namespace }}
{{- $wide := eq .root.Values.scope "clusterWide" }}
{{- if eq $object.kind "ServiceAccount" }}
{{- with .values.serviceAccountAnnotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end }}
{{- else if eq $object.kind "Deployment" }}
{{- include "etcd-operator.deployment" . }}
{{- else if and $wide (eq $object.kind "Role") }}
{{- $name := printf "%s-cluster-wide" $object.metadata.name }}
{{- $_ := set $object "kind" "ClusterRole" }}
{{- $_ := set $object.metadata "name" $name }}
{{- $_ := set (first $object.rules) "resourceNames" (list $name) }}
{{- else if and $wide (eq $object.kind "RoleBinding") }}
{{- $name := printf "%s-cluster-wide" $object.metadata.name }}
{{- $_ := set $object "kind" "ClusterRoleBinding" }}
{{- $_ := set $object.metadata "name" $name }}
{{- $_ := set $object.roleRef "kind" "ClusterRole" }}
{{- $_ := set $object.roleRef "name" $name }}
{{- end }}
{{- range $object.subjects }}{{ $_ := set . "namespace" $namespace }}{{ end }}
{{- if not (hasPrefix "Cluster" $object.kind) }}{{ $_ := set $object.metadata "namespace" $namespace }}{{ end }}
{{- toYaml $object }}
{{- end }}

{{/* Applies the values to a Deployment. It prints nothing. */}}
{{- define "etcd-operator.deployment" -}}
{{- $root := .root }}
{{- $values := .values }}
{{- $spec := .object.spec }}
{{- $pod := $spec.template.spec }}
{{- $container := first $pod.containers }}
{{- $_ := set $spec "replicas" $values.replicas }}
{{- $_ := set $container "image" (include "etcd-operator.image" $root) }}
{{- $_ := set $container "imagePullPolicy" ($root.Values.image.pullPolicy | default "IfNotPresent") }}
{{- $command := list (first $container.command) }}
{{- if ne $root.Values.crds "register" }}{{ $command = append $command "-create-crd=false" }}{{ end }}
{{- if eq $root.Values.scope "clusterWide" }}{{ $command = append $command "-cluster-wide" }}{{ end }}
{{- with $root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- /* A variable of the values replaces ours: Kubernetes refuses to apply one that is there twice. */}}
{{- $env := list }}
{{- $named := list }}
{{- range $values.env }}{{ $named = append $named .name }}{{ end }}
{{- range $container.env }}{{ if not (has .name $named) }}{{ $env = append $env . }}{{ end }}{{ end }}
{{- $_ := set $container "env" (concat $env ($values.env | default list)) }}
{{- with $values.podAnnotations }}{{ $_ := set $spec.template.metadata "annotations" . }}{{ end }}
{{- with $values.podLabels }}{{ $_ := set $spec.template.metadata "labels" (merge $spec.template.metadata.labels .) }}{{ end }}
{{- range $field := list "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $values $field }}{{ $_ := set $pod $field . }}{{ end }}
{{- end }}
{{- $volumes := $values.volumes | default list }}
{{- $mounts := $values.volumeMounts | default list }}
{{- $claim := dig "claimName" "" ($root.Values.backupVolume | default dict) }}
{{- if and $claim (ne .object.metadata.name "etcd-operator") }}
{{- $command = append $command "-volume-dir=/var/lib/etcd-backups" }}
{{- $mount := dict "name" "backups" "mountPath" "/var/lib/etcd-backups" }}
{{- if eq .object.metadata.name "etcd-restore-operator" }}
{{- $_ := set $mount "readOnly" true }}
{{- if not $values.affinity }}{{ $_ := set $pod "affinity" (include "etcd-operator.near-backups" . | fromYaml) }}{{ end }}
{{- end }}
{{- $_ := set $spec "strategy" (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 0 "maxUnavailable" 1)) }}
{{- /* OpenShift chooses the group, and refuses others. */}}
{{- if not ($root.Capabilities.APIVersions.Has "security.openshift.io/v1") }}{{ $_ := set $pod.securityContext "fsGroup" 65532 }}{{ end }}
{{- $mounts = append $mounts $mount }}
{{- $volumes = append $volumes (dict "name" "backups" "persistentVolumeClaim" (dict "claimName" $claim)) }}
{{- end }}
{{- with $mounts }}{{ $_ := set $container "volumeMounts" . }}{{ end }}
{{- with $volumes }}{{ $_ := set $pod "volumes" . }}{{ end }}
{{- $_ := set $container "command" (concat $command ($values.extraArgs | default list)) }}
{{- end }}

{{/* A pod on the backup operator's node can mount its volume too. */}}
{{- define "etcd-operator.near-backups" -}}
podAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          name: etcd-backup-operator
{{- end }}
