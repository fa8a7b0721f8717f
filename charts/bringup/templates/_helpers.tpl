{{- define "bringup.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "bringup.fullname" -}}
{{- $name := include "bringup.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Cluster-wide objects of two releases in two namespaces must not share a name. */}}
{{- define "bringup.clusterName" -}}
{{- $name := include "bringup.fullname" . -}}
{{- if or (eq .Release.Namespace "bringup-system") (eq .Release.Namespace $name) -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Namespace $name -}}
{{- end -}}
{{- end -}}

{{- define "bringup.selector" -}}
app.kubernetes.io/name: {{ include "bringup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bringup.labels" -}}
{{ include "bringup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: controller
app.kubernetes.io/part-of: bringup
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bringup.metadata" -}}
name: {{ include "bringup.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "bringup.labels" . | nindent 2 }}
{{- end -}}

{{- define "bringup.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "bringup.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "bringup.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Where Karpenter asks. */}}
{{- define "bringup.flexName" -}}
{{- printf "%s-flex" (include "bringup.fullname" .) -}}
{{- end -}}

{{/* The ConfigMap with what machines are told. bringup itself keeps one named bringup-flex. */}}
{{- define "bringup.joinConfigMap" -}}
{{- default (printf "%s-join" (include "bringup.flexName" .)) .Values.flex.existingJoinConfigMap -}}
{{- end -}}

{{- define "bringup.affinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
          - key: karpenter.sh/nodepool
            operator: DoesNotExist
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "bringup.selector" . | nindent 12 }}
{{- end -}}

{{- define "bringup.topologySpreadConstraints" -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "bringup.selector" . | nindent 6 }}
{{- end -}}
