{{- define "vllm-scaler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vllm-scaler.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "vllm-scaler.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{ include "vllm-scaler.selectorLabels" . }}
{{- end -}}

{{- define "vllm-scaler.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "vllm-scaler.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "vllm-scaler.warmPriorityClass" -}}
{{- .Values.warm.priorityClass.name | default (printf "%s-warm" (include "vllm-scaler.fullname" . | trunc 58 | trimSuffix "-")) -}}
{{- end -}}

{{- define "vllm-scaler.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What the scaler may do where its ScaledObjects live. Each verb is a call that it makes. */}}
{{- define "vllm-scaler.rules" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, watch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch{{ if or .Values.removal.idleFirst .Values.removal.protectBusy }}, patch{{ end }}]
{{- if not .Values.watchNamespaces }}
- apiGroups: [""]
  resources: [nodes] # to say which have come without the device that pods wait for
  verbs: [list, watch]
{{- end }}
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [list, watch]
{{- if .Values.delivery.direct }}
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale]
  verbs: [patch]
{{- end }}
{{- range .Values.extraScaleTargets }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [list, watch]
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ .resource }}/scale]
  verbs: {{ if $.Values.delivery.direct }}[get, patch]{{ else }}[get]{{ end }}
{{- end }}
{{- if .Values.ray.enabled }}
- apiGroups: [vllm-scaler.dev]
  resources: [rayworkergroups]
  verbs: [list, watch, patch]
- apiGroups: [vllm-scaler.dev]
  resources: [rayworkergroups/status]
  verbs: [patch]
- apiGroups: [vllm-scaler.dev]
  resources: [rayworkergroups/scale]
  verbs: {{ if .Values.delivery.direct }}[get, patch]{{ else }}[get]{{ end }}
- apiGroups: [ray.io]
  resources: [rayclusters, rayservices]
  verbs: [list, watch, patch]
{{- end }}
{{- if .Values.warm.enabled }}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get{{ if ne .Values.warm.by "buffer" }}, create, patch, delete{{ end }}]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get]
{{- range .Values.extraScaleTargets }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [get]
{{- end }}
{{- if .Values.ray.enabled }}
- apiGroups: [vllm-scaler.dev]
  resources: [rayworkergroups]
  verbs: [get]
- apiGroups: [ray.io]
  resources: [rayclusters, rayservices]
  verbs: [get]
{{- end }}
{{- if ne .Values.warm.by "placeholders" }}
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [list, create, patch, delete]
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacitybuffers]
  verbs: [create, patch, delete]
{{- end }}
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
