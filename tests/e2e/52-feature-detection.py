# SPDX-License-Identifier: Apache-2.0
"""resource_detection: the environment, this host, and a Docker daemon on a unix socket."""

import http.server
import json
import os
import platform
import socket
import socketserver
import tempfile
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support import case, client, otlp
from support.ports import free_port


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """What the Docker Engine's API says of its host and of a container, whatever the version."""

    daemon_threads = True

    def __init__(self, path):
        self.asked = []
        super().__init__(path, self._handler())
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self):
        self.shutdown()
        self._thread.join()
        self.server_close()

    def _handler(self):
        daemon = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def address_string(self):
                return "unix"

            def respond(self, body, status=200):
                self.send_response(status)
                self.send_header("Api-Version", "1.51")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_HEAD(self):
                self.respond(b"OK")

            def do_GET(self):
                path = self.path.removeprefix("/v1.51")
                daemon.asked.append(path)
                host = socket.gethostname()
                if path == "/info":
                    info = {"ID": "x", "Containers": 3, "OSType": "linux", "Name": "docker-host"}
                    self.respond(json.dumps(info).encode())
                elif path == f"/containers/{host}/json":
                    container = {"Id": "1", "Name": "/shop", "Image": "sha256:abc", "State": {}}
                    self.respond(json.dumps(container).encode())
                else:
                    self.respond(b'{"message":"page not found"}', 404)

            def log_message(self, *arguments):
                """Quiet: failures print what is needed."""

        return Handler


class Detection(case.Case):
    def detect(self, section, resource=None, environment=None):
        """The attributes of a Resource behind the processor."""
        back_end, port = self.sink(), free_port()
        self.server_ = self.daemon(
            case.otlp_config(
                free_port(),
                port,
                back_end.url,
                processors={"resourcedetection": f"    {section}\n"},
                exporter=case.UNCOMPRESSED,
            ),
            environment={"OTEL_RESOURCE_ATTRIBUTES": "", **(environment or {})},
        )
        request = otlp.traces(1, resource={"service.name": "s", **(resource or {})})
        body = request.SerializeToString()
        self.assertEqual(client.post(port, "traces", body).status, 200)
        payload = back_end.wait_for_requests(1)[0].payload
        (group,) = ExportTraceServiceRequest.FromString(payload).resource_spans
        self.schema_url = group.schema_url
        found = {key: value for key, (_, value) in otlp.attributes_of(group.resource.attributes)}
        self.assertEqual(found.pop("service.name"), "s")
        return found

    def docker(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "docker.sock")
        daemon = Daemon(path)
        self.addCleanup(daemon.close)
        return daemon, {"DOCKER_HOST": f"unix://{path}"}

    def test_clouds_that_are_not_there_add_nothing(self):
        found = self.detect(
            "{detectors: [env, gcp, ec2, ecs, azure, system], system: {hostname_sources: [os]}, "
            "timeout: 2s, override: false}",
            resource={"host.name": "kept"},
            environment={"OTEL_RESOURCE_ATTRIBUTES": "a=b%20c,os.type=mine"},
        )
        self.assertEqual(found, {"host.name": "kept", "a": "b c", "os.type": "mine"})
        for cloud in ("gcp", "ec2", "ecs", "azure"):
            self.assertIn(f'"{cloud}', self.server_.log().replace("\\", ""))

    def test_the_first_detector_counts_and_override_replaces(self):
        found = self.detect(
            "{detectors: [system, env], system: {hostname_sources: [os], resource_attributes: "
            "{os.type: {enabled: false}, host.arch: {enabled: true}}}}",
            resource={"host.name": "replaced", "a": "replaced", "other": "kept"},
            environment={"OTEL_RESOURCE_ATTRIBUTES": "a=b,host.name=env,os.type=mine"},
        )
        arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
        self.assertEqual(
            found,
            {
                "host.name": socket.gethostname(),
                "host.arch": arch,
                "a": "b",
                "os.type": "mine",
                "other": "kept",
            },
        )
        self.assertTrue(self.schema_url.startswith("https://opentelemetry.io/schemas/"))

    def test_the_docker_daemon_is_asked(self):
        daemon, environment = self.docker()
        found = self.detect("{detectors: [docker]}", environment=environment)
        self.assertEqual(found, {"host.name": "docker-host", "os.type": "linux"})
        self.assertIn("/info", daemon.asked)
        found = self.detect(
            "{detectors: [docker, env], docker: {resource_attributes: {host.name: {enabled: "
            "false}, container.name: {enabled: true}, container.image.name: {enabled: true}}}}",
            environment={**environment, "OTEL_RESOURCE_ATTRIBUTES": "host.name=env"},
        )
        self.assertEqual(
            found,
            {
                "host.name": "env",
                "os.type": "linux",
                "container.name": "/shop",
                "container.image.name": "sha256:abc",
            },
        )

    def test_without_a_docker_daemon_there_is_no_start(self):
        server = self.server(
            case.otlp_config(
                free_port(),
                free_port(),
                "http://127.0.0.1:9",
                processors={"resourcedetection": "    {detectors: [docker], timeout: 2s}\n"},
            ),
            environment={"DOCKER_HOST": "unix:///nowhere/to/be/found"},
        )
        self.assertEqual(server.wait(), 1)
        self.assertIn("failed to connect to the docker API", server.log())


if __name__ == "__main__":
    case.main()
