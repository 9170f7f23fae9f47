{{- define "penstock.labels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Any value as text in quotes. Helm reads numbers as floats, and would write 64000000 as 6.4e+07. */}}
{{- define "penstock.text" -}}
{{- if kindIs "float64" . }}{{ toJson . | quote }}{{ else }}{{ quote . }}{{ end }}
{{- end }}
