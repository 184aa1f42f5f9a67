# SPDX-License-Identifier: Apache-2.0
"""OTLP passes byte for byte, unknown fields included."""

import gzip

from support import case, client, otlp
from support.ports import free_port

# Field 4093, length-delimited: no version of OTLP has it.
UNKNOWN = b"\xea\xff\x01\x07unknown"


def with_unknown_fields(signal):
    """The sample request with an unknown field before, inside and after its resource."""
    request = otlp.sample(signal, 3)
    known = request.SerializeToString()
    inner = getattr(request, otlp.RESOURCES[signal])[0]
    body = inner.SerializeToString() + UNKNOWN
    return known + b"\x0a" + varint(len(body)) + body + UNKNOWN


def varint(number):
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes(encoded) + bytes([number])


class Bytes(case.Case):
    def start(self, exporter="", processors=None):
        self.back_end = self.sink()
        self.grpc_port, self.http_port = free_port(), free_port()
        config = case.otlp_config(
            self.grpc_port,
            self.http_port,
            self.back_end.url,
            exporter=case.DIRECT + exporter,
            processors=processors,
        )
        return self.daemon(config)

    def check_all_ways_in(self):
        """Every signal over HTTP and gRPC, plain and gzip."""
        connection = self.grpc(self.grpc_port)
        sent = []
        for signal in case.SIGNALS:
            for compressed in (False, True):
                body = with_unknown_fields(signal)
                status = client.post(self.http_port, signal, body, compressed).status
                self.assertEqual(status, 200)
                self.assertEqual(connection.export(signal, body, compressed), ("OK", ""))
                sent += [(signal, body), (signal, body)]
        arrived = self.back_end.wait_for_requests(len(sent))
        self.assertEqual([(seen.signal, seen.payload) for seen in arrived], sent)
        return arrived

    def test_uncompressed(self):
        self.start(case.UNCOMPRESSED)
        for seen in self.check_all_ways_in():
            self.assertNotIn("content-encoding", seen.headers)
            self.assertEqual(seen.headers["content-type"], client.PROTOBUF)
            self.assertEqual(seen.headers["content-length"], str(len(seen.payload)))

    def test_gzip_is_the_default(self):
        self.start()
        for seen in self.check_all_ways_in():
            self.assertEqual(seen.headers["content-encoding"], "gzip")
            self.assertEqual(gzip.decompress(seen.body), seen.payload)

    def test_through_a_batch_that_joins_requests(self):
        self.start(case.UNCOMPRESSED, {"batch": "    timeout: 300s\n    send_batch_size: 9\n"})
        bodies = [otlp.traces(3).SerializeToString() + UNKNOWN for _ in range(3)]
        for body in bodies:
            self.assertEqual(client.post(self.http_port, "traces", body).status, 200)
        arrived = self.back_end.wait_for_requests(1)
        self.assertEqual(arrived[0].payload, b"".join(bodies))

    def test_an_edit_leaves_everything_else_alone(self):
        edit = "    attributes:\n    - {key: service.name, value: after, action: update}\n"
        self.start(case.UNCOMPRESSED, {"resource": edit})
        sent = otlp.traces(3, {"service.name": "before"})
        body = sent.SerializeToString() + UNKNOWN
        self.assertEqual(client.post(self.http_port, "traces", body).status, 200)
        sent.resource_spans[0].resource.attributes[0].value.string_value = "after"
        self.assertEqual(self.back_end.requests[0].payload, sent.SerializeToString() + UNKNOWN)

    def test_headers_reach_the_back_end(self):
        self.start("    headers:\n      x-token: secret\n      X-Scope: '7'\n")
        client.post(self.http_port, "traces", otlp.traces(1).SerializeToString())
        headers = self.back_end.requests[0].headers
        self.assertEqual((headers["x-token"], headers["x-scope"]), ("secret", "7"))
        self.assertRegex(headers["user-agent"], r"/\d+\.\d+\.\d+ \(linux/")

    def test_a_request_of_many_megabytes(self):
        self.start(case.UNCOMPRESSED)
        body = otlp.traces(9000, text_bytes=2000).SerializeToString()
        self.assertGreater(len(body), 18_000_000)
        self.assertEqual(client.post(self.http_port, "traces", body).status, 200)
        self.assertEqual(self.back_end.requests[0].payload, body)


class Pipelines(case.Case):
    """One receiver, two pipelines, one of which edits."""

    def test_an_edit_in_one_pipeline_is_not_seen_in_another(self):
        plain, edited, port = self.sink(), self.sink(), free_port()
        exporters = "".join(
            f"  otlphttp/{name}:\n    endpoint: {sink.url}\n{case.DIRECT}{case.UNCOMPRESSED}"
            for name, sink in (("plain", plain), ("edited", edited))
        )
        self.daemon(
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{port}\n"
            "processors:\n  resource:\n    attributes:\n"
            "    - {key: service.name, action: delete}\n    - {key: a, value: b, action: insert}\n"
            f"exporters:\n{exporters}service:\n{case.QUIET}  pipelines:\n"
            "    traces/plain: {receivers: [otlp], exporters: [otlphttp/plain]}\n"
            "    traces/edited:\n      receivers: [otlp]\n      processors: [resource]\n"
            "      exporters: [otlphttp/edited]\n"
        )
        sent = otlp.traces(4)
        body = sent.SerializeToString()
        self.assertEqual(client.post(port, "traces", body).status, 200)
        self.assertEqual(plain.requests[0].payload, body)
        del sent.resource_spans[0].resource.attributes[:]
        otlp.add_attributes(sent.resource_spans[0].resource.attributes, {"a": "b"})
        self.assertEqual(otlp.decode("traces", edited.requests[0].payload), sent)


if __name__ == "__main__":
    case.main()
