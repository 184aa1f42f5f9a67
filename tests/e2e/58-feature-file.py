# SPDX-License-Identifier: Apache-2.0
"""Files of telemetry: what the file exporter writes."""

import base64
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
from support.metrics import assert_conserved
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


if __name__ == "__main__":
    case.main()
