# SPDX-License-Identifier: Apache-2.0
"""Configurations beside the Go collector: both accept and refuse the same ones."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from support import case, client, peers, process
from support.ports import free_port
from support.process import run

PLAIN = """\
receivers: {{otlp: {{protocols: {{grpc: {grpc}, http: {http}}}}}}}
processors: {{batch: {batch}, memory_limiter: {{check_interval: 1s, limit_mib: 400}}}}
exporters:
  debug: {debug}
  otlp_http: {otlp_http}
  otlp_grpc: {otlp_grpc}
extensions: {{zpages: {zpages}, health_check: {health_check}}}
service:
  extensions: [zpages, health_check]
  telemetry: {telemetry}
  pipelines:
    traces:
      receivers: [otlp]
      processors: [memory_limiter, batch]
      exporters: [debug, otlp_http, otlp_grpc]
"""
STANDARD = {
    "grpc": "{endpoint: '127.0.0.1:0'}",
    "http": "{endpoint: '127.0.0.1:0'}",
    "batch": "",
    "debug": "",
    "otlp_http": "{endpoint: 'http://localhost:1'}",
    "otlp_grpc": "{endpoint: 'localhost:1', tls: {insecure: true}}",
    "zpages": "{endpoint: '127.0.0.1:0'}",
    "health_check": "{endpoint: '127.0.0.1:0'}",
    "telemetry": "{metrics: {level: none}}",
}
WEB = "{endpoint: 'http://localhost:1', %s}"
GRPC = "{endpoint: '127.0.0.1:0', %s}"
MANY = ", ".join(f"k{number}: v" for number in range(20000))
HEADERS = ", ".join(f"x-{number}: v" for number in range(64))
ENVIRONMENT = {
    "T_INT": "5",
    "T_DATE": "2001-01-01",
    "T_LIST": "[a, b]",
    "T_BOOL": "true",
    "T_NULL": "null",
}

# What is put in, and where; the Go collector says whether it is right.
CASES = [
    ("zpages", "{expvar: {enabled: true}}"),
    ("health_check", "{use_v2: false}"),
    ("health_check", "{path: health}"),
    ("grpc", GRPC % "max_recv_msg_size_mib: 999999999"),
    ("grpc", GRPC % "max_recv_msg_size_mib: 4096"),
    ("grpc", GRPC % "max_recv_msg_size_mib: -1"),
    ("grpc", GRPC % "read_buffer_size: 99999999999"),
    ("grpc", GRPC % "tls: '${env:T_UNSET}'"),
    ("http", "{endpoint: '127.0.0.1:0', max_request_body_size: 9000000000000}"),
    ("http", "{endpoint: '127.0.0.1:0', keep_alives_enabled: yes}"),
    ("http", "{endpoint: '127.0.0.1:0', keep_alives_enabled: '${env:T_BOOL}'}"),
    ("http", "{endpoint: '127.0.0.1:0', compression_algorithms: [gzip, br]}"),
    ("http", "{endpoint: '127.0.0.1:0', compression_algorithms: GZIP}"),
    ("http", "{endpoint: '127.0.0.1:0', compression_algorithms: [1]}"),
    ("http", "{endpoint: '127.0.0.1:0', response_headers: {%s}}" % HEADERS),
    ("http", "{endpoint: '127.0.0.1:0', read_timeout: -5s, idle_timeout: '-1s'}"),
    ("http", "{endpoint: '127.0.0.1:0', read_header_timeout: -5s, write_timeout: -1ns}"),
    ("grpc", GRPC % "keepalive: {server_parameters: {max_connection_idle: -5s, time: -1s}}"),
    ("grpc", GRPC % "keepalive: {enforcement_policy: {min_time: -5s}}"),
    ("grpc", GRPC % "dialer: {timeout: -5s}"),
    ("otlp_http", "{endpoint: 'localhost:4318'}"),
    ("otlp_http", "{endpoint: localhost}"),
    ("otlp_http", "{endpoint: '127.0.0.1:4318'}"),
    ("otlp_http", "{endpoint: '//localhost:4318'}"),
    ("otlp_http", "{endpoint: otel-collector:4318/base}"),
    ("otlp_http", "{endpoint: 'http://localhost:x'}"),
    ("otlp_http", WEB % "timeout: 2001-01-01"),
    ("otlp_http", WEB % "timeout: '5'"),
    ("otlp_http", WEB % "timeout: 5"),
    ("otlp_http", WEB % "timeout: 010"),
    ("otlp_http", WEB % "compression: GZIP"),
    ("otlp_http", WEB % "compression: 2001-01-01"),
    ("otlp_http", WEB % "compression: !!binary Z3ppcA=="),
    ("otlp_http", WEB % "traces_endpoint: 2001-01-01"),
    ("otlp_http", WEB % "headers: {a: 2001-01-01}"),
    ("otlp_http", WEB % "headers: {a: '2001-01-01'}"),
    ("otlp_http", WEB % "headers: {a: '${env:T_DATE}'}"),
    ("otlp_http", WEB % "headers: {a: 5}"),
    ("otlp_http", WEB % "headers: {a: '${env:T_INT}'}"),
    ("otlp_http", WEB % ("headers: {" + MANY + "}")),
    ("otlp_http", WEB % "tls: {tpm: {}}"),
    ("otlp_http", WEB % "tls: {min_version: 1.3}"),
    ("otlp_http", WEB % "tls: {min_version: '1.9'}"),
    ("otlp_http", WEB % "middlewares: 5"),
    ("otlp_http", WEB % "retry_on_failure: {enabled: }"),
    ("otlp_http", WEB % "retry_on_failure: {multiplier: -1}"),
    ("otlp_http", WEB % "sending_queue: {enabled: }"),
    ("otlp_http", WEB % "sending_queue: {sizer: ITEMS}"),
    ("otlp_http", WEB % "sending_queue: {batch: {partition: {metadata_keys: [a, A]}}}"),
    ("otlp_http", WEB % "sending_queue: {sizer: ''}"),
    ("otlp_http", WEB % "sending_queue: {sizer: }"),
    ("otlp_http", WEB % "sending_queue: {sizer: '${env:T_NULL}'}"),
    ("otlp_http", WEB % "sending_queue: {storage: ''}"),
    ("otlp_http", WEB % "sending_queue: {storage: '${env:T_NULL}'}"),
    ("otlp_http", WEB % "sending_queue: {batch: {sizer: ''}}"),
    ("otlp_http", WEB % "sending_queue: {batch: {flush_timeout: -1s}}"),
    ("otlp_http", WEB % "retry_on_failure: {initial_interval: -1s}"),
    ("otlp_http", WEB % "timeout: -5s"),
    ("otlp_http", WEB % "idle_conn_timeout: -5s"),
    ("otlp_http", WEB % "max_idle_conns: -1, max_idle_conns_per_host: -1"),
    ("otlp_http", WEB % "max_conns_per_host: -1"),
    ("otlp_http", WEB % "cookies: {}"),
    ("otlp_http", WEB % "cookies: {enabled: true}"),
    ("otlp_http", WEB % "cookies: {a: b}"),
    ("otlp_http", WEB % "proxy_url: 'HTTP://127.0.0.1:1'"),
    ("otlp_http", WEB % "compression_params: {level: 11}"),
    ("otlp_grpc", "{endpoint: 'localhost:1', balancer_name: random}"),
    ("otlp_grpc", "{endpoint: 'localhost:1', keepalive: {time: -5s, timeout: -1s}}"),
    ("otlp_grpc", "{endpoint: 'localhost:1', tls: {reload_interval: -5s}}"),
    ("otlp_grpc", "{endpoint: 'localhost:1', timeout: -5s}"),
    ("batch", "{timeout: -5s}"),
    ("batch", "{metadata_keys: [a, A]}"),
    ("batch", "{metadata_keys: 'a,b'}"),
    ("batch", "{send_batch_size: 0x10}"),
    ("batch", "{send_batch_size: 1.0}"),
    ("debug", "{verbosity: Detailed}"),
    ("debug", "{verbosity: NORMAL}"),
    ("debug", "{verbosity: 1}"),
    ("debug", "{verbosity: 3}"),
    ("debug", "{verbosity: }"),
    ("debug", "{verbosity: none}"),
    ("debug", "{sampling_initial: -1, sampling_thereafter: -1}"),
    ("debug", "{output_paths: []}"),
    ("debug", "{use_internal_logger: false}"),
    ("debug", "{use_internal_logger: false, output_paths: }"),
    ("debug", "{use_internal_logger: false, output_paths: []}"),
    ("debug", "{use_internal_logger: false, output_paths: ''}"),
    ("telemetry", "{metrics: {level: Detailed, views: []}, logs: {level: WARN}}"),
    ("telemetry", "{metrics: {level: detailed, views: 5}}"),
    ("telemetry", "{metrics: {level: none}, traces: {level: loud}}"),
    ("telemetry", "{metrics: {level: none}, resource: {schema_url: 5}}"),
    ("telemetry", "{metrics: {level: none}, resource: {attributes: {a: b}}}"),
    ("telemetry", "{metrics: {level: none}, resource: {attributes_list: 'a=b'}}"),
    ("telemetry", "{metrics: {level: none}, resource: {detectors: [a]}}"),
    ("telemetry", "{metrics: {level: none}, resource: {a: 2001-01-01}}"),
    ("telemetry", "{metrics: {level: none}, resource: {" + "é" * 600 + ": a}}"),
    ("telemetry", "{metrics: {level: none}, resource: {" + "e" * 1100 + ": a}}"),
]

# Connectors: what stands below connectors, then the pipelines by name: receivers, exporters.
CONNECTED = [
    ("{forward: }", {"traces": ("nop", "nop")}),
    ("{forward: {a: 1}}", {"traces": ("nop", "nop")}),
    ("{forward: {}}", {"traces": ("nop", "forward"), "traces/b": ("forward", "nop")}),
    ("{forward: }", {"traces": ("nop", "forward")}),
    ("{forward: }", {"traces": ("forward", "nop")}),
    ("{forward: }", {"traces": ("nop", "forward"), "logs": ("forward", "nop")}),
    (
        "{forward: }",
        {
            "traces": ("nop", "forward"),
            "traces/b": ("forward", "nop"),
            "logs": ("forward", "nop"),
        },
    ),
    (
        "{forward: }",
        {
            "traces": ("nop", "forward, nop, forward"),
            "traces/b": ("forward, nop", "nop"),
            "logs": ("nop", "forward"),
            "logs/b": ("forward, forward", "nop"),
            "metrics": ("nop", "forward"),
            "metrics/b": ("forward", "nop"),
        },
    ),
    ("{forward: }", {"traces": ("nop, forward", "nop, forward")}),
    (
        "{forward: , forward/2: }",
        {
            "traces": ("nop", "forward"),
            "traces/b": ("forward", "forward/2"),
            "traces/c": ("forward/2", "nop"),
        },
    ),
    (
        "{forward: , forward/2: }",
        {
            "traces": ("nop, forward/2", "forward"),
            "traces/b": ("forward", "forward/2, nop"),
        },
    ),
    ("{forward: }", {"traces": ("nop", "forward/x"), "traces/b": ("forward", "nop")}),
    ("{nop: }", {"traces": ("nop", "nop")}),
    ("{forward/nop: , forward: }", {"traces": ("nop", "nop")}),
    ("{spanmetrics: }", {"traces": ("nop", "nop")}),
    ("{unknown: }", {"traces": ("nop", "nop")}),
    ("{span_metrics: }", {"traces": ("nop", "span_metrics")}),
    ("{span_metrics: }", {"traces": ("nop", "span_metrics"), "traces/b": ("span_metrics", "nop")}),
    *(
        (
            "{span_metrics: {%s}}" % keys,
            {"traces": ("nop", "span_metrics"), "metrics": ("span_metrics", "nop")},
        )
        for keys in (
            "",
            "histogram: {unit: S}",
            "histogram: {unit: 1}",
            "histogram: {unit: h}",
            "histogram: {explicit: , exponential: {}}",
            "histogram: {explicit: {}, exponential: {}}",
            "histogram: {explicit: {buckets: [1ms, 5]}}",
            "histogram: {explicit: {buckets: 1ms}}",
            "histogram: {explicit: {buckets: [x]}}",
            "dimensions: [{name: a, default: ''}, {glob: b*}]",
            "dimensions: [{name: service.name}]",
            "dimensions: [{glob: 'a', default: x}]",
            "dimensions: [{glob: '[a'}]",
            "dimensions: {name: a}",
            "dimensions: [a]",
            "events: {enabled: true}",
            "metrics_flush_interval: -1s",
            "metrics_expiration: -1s",
            "aggregation_temporality: delta",
            "aggregation_temporality: ",
            "resource_metrics_cache_size: 0",
            "exemplars: {enabled: true, max_per_data_point: -1}",
            "metric_timestamp_cache_size: ",
            "namespace: ",
            "unknown: true",
        )
    ),
    ("[forward]", {"traces": ("nop", "nop")}),
    ("", {"traces": ("nop", "nop")}),
]

# file_storage: what it says ({here} is a directory, {here}/file a file), the exporters, and the
# extensions of the service.
ONE = "{otlp_http: {endpoint: 'http://localhost:1', sending_queue: {storage: file_storage}}}"
HERE = "{file_storage: {directory: '{here}', %s}}"
LISTED = "[file_storage]"
STORED = [
    *(
        (HERE % keys, ONE, LISTED)
        for keys in (
            "",
            "fsync: true",
            "fsync: ",
            "fsync: 1",
            "fsync: 'true'",
            "timeout: 10s",
            "timeout: 0",
            "timeout: -1s",
            "timeout: ",
            "timeout: 5",
            "timeout: soon",
            "recreate: true",
            "recreate: maybe",
            "recreate: ",
            "create_directory: true",
            "create_directory: ''",
            "directory_permissions: '0700'",
            "directory_permissions: 0700",
            "directory_permissions: 448",
            "directory_permissions: nonsense",
            "directory_permissions: ",
            "create_directory: true, directory_permissions: '0700'",
            "create_directory: true, directory_permissions: 0700",
            "create_directory: true, directory_permissions: 0o700",
            "create_directory: true, directory_permissions: 700",
            "create_directory: true, directory_permissions: 800",
            "create_directory: true, directory_permissions: '0o700'",
            "create_directory: true, directory_permissions: '0x1f'",
            "create_directory: true, directory_permissions: '+700'",
            "create_directory: true, directory_permissions: '-700'",
            "create_directory: true, directory_permissions: '-0'",
            "create_directory: true, directory_permissions: '+'",
            "create_directory: true, directory_permissions: '7_0'",
            "create_directory: true, directory_permissions: '800'",
            "create_directory: true, directory_permissions: '1777'",
            "create_directory: true, directory_permissions: '00000000000777'",
            "create_directory: true, directory_permissions: '77777777777'",
            "create_directory: true, directory_permissions: '0'",
            "create_directory: true, directory_permissions: ''",
            "create_directory: true, directory_permissions: ' 700'",
            "create_directory: true, directory_permissions: ",
            "compaction: ",
            "compaction: {}",
            "compaction: []",
            "compaction: {on_start: true}",
            "compaction: {on_start: true, directory: '{here}'}",
            "compaction: {on_start: true, directory: '{here}/none'}",
            "compaction: {on_start: true, directory: '{here}/file'}",
            "compaction: {on_rebound: true, directory: '{here}/none'}",
            "compaction: {on_rebound: true, directory: '{here}/none'}, create_directory: true",
            "compaction: {directory: '{here}/none'}",
            "compaction: {directory: }",
            "compaction: {on_rebound: true, directory: '{here}', check_interval: 0}",
            "compaction: {on_rebound: true, directory: '{here}', check_interval: -1s}",
            "compaction: {on_rebound: true, directory: '{here}', check_interval: 1s}",
            "compaction: {check_interval: 0}",
            "compaction: {check_interval: -1s}",
            "compaction: {max_transaction_size: -1}",
            "compaction: {max_transaction_size: 0}",
            "compaction: {max_transaction_size: 9223372036854775808}",
            "compaction: {rebound_needed_threshold_mib: -5, rebound_trigger_threshold_mib: 1}",
            "compaction: {rebound_needed_threshold_mib: 1.5}",
            "compaction: {cleanup_on_start: true}",
            "compaction: {cleanup_on_start: 3}",
            "compaction: {on: true}",
            "max_sizes: 5",
            "unknown: 5",
            "directories: []",
        )
    ),
    ("{file_storage: }", ONE, LISTED),
    ("{file_storage: {}}", ONE, LISTED),
    ("{file_storage: []}", ONE, LISTED),
    ("{file_storage: {directory: }}", ONE, LISTED),
    ("{file_storage: {directory: ''}}", ONE, LISTED),
    ("{file_storage: {directory: '', create_directory: true}}", ONE, LISTED),
    ("{file_storage: {directory: 5}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/file'}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/file/below'}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/none'}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/none', create_directory: true}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/none/none', create_directory: true}}", ONE, LISTED),
    ("{file_storage: {directory: '{here}/./'}}", ONE, LISTED),
    ("{file_storage: {directory: '/proc/self'}}", ONE, LISTED),
    (HERE % "", ONE.replace("storage: file_storage", "storage: [a]"), LISTED),
    (HERE % "", ONE.replace("storage: file_storage", "storage: 'a b'"), LISTED),
    (HERE % "", ONE.replace("storage: file_storage", "storage: file_storage/"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, wait_for_result: true}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, block_on_overflow: true}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, queue_size: 0}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, num_consumers: 0}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, enabled: false}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, enabled: false}"), "[]"),
    (HERE % "", ONE.replace("file_storage}", "nothing, enabled: false}"), "[]"),
    (HERE % "", ONE.replace("file_storage}", "file_storage, batch: {}}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, sizer: bytes}"), LISTED),
    (HERE % "", ONE.replace("file_storage}", "file_storage, sizer: items}"), LISTED),
    (
        "{file_storage: {directory: '{here}'}, file_storage/b: {directory: '{here}/b'}}",
        "{otlp_http: {endpoint: 'http://localhost:1', sending_queue: {storage: file_storage}}, "
        "otlp_grpc: {endpoint: 'localhost:1', sending_queue: {storage: file_storage/b}}}",
        "[file_storage, file_storage/b]",
    ),
    (
        "{file_storage: {directory: '{here}'}, file_storage/b: {directory: '{here}'}}",
        "{otlp_http: {endpoint: 'http://localhost:1', sending_queue: {storage: file_storage}}, "
        "otlp_grpc: {endpoint: 'localhost:1', sending_queue: {storage: file_storage/b}}}",
        "[file_storage, file_storage/b]",
    ),
]
# What the Go collector refuses only when it starts, and what it says.
STORED_NOWHERE = [
    (HERE % "", ONE, "[]", "no storage client extension found"),
    (
        HERE % "",
        ONE.replace("storage: file_storage", "storage: file_storage/b"),
        LISTED,
        "no storage client extension found",
    ),
    (
        HERE % "",
        ONE.replace("storage: file_storage", "storage: nothing"),
        LISTED,
        "no storage client extension found",
    ),
    (
        HERE % "",
        ONE.replace("storage: file_storage", "storage: zpages"),
        "[file_storage, zpages]",
        "requested extension is not a storage extension",
    ),
]


class BesideTheGoCollector(case.Case):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "otel.yaml")

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def ask_both(self):
        """The Go collector's verdict, and ours with what we said."""
        ours = run("validate", "--config", self.path, environment=ENVIRONMENT)
        self.assertIn(ours.returncode, (0, 1), ours.stderr)
        go = subprocess.run(
            [peers.otelcol(), "validate", "--config", self.path],
            capture_output=True,
            timeout=60,
            env={**os.environ, **ENVIRONMENT},
        )
        return go.returncode == 0, ours.returncode == 0, ours.stderr

    def test_verdicts_are_the_same(self):
        for key, value in CASES:
            with self.subTest(key=key, value=value[:100]):
                self.write(PLAIN.format(**{**STANDARD, key: value}))
                go, ours, said = self.ask_both()
                self.assertEqual(ours, go, said)

    def stored(self, here, extensions, exporters, listed):
        """A configuration of STORED, with these directories."""
        os.makedirs(os.path.join(here, "b"), exist_ok=True)
        pathlib.Path(here, "file").touch()
        names = re.findall(r"otlp_\w+(?=: \{endpoint)", exporters)
        extensions = extensions[:-1] + ", zpages: {endpoint: '127.0.0.1:0'}}"
        return (
            f"receivers: {{nop: }}\nexporters: {exporters}\n"
            f"extensions: {extensions.replace('{here}', here)}\n"
            f"service: {{extensions: {listed}, telemetry: {{metrics: {{level: none}}}}, "
            f"pipelines: {{traces: {{receivers: [nop], exporters: [{', '.join(names)}]}}}}}}\n"
        )

    def test_verdicts_on_storages_are_the_same(self):
        for extensions, exporters, listed in STORED:
            with self.subTest(extensions=extensions, exporters=exporters, listed=listed):
                with tempfile.TemporaryDirectory() as here:
                    self.write(self.stored(here, extensions, exporters, listed))
                    go, ours, said = self.ask_both()
                    self.assertEqual(ours, go, said)

    def test_storages_that_are_not_there_are_refused(self):
        for extensions, exporters, listed, words in STORED_NOWHERE:
            with self.subTest(extensions=extensions, exporters=exporters, listed=listed):
                with tempfile.TemporaryDirectory() as here:
                    self.write(self.stored(here, extensions, exporters, listed))
                    go = subprocess.run(
                        [peers.otelcol(), "--config", self.path],
                        capture_output=True,
                        text=True,
                        timeout=60,
                    )
                    self.assertNotEqual(go.returncode, 0)
                    self.assertIn(words, go.stderr)
                    ours = run("validate", "--config", self.path)
                    self.assertEqual(ours.returncode, 1)
                    self.assertIn("storage", ours.stderr)
                    self.assertIn("exporters::otlp_http::sending_queue::storage: ", ours.stderr)

    def test_verdicts_on_connectors_are_the_same(self):
        for connectors, pipelines in CONNECTED:
            with self.subTest(connectors=connectors, pipelines=pipelines):
                self.write(
                    "receivers: {nop: }\nexporters: {nop: }\nprocessors: {batch: }\n"
                    f"connectors: {connectors}\nservice:\n  pipelines:\n"
                    + "".join(
                        f"    {name}: {{receivers: [{ins}], processors: [batch], "
                        f"exporters: [{outs}]}}\n"
                        for name, (ins, outs) in pipelines.items()
                    )
                )
                go = subprocess.run(
                    [peers.otelcol(), "validate", "--config", self.path],
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                ours = run("validate", "--config", self.path)
                self.assertEqual(ours.returncode == 0, go.returncode == 0, ours.stderr)
                # What is wrong with the graph is reported in the same words; of several mistakes, and
                # of the connectors of a cycle, it picks one at random.
                error = re.search("connector .* used as .* but not used in any|cycle det", go.stderr)
                if error:
                    kind = "cycle det" if error.group() == "cycle det" else "but not used in any"
                    self.assertIn(kind, ours.stderr)
                    if kind != "cycle det":
                        self.assertIn(error.group(), ours.stderr)

    def test_a_file_of_four_mebibytes_is_read(self):
        text = PLAIN.format(**STANDARD) + "# Why it is so.\n" * (5 << 16)
        self.assertGreater(len(text), 4 << 20)
        self.write(text)
        go, ours, said = self.ask_both()
        self.assertEqual((go, ours), (True, True), said[:500])


class Running(case.Case):
    def test_the_log_goes_to_all_output_paths(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("a.log", "b.log")]
            logs = f"{{logs: {{output_paths: [stderr, {', '.join(paths)}]}}, metrics: {{level: none}}}}"
            daemon = self.daemon(PLAIN.format(**{**STANDARD, "telemetry": logs}))
            self.assertIn("Everything is ready", daemon.log())
            for path in paths:
                process.poll_until(
                    lambda path=path: "Everything is ready" in pathlib.Path(path).read_text("utf-8"),
                    10,
                    f"the log in {path}",
                )

    def test_keys_without_effect_are_warned_of_at_validate_and_start(self):
        text = PLAIN.format(**{**STANDARD, "grpc": GRPC % "read_buffer_size: 5"})
        words = "grpc::read_buffer_size: found a key that has no effect here"
        daemon = self.daemon(text)
        self.assertEqual(daemon.log().count(words), 1)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = run("validate", "--config", file.name)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(done.stderr.count("Warning: "), 1)
        self.assertEqual(done.stderr.count(words), 1)

    def soft_core_limit(self, service):
        text = PLAIN.format(**STANDARD).replace("service:\n", "service:\n" + service)
        daemon = self.daemon(text)
        with open(f"/proc/{daemon.process.pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max core file size"))
        return line.split()[4:6]

    def test_cores_are_dumped_only_when_asked_for(self):
        self.assertEqual(self.soft_core_limit("")[0], "0")
        with open("/proc/self/limits", encoding="ascii") as file:
            own = next(line for line in file if line.startswith("Max core file size")).split()[4]
        self.assertEqual(self.soft_core_limit("  core_dumps: true\n")[0], own)

    def test_variables_are_shown_when_asked_for(self):
        for text, status in (("", 404), (", expvar: {enabled: true}", 200)):
            port = free_port()
            zpages = f"{{endpoint: '127.0.0.1:{port}'{text}}}"
            self.daemon(PLAIN.format(**{**STANDARD, "zpages": zpages}))
            response = client.get(port, "/debug/expvarz")
            self.assertEqual(response.status, status)
            if status == 200:
                shown = json.loads(response.body)
                self.assertIn("--config", " ".join(shown["cmdline"]))
                self.assertGreaterEqual(shown["memstats"]["Alloc"], 0)


if __name__ == "__main__":
    case.main()
