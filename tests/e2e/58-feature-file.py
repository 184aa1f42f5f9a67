# SPDX-License-Identifier: Apache-2.0
"""Files of telemetry: what the file exporter writes, and what otlp_json_file reads."""

import base64
import ctypes
import gzip
import json
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import threading

from google.protobuf import json_format

from support import case, client, otlp, process
from support.metrics import Metrics, assert_conserved
from support.ports import free_port

DEV_FULL = "/dev/full"  # each write fails: no space left on device


def pipelines(receiver, exporter, signals=case.SIGNALS):
    return "  pipelines:\n" + "".join(
        f"    {name}:\n      receivers: [{receiver}]\n      exporters: [{exporter}]\n"
        for name in signals
    )


def decoded(line):
    """The official classes' form of a line, which has ids in hexadecimal."""
    document = json.loads(line)
    name = {"resourceSpans": "traces", "resourceMetrics": "metrics", "resourceLogs": "logs"}
    (key,) = document
    text = re.sub(
        r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"',
        lambda found: f'"{found[1]}":"{base64_of(found[2])}"',
        line,
    )
    return name[key], json_format.Parse(text, otlp.REQUESTS[name[key]]())


def zstd(data, room=16 << 20):
    """What libzstd makes of all frames."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    output = ctypes.create_string_buffer(room)
    size = library.ZSTD_decompress(output, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)))
    assert size <= room, "no zstd"
    return output.raw[:size]


def base64_of(hexadecimal):
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def with_what_is_always_written(name, request):
    """The same with the messages, maybe empty, that OTLP/JSON always has here and in the Go collector."""
    for group in getattr(request, otlp.RESOURCES[name]):
        group.resource.SetInParent()
        for scope in getattr(group, otlp.RESOURCES[name].replace("resource", "scope")):
            scope.scope.SetInParent()
            for span in scope.spans if name == "traces" else ():
                span.status.SetInParent()
    return request


class Files(case.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "out.json"


class Exporter(Files):
    def config(self, exporter="", service=case.QUIET, path=None):
        self.http = free_port()
        return (
            "receivers:\n  otlp:\n    protocols:\n"
            f"      http:\n        endpoint: 127.0.0.1:{self.http}\n"
            f"exporters:\n  file:\n    path: {path or self.path}\n{exporter}"
            f"service:\n{service}{pipelines('otlp', 'file')}"
        )

    def post(self, name, request, status=200):
        response = client.post(self.http, name, request.SerializeToString())
        self.assertEqual(response.status, status, response.body)
        return response

    def test_requests_of_all_signals_are_lines_of_one_file(self):
        self.daemon(self.config())
        sent = []
        for name in case.SIGNALS:
            request = otlp.sample(name, 3)
            self.post(name, request)
            sent.append((name, with_what_is_always_written(name, request)))
            # The response says that it is in the file.
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self.assertEqual(len(lines), len(sent))
        self.assertEqual([decoded(line) for line in lines], sent)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o644)

    def test_lines_of_many_lanes_and_clients_do_not_mix(self):
        self.daemon(self.config(service=case.QUIET.replace("  telemetry", "  lanes: 4\n  telemetry")))
        requests = [otlp.traces(spans=1 + i % 40) for i in range(48)]
        for request in requests:
            with_what_is_always_written("traces", request)

        def send(part):
            for request in part:
                self.post("traces", request)

        threads = [threading.Thread(target=send, args=(requests[i::6],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        written = [decoded(line)[1] for line in self.path.read_text().splitlines()]
        key = type(written[0]).SerializeToString
        self.assertEqual(sorted(map(key, written)), sorted(map(key, requests)))

    def test_messages_of_protobuf_stand_behind_their_sizes(self):
        self.daemon(self.config("    format: proto\n"))
        requests = [otlp.traces(spans=i) for i in (1, 200)]
        for request in requests:
            self.post("traces", request)
        data = self.path.read_bytes()
        for request in requests:
            (size,) = struct.unpack(">I", data[:4])
            self.assertEqual(otlp.decode("traces", data[4 : 4 + size]), request)
            data = data[4 + size :]
        self.assertEqual(data, b"")

    def test_compressed_files_are_those_of_zstd(self):
        """With the gate as a whole, also when they are appended to; without it each message."""
        gate = ["--feature-gates=exporter.file.nativeCompression"]
        requests = [otlp.traces(spans=i) for i in (1, 300)]
        for arguments in (gate, []):
            with self.subTest(arguments):
                path = self.folder / f"{len(arguments)}.zst"
                config = self.config("    compression: zstd\n", path=path)
                self.daemon(config, arguments=arguments)
                for request in requests:
                    self.post("traces", request)
                data = path.read_bytes()
                inflated = b""
                while data and not arguments:
                    (size,) = struct.unpack(">I", data[:4])
                    inflated += zstd(data[4 : 4 + size]) + b"\n"
                    data = data[4 + size :]
                lines = (inflated or zstd(data)).decode().splitlines()
                self.assertEqual([decoded(line)[1] for line in lines], requests)

    def test_standard_output_gets_lines_and_the_log_nothing_of_them(self):
        config = self.folder / "config.yaml"
        config.write_text(self.config(path="/dev/stdout"))
        with open(self.folder / "stdout", "wb") as output:
            daemon = subprocess.Popen(
                [process.binary(), f"--config={config}"], stdout=output, stderr=subprocess.PIPE
            )
            try:
                for line in daemon.stderr:
                    if process.READY in line.decode():
                        break
                self.post("traces", otlp.traces(2))
                daemon.send_signal(signal.SIGTERM)
                self.assertNotIn(b"resourceSpans", daemon.stderr.read())
                self.assertEqual(daemon.wait(process.STOP_WITHIN_S), 0)
            finally:
                daemon.kill()
                daemon.wait()
                daemon.stderr.close()
        (line,) = (self.folder / "stdout").read_text().splitlines()
        self.assertEqual(decoded(line)[0], "traces")

    def test_a_full_disk_is_the_clients_to_know_and_nothing_is_delivered(self):
        metrics = free_port()
        server = self.daemon(self.config(path=DEV_FULL, service=case.metrics_service(metrics)))
        response = self.post("traces", otlp.traces(5), status=503)
        self.assertIn(b"No space left on device", response.body)
        server.wait_for_line(r"Exporting failed\. Rejecting data\..*No space left on device")
        _, delivered, rejected, dropped, _ = assert_conserved(self, metrics, "traces")
        self.assertEqual((delivered, rejected, dropped), (0, 5, 0))

    def test_a_file_that_cannot_be_opened_prevents_the_start(self):
        server = self.server(self.config(path="/nowhere/out.json"))
        self.assertEqual(server.wait(), 1)
        self.assertIn("cannot open /nowhere/out.json: No such file or directory", server.log())
        config = self.config("    create_directory: true\n", path=self.folder / "a/b/out.json")
        self.daemon(config)
        self.assertTrue((self.folder / "a/b/out.json").exists())

    def test_a_reload_replaces_the_file_and_append_keeps_it(self):
        for options, lines in (("", 1), ("    append: true\n", 2)):
            with self.subTest(options):
                server = self.daemon(self.config(options, path=self.folder / f"{lines}.json"))
                self.post("traces", otlp.traces(1))
                server.signal(signal.SIGHUP)
                process.poll_until(
                    lambda: server.log().count(process.READY) == 2, process.READY_WITHIN_S, "a reload"
                )
                self.post("traces", otlp.traces(1))
                text = (self.folder / f"{lines}.json").read_text()
                self.assertEqual(len(text.splitlines()), lines)

    def test_files_that_are_full_are_renamed_and_old_ones_deleted(self):
        options = "    rotation:\n      max_megabytes: 1\n      max_backups: 2\n"
        self.daemon(self.config(options))
        for _ in range(9):
            self.post("traces", otlp.traces(spans=4, text_bytes=100_000))
        names = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(len(names), 3, names)
        for name in names[:2]:
            self.assertRegex(name, r"^out-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}-size\.json$")
        for name in names:
            path = self.folder / name
            self.assertLessEqual(path.stat().st_size, 1 << 20)
            self.assertEqual(path.stat().st_mode & 0o777, 0o640)
            for line in path.read_text().splitlines():
                self.assertEqual(decoded(line)[0], "traces")

    def test_resources_have_files_of_their_own_below_the_directory(self):
        options = "    group_by:\n      enabled: true\n      resource_attribute: tenant\n"
        self.daemon(self.config(options, path=self.folder / "d" / "*.json"))
        for tenant in ("a", "b/c", "../../up", "a"):
            self.post("logs", self.of_tenant(tenant))
        found = {
            str(path.relative_to(self.folder)): len(path.read_text().splitlines())
            for path in self.folder.rglob("*.json")
        }
        self.assertEqual(found, {"d/a.json": 2, "d/b/c.json": 1, "d/up.json": 1})
        response = self.post("logs", otlp.logs(3))
        partial = otlp.RESPONSE.FromString(response.body).partial_success
        self.assertEqual(partial.rejected_spans, 3)

    @staticmethod
    def of_tenant(tenant):
        request = otlp.logs(1)
        otlp.add_attributes(request.resource_logs[0].resource.attributes, {"tenant": tenant})
        return request


class Receiver(Files):
    """From files to a back-end."""

    def config(
        self,
        receiver="    start_at: beginning\n",
        service=case.QUIET,
        exporter=case.DIRECT,
        extensions="",
    ):
        self.back_end = getattr(self, "back_end", None) or self.sink()
        return (
            f"receivers:\n  otlp_json_file:\n    include: [{self.folder}/*.json]\n"
            f"    include_file_name: false\n{receiver}"
            f"exporters:\n  otlphttp:\n    endpoint: {self.back_end.url}\n"
            f"    compression: none\n{case.NO_RETRY}{exporter}"
            f"{extensions}service:\n{service}{pipelines('otlp_json_file', 'otlphttp')}"
        )

    def line_of(self, name, request):
        """As the official classes print it, with ids as OTLP/JSON has them."""
        text = json_format.MessageToJson(request, indent=None)
        return re.sub(
            r'"(traceId|spanId|parentSpanId)": ?"([^"]+)"',
            lambda found: f'"{found[1]}":"{base64.b64decode(found[2]).hex()}"',
            text,
        )

    def put(self, name, *requests, path=None):
        with open(path or self.path, "a", encoding="utf-8") as file:
            for request in requests:
                file.write(self.line_of(name, request) + "\n")

    def received(self, count):
        requests = self.back_end.wait_for_requests(count)
        return [
            otlp.decode(request.path.rsplit("/", 1)[1], request.payload) for request in requests
        ]

    def test_lines_of_all_signals_go_to_their_pipelines(self):
        sent = [(name, otlp.sample(name, 3)) for name in case.SIGNALS]
        for name, request in sent:
            self.put(name, request)
        self.daemon(self.config())
        self.back_end.wait_for_requests(3)
        found = {
            request.path.rsplit("/", 1)[1]: request.payload for request in self.back_end.requests
        }
        for name, request in sent:
            self.assertEqual(otlp.decode(name, found[name]), request)

    def test_what_the_exporter_writes_is_read_again(self):
        """Rotated files too, while they are written."""
        http = free_port()
        writer = self.daemon(
            "receivers:\n  otlp:\n    protocols:\n"
            f"      http:\n        endpoint: 127.0.0.1:{http}\n"
            f"exporters:\n  file:\n    path: {self.path}\n    rotation:\n      max_megabytes: 1\n"
            f"service:\n{case.QUIET}{pipelines('otlp', 'file')}"
        )
        self.daemon(self.config("    start_at: beginning\n    fingerprint_size: 4KiB\n"))
        sent = []
        for _ in range(12):
            request = otlp.traces(spans=3, text_bytes=100_000)
            sent.append(with_what_is_always_written("traces", request))
            self.assertEqual(client.post(http, "traces", request.SerializeToString()).status, 200)
        self.assertGreater(len(list(self.folder.iterdir())), 3)
        received = self.received(len(sent))
        key = type(sent[0]).SerializeToString
        self.assertEqual(sorted(map(key, received)), sorted(map(key, sent)))
        self.assertEqual(writer.stop(), 0)

    def test_files_are_renamed_truncated_and_deleted_meanwhile(self):
        self.daemon(self.config())
        requests = [otlp.traces(1) for _ in range(5)]
        self.put("traces", requests[0])
        self.received(1)
        self.path.rename(self.folder / "old.txt")  # not of the pattern any more
        self.put("traces", requests[1], path=self.folder / "old.txt")
        self.put("traces", requests[2])
        self.received(3)
        with open(self.path, "w", encoding="utf-8"):
            pass
        self.put("traces", requests[3])
        self.received(4)
        self.path.unlink()
        self.put("traces", requests[4])
        received = self.received(5)
        key = type(requests[0]).SerializeToString
        self.assertEqual(sorted(map(key, received)), sorted(map(key, requests)))

    def test_records_get_the_name_of_their_file(self):
        self.put("traces", otlp.traces(2))
        self.put("logs", otlp.logs(1))
        config = self.config("    start_at: beginning\n    include_file_path: true\n")
        self.daemon(config.replace("include_file_name: false", "include_file_name: true"))
        expected = {"log.file.name": "out.json", "log.file.path": str(self.path)}
        expected = {key: ("string_value", value) for key, value in expected.items()}
        self.received(2)
        for request in self.back_end.requests:
            signal_name = request.path.rsplit("/", 1)[1]
            (group,) = getattr(otlp.decode(signal_name, request.payload), otlp.RESOURCES[signal_name])
            (scope,) = group.scope_spans if signal_name == "traces" else group.scope_logs
            for record in scope.spans if signal_name == "traces" else scope.log_records:
                found = dict(otlp.attributes_of(record.attributes))
                self.assertEqual({key: found.get(key) for key in expected}, expected)

    def test_wrong_lines_are_counted_named_and_passed_over(self):
        metrics = free_port()
        good = otlp.traces(1)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("no JSON\n")
        self.put("traces", good)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write('{"resourceSpans":[{"scopeSpans":7}]}\n')
        self.put("traces", good)
        server = self.daemon(
            self.config(service=case.metrics_service(metrics))
        )
        self.assertEqual(self.received(2), [good, good])
        for line in (1, 3):
            server.wait_for_line(rf'left out.*"path": "{self.path}", "line": {line}, "error"')
        self.assertEqual(Metrics(metrics).sum("spanflame_otlp_json_file_wrong_lines"), 2)
        process.poll_until(
            lambda: Metrics(metrics).sum("otelcol_receiver_accepted_spans", transport="file") == 2,
            process.READY_WITHIN_S,
            "two spans counted",
        )
        assert_conserved(self, metrics, "traces")

    def test_what_a_pipeline_refuses_is_offered_again(self):
        """The queue has room for one request, which waits for the back-end."""
        self.back_end = self.sink()
        self.back_end.hold()
        queue = (
            "    sending_queue:\n      queue_size: 1\n      num_consumers: 1\n"
            "      wait_for_result: false\n"
        )
        requests = [otlp.traces(1) for _ in range(20)]
        self.put("traces", *requests)
        metrics = free_port()
        server = self.daemon(
            self.config(exporter=queue, service=case.metrics_service(metrics))
        )
        server.wait_for_line("a pipeline refuses what was read from a file")
        self.back_end.release()
        self.assertEqual(self.received(20), requests)
        process.poll_until(
            lambda: Metrics(metrics).conservation("traces") == (20, 20, 0, 0, 0),
            process.READY_WITHIN_S,
            "20 spans delivered, none refused",
        )

    def test_a_restart_reads_on_with_storage(self):
        storage = self.folder / "storage"
        storage.mkdir()
        config = self.config(
            "    start_at: beginning\n    storage: file_storage\n",
            service="  extensions: [file_storage]\n" + case.QUIET,
            extensions=f"extensions:\n  file_storage:\n    directory: {storage}\n",
        )
        first, second, third = (otlp.traces(1) for _ in range(3))
        server = self.daemon(config)
        self.put("traces", first)
        self.received(1)
        self.assertEqual(server.stop(), 0)
        self.put("traces", second)
        server = self.daemon(config)
        self.assertEqual(self.received(2), [first, second])
        server.signal(signal.SIGHUP)
        process.poll_until(
            lambda: server.log().count(process.READY) == 2, process.READY_WITHIN_S, "a reload"
        )
        self.put("traces", third)
        self.assertEqual(self.received(3), [first, second, third])
        self.assertTrue((storage / "receiver_otlp_json_file_.offsets").exists())

    def test_deletion_needs_its_feature_gate(self):
        receiver = "    start_at: beginning\n    delete_after_read: true\n"
        server = self.server(self.config(receiver))
        self.assertEqual(server.wait(), 1)
        self.assertIn("requires feature gate 'filelog.allowFileDeletion'", server.log())
        self.put("traces", otlp.traces(1))
        self.daemon(self.config(receiver), arguments=["--feature-gates=filelog.allowFileDeletion"])
        self.received(1)
        process.poll_until(lambda: not self.path.exists(), process.READY_WITHIN_S, "deleted")

    def test_compressed_files_are_replayed(self):
        request = otlp.logs(2)
        line = self.line_of("logs", request) + "\n"
        with gzip.open(self.folder / "old.json", "wb") as file:
            file.write(line.encode() * 3)
        options = "    compression: auto\n    replay_file: true\n    poll_interval: 1s\n"
        self.daemon(self.config("    start_at: beginning\n" + options))
        self.assertEqual(self.received(6)[:6], [request] * 6)

    def test_many_lanes_read_every_line_once(self):
        for i in range(10):
            self.put("traces", *(otlp.traces(1) for _ in range(5)), path=self.folder / f"{i}.json")
        service = case.QUIET.replace("  telemetry", "  lanes: 3\n  telemetry")
        self.daemon(self.config("    start_at: beginning\n    fingerprint_size: 4KiB\n", service=service))
        received = self.received(50)
        ids = {request.resource_spans[0].scope_spans[0].spans[0].span_id for request in received}
        self.assertEqual(len(ids), 50)


if __name__ == "__main__":
    case.main()
