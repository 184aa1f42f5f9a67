# SPDX-License-Identifier: Apache-2.0
"""Common tools: curl over both HTTP versions, nghttp, h2load."""

import shutil
import subprocess
import tempfile
import unittest

from support import case, client, otlp
from support.ports import free_port

SPANS = 5
REQUESTS = 400


def need(tool):
    if shutil.which(tool) is None:
        raise unittest.SkipTest(f"this machine has no {tool}")


class Tools(case.Case):
    def setUp(self):
        self.back_end = self.sink()
        self.grpc_port, self.http_port = free_port(), free_port()
        exporter = case.UNCOMPRESSED + case.DIRECT
        config = case.otlp_config(
            self.grpc_port, self.http_port, self.back_end.url, exporter=exporter
        )
        self.daemon(config)
        self.message = otlp.traces(SPANS).SerializeToString()

    def file(self, content):
        file = tempfile.NamedTemporaryFile()
        self.addCleanup(file.close)
        file.write(content)
        file.flush()
        return file.name

    def output_of(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def curl(self, *options):
        need("curl")
        return self.output_of(
            *("curl", "--silent", "--show-error", "--output", "/dev/null"),
            *("--write-out", "%{http_version} %{http_code}"),
            *("--header", f"Content-Type: {client.PROTOBUF}"),
            *("--data-binary", f"@{self.file(self.message)}"),
            *options,
            f"http://127.0.0.1:{self.http_port}/v1/traces",
        )

    def test_curl_over_http_1(self):
        self.assertEqual(self.curl("--http1.1"), "1.1 200")
        self.assertEqual(self.back_end.requests[0].payload, self.message)

    def test_curl_over_http_2_without_tls(self):
        self.assertEqual(self.curl("--http2-prior-knowledge"), "2 200")
        self.assertEqual(self.back_end.requests[0].payload, self.message)

    def test_curl_asks_before_it_sends_a_large_body(self):
        self.message = otlp.traces(2000, text_bytes=1000).SerializeToString()
        self.assertEqual(self.curl("--http1.1", "--header", "Expect: 100-continue"), "1.1 200")
        self.assertEqual(self.back_end.requests[0].payload, self.message)

    def test_nghttp(self):
        need("nghttp")
        printed = self.output_of(
            *("nghttp", "--verbose", "--null-out"),
            *("--data", self.file(self.message), "--header", f"content-type: {client.PROTOBUF}"),
            f"http://127.0.0.1:{self.http_port}/v1/traces",
        )
        self.assertIn(":status: 200", printed)

    def check_h2load(self, url, body, content_type):
        """Many requests on several connections of several streams each; all are delivered."""
        need("h2load")
        printed = self.output_of(
            *("h2load", f"--requests={REQUESTS}", "--clients=4", "--max-concurrent-streams=8"),
            *(f"--data={self.file(body)}", f"--header=content-type: {content_type}"),
            *("--header=te: trailers", url),
        )
        self.assertRegex(printed, rf"{REQUESTS} succeeded, 0 failed, 0 errored, 0 timeout")
        self.assertRegex(printed, rf"status codes: {REQUESTS} 2xx, 0 3xx, 0 4xx, 0 5xx")
        accepted = self.back_end.accepted("traces")
        self.assertEqual(len(accepted), REQUESTS)
        self.assertEqual({request.payload for request in accepted}, {self.message})

    def test_h2load_over_http(self):
        self.check_h2load(
            f"http://127.0.0.1:{self.http_port}/v1/traces", self.message, client.PROTOBUF
        )

    def test_h2load_over_grpc(self):
        url = f"http://127.0.0.1:{self.grpc_port}{client.SERVICES['traces']}"
        self.check_h2load(url, client.grpc_frame(self.message), "application/grpc")


if __name__ == "__main__":
    case.main()
