# SPDX-License-Identifier: Apache-2.0
"""The configuration that people start from, its hosts and ports to be filled in."""

CONFIG = """\
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{grpc}
      http:
        endpoint: 127.0.0.1:{http}
  otlp/profiles:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{profiles}
processors:
  batch:
    timeout: 1s
  resource:
    attributes:
    - key: service.name
      from_attribute: service.name
      action: upsert
exporters:
  otlphttp/traces:
    endpoint: {traces}
    headers:
      x-token: ${{BACKEND_TOKEN}}
  otlphttp/pyroscope:
    endpoint: {pyroscope}
service:
  pipelines:
    traces:
      receivers: [otlp]
      processors: [batch, resource]
      exporters: [otlphttp/traces]
    profiles:
      receivers: [otlp/profiles]
      processors: [batch]
      exporters: [otlphttp/pyroscope]
"""
