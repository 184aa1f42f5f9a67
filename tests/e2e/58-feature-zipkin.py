# SPDX-License-Identifier: Apache-2.0
"""The zipkin exporter in front of a server with Zipkin's API."""

import json

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support import case, client, otlp
from support.ports import free_port
from support.sink import Reply

PATH = "/api/v2/spans"
QUICK = "    retry_on_failure:\n      initial_interval: 50ms\n      max_interval: 100ms\n"
START_NS = 1_700_000_000_123_456_789
TRACE_ID = bytes(range(16))
SPAN_ID = bytes(range(1, 9))


def zipkin_config(http, back_end, exporter=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n  zipkin:\n    endpoint: {back_end.url}{PATH}\n{exporter}"
        f"service:\n{case.QUIET}"
        "  pipelines:\n    traces:\n      receivers: [otlp]\n      exporters: [zipkin]\n"
    )


def one_request(spans_without_ids=0):
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    otlp.add_attributes(group.resource.attributes, {"service.name": "Shop", "host.name": "h1"})
    scope = group.scope_spans.add()
    scope.scope.name = "shop.cart"
    span = scope.spans.add(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        parent_span_id=SPAN_ID[::-1],
        name="GET /Cart",
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=START_NS,
        end_time_unix_nano=START_NS + 1_000_400,
        status=Status(code=Status.STATUS_CODE_ERROR, message="down"),
    )
    attributes = {
        "peer.service": "Prices",
        "network.peer.address": "10.0.0.7",
        "net.peer.port": 8080,
        "retries": 3,
    }
    otlp.add_attributes(span.attributes, attributes)
    event = span.events.add(name="refused", time_unix_nano=START_NS)
    otlp.add_attributes(event.attributes, {"by": "proxy"})
    for _ in range(spans_without_ids):
        scope.spans.add(name="lost")
    return request.SerializeToString()


ONE_SPAN = {
    "traceId": TRACE_ID.hex(),
    "id": SPAN_ID.hex(),
    "parentId": SPAN_ID[::-1].hex(),
    "name": "get /cart",
    "kind": "CLIENT",
    "timestamp": 1_700_000_000_123_457,
    "duration": 1000,
    "localEndpoint": {"serviceName": "shop"},
    "remoteEndpoint": {"serviceName": "prices", "ipv4": "10.0.0.7", "port": 8080},
    "annotations": [{"timestamp": 1_700_000_000_123_457, "value": 'refused|{"by":"proxy"}|0'}],
    "tags": {
        "error": "true",
        "host.name": "h1",
        "otel.library.name": "shop.cart",
        "otel.status_code": "STATUS_CODE_ERROR",
        "otel.status_description": "down",
        "retries": "3",
    },
}


class Zipkin(case.Case):
    def start(self, exporter="", **options):
        back_end, http = self.sink(otherwise=Reply(202), **options), free_port()
        self.daemon(zipkin_config(http, back_end, exporter))
        return back_end, http

    def test_spans_arrive_as_zipkin_knows_them(self):
        for compression in ("none", "gzip"):
            with self.subTest(compression):
                back_end, http = self.start(f"    compression: {compression}\n")
                self.assertEqual(client.post(http, "traces", one_request()).status, 200)
                (received,) = back_end.wait_for_requests(1)
                self.assertEqual(received.path, PATH)
                self.assertEqual(received.headers["content-type"], "application/json")
                self.assertEqual("content-encoding" in received.headers, compression == "gzip")
                self.assertEqual(json.loads(received.payload), [ONE_SPAN])

    def test_a_server_that_is_away_gets_the_same_spans_later(self):
        back_end, http = self.start(QUICK, script=[Reply(500), Reply(503), Reply(404)])
        self.assertEqual(client.post(http, "traces", one_request()).status, 200)
        requests = back_end.wait_for_requests(4)
        self.assertEqual([request.status for request in requests], [500, 503, 404, 202])
        self.assertEqual(len({request.payload for request in requests}), 1)

    def test_spans_without_ids_are_rejected_and_the_others_sent(self):
        back_end, http = self.start(case.DIRECT)
        response = client.post(http, "traces", one_request(spans_without_ids=2))
        self.assertEqual(response.status, 200)
        partial = otlp.RESPONSE.FromString(response.body).partial_success
        self.assertEqual(partial.rejected_spans, 2)
        (received,) = back_end.wait_for_requests(1)
        self.assertEqual(json.loads(received.payload), [ONE_SPAN])

    def test_what_zipkin_rejects_is_the_clients_to_know(self):
        back_end, http = self.start(case.DIRECT, script=[Reply(400, body=b"Cannot decode")])
        response = client.post(http, "traces", one_request())
        self.assertEqual(response.status, 400)
        self.assertIn(b"Cannot decode", response.body)
        self.assertEqual(len(back_end.requests), 1)

    def test_protobuf_is_a_list_of_spans(self):
        back_end, http = self.start("    format: proto\n")
        self.assertEqual(client.post(http, "traces", one_request()).status, 200)
        (received,) = back_end.wait_for_requests(1)
        self.assertEqual(received.headers["content-type"], "application/x-protobuf")
        # Field 1 of ListOfSpans, and the trace id first in it.
        self.assertEqual(received.payload[0], 0x0A)
        self.assertIn(b"\x0a\x10" + TRACE_ID + b"\x12\x08" + SPAN_ID[::-1], received.payload)
        self.assertIn(b"\x2a\x09GET /Cart", received.payload)
        self.assertIn(b"\x12\x04\x0a\x00\x00\x07\x20\x90\x3f", received.payload)


if __name__ == "__main__":
    case.main()
