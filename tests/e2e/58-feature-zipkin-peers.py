# SPDX-License-Identifier: Apache-2.0
"""The zipkin receiver behind Zipkin's own clients, and the zipkin exporter in front of its server."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support import case, client, otlp, peers, zipkin
from support.ports import free_port

NS_PER_US = 1000
START_NS = 1_700_000_000_123_456_000
KINDS = {
    None: Span.SPAN_KIND_UNSPECIFIED,
    "SERVER": Span.SPAN_KIND_SERVER,
    "CLIENT": Span.SPAN_KIND_CLIENT,
}
FORMS = (
    ("zipkin-node", "v1-json"),
    ("zipkin-node", "v2-json"),
    ("zipkin-java", "v1-json"),
    ("zipkin-java", "v1-thrift"),
    ("zipkin-java", "v2-json"),
    ("zipkin-java", "v2-proto"),
)


def receiver(port):
    return f"  zipkin:\n    endpoint: 127.0.0.1:{port}\n"


def otlp_receiver(port):
    return f"  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{port}\n"


def exporter(url, form, codec="none"):
    return (
        f"  zipkin:\n    endpoint: {url}/api/v2/spans\n    format: {form}\n"
        f"    compression: {codec}\n"
    )


def pipeline(way_in, way_out):
    """Each is one component's configuration."""
    return (
        f"receivers:\n{way_in}exporters:\n{way_out}service:\n{case.QUIET}  pipelines:\n"
        f"    traces:\n      receivers: [{way_in.split(':')[0].strip()}]\n"
        f"      exporters: [{way_out.split(':')[0].strip()}]\n"
    )


def expected(span, version):
    """What a span of Zipkin's, in its JSON of API v2, is as OTLP: resource and span."""
    local, remote = span["localEndpoint"], span.get("remoteEndpoint", {})
    resource = {"service.name": ("string_value", local["serviceName"])}
    attributes = {}
    if version == "v2":
        attributes["network.local.address"] = ("string_value", local["ipv4"])
        attributes["net.host.port"] = ("int_value", local["port"])
    elif "kind" in span:
        # Only what makes the kind names an endpoint in v1 that OTLP takes.
        resource["ipv4"] = ("string_value", local["ipv4"])
        resource["port"] = ("string_value", str(local["port"]))
    if "serviceName" in remote:
        attributes["service.peer.name"] = ("string_value", remote["serviceName"])
    if remote:
        address = remote.get("ipv6") or remote["ipv4"]
        attributes["network.peer.address"] = ("string_value", address)
        attributes["net.peer.port"] = ("int_value", remote["port"])
    attributes.update({key: ("string_value", value) for key, value in span["tags"].items()})
    is_error = "error" in span["tags"]
    return resource, {
        "trace_id": span["traceId"].zfill(32),
        "span_id": span["id"],
        "parent_id": span.get("parentId", ""),
        "name": span["name"],
        "kind": KINDS[span.get("kind")],
        "start": span["timestamp"] * NS_PER_US,
        "end": (span["timestamp"] + span["duration"]) * NS_PER_US,
        "attributes": attributes,
        "events": [
            (event["timestamp"] * NS_PER_US, event["value"])
            for event in span.get("annotations", [])
        ],
        "status": Status.STATUS_CODE_ERROR if is_error else Status.STATUS_CODE_UNSET,
    }


def found(resource, span):
    """The same of a span that arrived."""
    return dict(otlp.attributes_of(resource.attributes)), {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_id": span.parent_span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "attributes": dict(otlp.attributes_of(span.attributes)),
        "events": [(event.time_unix_nano, event.name) for event in span.events],
        "status": span.status.code,
    }


