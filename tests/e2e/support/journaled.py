# SPDX-License-Identifier: Apache-2.0
"""A daemon whose pipelines have journals, between clients that send without a pause and a back-end
that comes and goes."""

import tempfile

from . import case, kill_load
from .ports import free_port


def config(ports, back_end, storage, pipelines, exporter="otlp_http", **parts):
    """The section of file_storage; pipelines by name, each with its receivers and processors. Parts:
    receivers and processors besides otlp and batch, keys of the exporter, its sending_queue,
    max_elapsed_time of its retries."""
    queue = parts.get("queue", "storage: file_storage")
    retried_for = parts.get("max_elapsed_time", "1s")
    lines = "".join(
        f"    {name}: {{receivers: [{receivers}], processors: [{processors}], "
        f"exporters: [{exporter}]}}\n"
        for name, (receivers, processors) in pipelines.items()
    )
    return f"""extensions:
  file_storage: {storage}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: '127.0.0.1:{ports["grpc"]}'}}
      http: {{endpoint: '127.0.0.1:{ports["http"]}'}}
{parts.get("receivers", "")}processors:
  batch: {{timeout: 50ms}}
{parts.get("processors", "")}exporters:
  {exporter}:
    endpoint: {back_end.url}
{parts.get("keys", "")}    sending_queue: {{{queue}}}
    retry_on_failure:
      {{initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: {retried_for}}}
service:
  extensions: [file_storage]
  lanes: 2
  drain_timeout: 10s
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
{lines}"""


class Case(case.Case):
    PORTS = ("grpc", "http")

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="spanflame-journal-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.ports = {kind: free_port() for kind in self.PORTS}
        self.back_end = kill_load.BackEnd(free_port())
        self.addCleanup(self.back_end.close)