def received(requests):
    spans = [
        found(group.resource, span)
        for request in requests
        for group in otlp.decode("traces", request.payload).resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    return sorted(spans, key=lambda pair: pair[1]["start"])


def in_order(spans):
    return sorted(spans, key=lambda span: span["timestamp"])


class Receiver(case.Case):
    def test_what_clients_send_arrives(self):
        back_end, port = self.sink(), free_port()
        self.daemon(pipeline(receiver(port), f"  otlphttp:\n    endpoint: {back_end.url}\n"))
        for peer, form in FORMS:
            with self.subTest(f"{peer} {form}"):
                before = len(back_end.requests)
                sent = peers.send(peer, form, port, "Shop")
                requests = back_end.wait(lambda got: len(received(got[before:])) >= len(sent))
                wanted = [expected(span, form[:2]) for span in in_order(sent)]
                self.assertEqual(received(requests[before:]), wanted)


def passed_on(span):
    """A client's span after it was OTLP: its tag `error` has become the status, which the exporter
    writes as the Go collector does."""
    if "error" not in span["tags"]:
        return span
    status = {"error": "true", "otel.status_code": "STATUS_CODE_ERROR"}
    return {**span, "tags": {**span["tags"], **status}}


def shop_request(trace_id):
    """A trace with a span of each kind, and one without a parent."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    otlp.add_attributes(group.resource.attributes, {"service.name": "Shop", "host.name": "h1"})
    scope = group.scope_spans.add()
    scope.scope.name = "shop.cart"
    for kind in range(Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CONSUMER + 1):
        span = scope.spans.add(
            trace_id=trace_id,
            span_id=bytes(7) + bytes([kind]),
            parent_span_id=bytes(7) + b"\1" if kind > 1 else b"",
            name=f"Step {kind} ä€𝄞",
            kind=kind,
            start_time_unix_nano=START_NS + kind * 1_000_000,
            end_time_unix_nano=START_NS + kind * 1_000_000 + 5000,
        )
        otlp.add_attributes(span.attributes, {"retries": kind, "text": "ä€𝄞"})
    last = scope.spans[-1]
    last.status.code, last.status.message = Status.STATUS_CODE_ERROR, "down"
    peer = {"peer.service": "Prices", "network.peer.address": "10.0.0.7", "net.peer.port": 9000}
    otlp.add_attributes(last.attributes, peer)
    event = last.events.add(name="refused", time_unix_nano=START_NS)
    otlp.add_attributes(event.attributes, {"by": "proxy"})
    return request.SerializeToString()


def shop_trace(trace_id):
    """What Zipkin has of it."""
    spans = []
    for kind in range(Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CONSUMER + 1):
        tags = {"host.name": "h1", "otel.library.name": "shop.cart", "retries": str(kind)}
        span = {
            "traceId": trace_id.hex(),
            "id": f"{kind:016x}",
            "name": f"step {kind} ä€𝄞",
            "timestamp": START_NS // NS_PER_US + kind * 1000,
            "duration": 5,
            "localEndpoint": {"serviceName": "shop"},
            "tags": {**tags, "text": "ä€𝄞"},
        }
        if kind == Span.SPAN_KIND_INTERNAL:
            span["tags"]["span.kind"] = "internal"
        else:
            span["parentId"] = f"{1:016x}"
            span["kind"] = Span.SpanKind.Name(kind)[len("SPAN_KIND_") :]
        spans.append(span)
    spans[-1]["remoteEndpoint"] = {"serviceName": "prices", "ipv4": "10.0.0.7", "port": 9000}
    spans[-1]["annotations"] = [
        {"timestamp": START_NS // NS_PER_US, "value": 'refused|{"by":"proxy"}|0'}
    ]
    spans[-1]["tags"].update(
        {
            "error": "true",
            "otel.status_code": "STATUS_CODE_ERROR",
            "otel.status_description": "down",
        }
    )
    return spans


class Exporter(case.Case):
    @classmethod
    def setUpClass(cls):
        cls.zipkin = zipkin.Server()
        cls.addClassCleanup(cls.zipkin.close)

    def test_the_server_has_what_is_sent_to_it(self):
        ways = (("json", "none"), ("proto", "none"), ("json", "gzip"), ("proto", "gzip"))
        for number, (form, codec) in enumerate(ways, 1):
            with self.subTest(f"{form}, {codec}"):
                http, trace_id = free_port(), bytes([number]) * 16
                way_out = exporter(self.zipkin.url, form, codec)
                self.daemon(pipeline(otlp_receiver(http), way_out))
                response = client.post(http, "traces", shop_request(trace_id))
                self.assertEqual(response.status, 200)
                wanted = shop_trace(trace_id)
                trace = self.zipkin.wait_for_trace(trace_id.hex(), len(wanted))
                self.assertEqual(in_order(trace), wanted)
                self.assertIn("shop", self.zipkin.ask("services"))
                names = self.zipkin.ask("spans", serviceName="shop")
                self.assertEqual(sorted(names), [span["name"] for span in wanted])
                remote = self.zipkin.ask("remoteServices", serviceName="shop")
                self.assertEqual(remote, ["prices"])

    def test_spans_pass_from_clients_to_the_server(self):
        for out in ("json", "proto"):
            port = free_port()
            self.daemon(pipeline(receiver(port), exporter(self.zipkin.url, out)))
            for peer, form in FORMS:
                if form.startswith("v1"):
                    continue  # the local address becomes one of the resource, and so a tag
                with self.subTest(f"{peer} {form} to {out}"):
                    sent = peers.send(peer, form, port, "Through")
                    trace = self.zipkin.wait_for_trace(sent[0]["traceId"], len(sent))
                    wanted = [passed_on(span) for span in in_order(sent)]
                    self.assertEqual(in_order(trace), wanted)


if __name__ == "__main__":
    case.main()
