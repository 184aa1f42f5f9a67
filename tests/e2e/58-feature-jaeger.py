# SPDX-License-Identifier: Apache-2.0
"""The jaeger receiver behind Jaeger's own clients and agent."""

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support import case, otlp, peers
from support.ports import free_port
from support.program import Program

NS_PER_MS = 1_000_000
KINDS = {"server": Span.SPAN_KIND_SERVER, "client": Span.SPAN_KIND_CLIENT}


def jaeger_config(ports, back_end):
    protocols = "".join(
        f"      {protocol}:\n        endpoint: 127.0.0.1:{port}\n"
        for protocol, port in ports.items()
    )
    return (
        f"receivers:\n  jaeger:\n    protocols:\n{protocols}"
        f"exporters:\n  otlphttp:\n    endpoint: {back_end}\n"
        f"service:\n{case.QUIET}"
        "  pipelines:\n    traces:\n      receivers: [jaeger]\n      exporters: [otlphttp]\n"
    )


def value_of(value, number):
    """A tag's value as OTLP has it; `number` is the type of the client's whole numbers."""
    if isinstance(value, bool):
        return ("bool_value", value)
    if isinstance(value, int):
        return (number, value)
    if isinstance(value, float):
        return ("double_value", value)
    if isinstance(value, dict):
        return ("bytes_value", bytes.fromhex(value["hex"]))
    return ("string_value", value)


def expected(sent, number):
    """What the client's span is as OTLP."""
    tags = dict(sent["tags"] or {})
    trace_id = sent["trace_id"].zfill(32)
    is_root = sent["parent_id"] is None
    kind = KINDS.get(tags.pop("span.kind", None), Span.SPAN_KIND_UNSPECIFIED)
    code = Status.STATUS_CODE_ERROR if tags.pop("error", False) else Status.STATUS_CODE_UNSET
    if is_root:
        tags.update({"sampler.type": "const", "sampler.param": True})
    links = []
    if sent["name"] == "mail":
        # It follows from the root, instead of being a child of it.
        reference = [("opentracing.ref_type", ("string_value", "follows_from"))]
        links = [(trace_id, sent["parent_id"].zfill(16), reference)]
    events = []
    for line in sent["logs"] or []:
        fields = dict(line["fields"])
        name = fields.pop("event", "")
        values = {key: value_of(value, number) for key, value in fields.items()}
        events.append((line["time_ms"] * NS_PER_MS, name, values))
    return {
        "trace_id": trace_id,
        "span_id": sent["span_id"].zfill(16),
        "parent_id": "" if is_root else sent["parent_id"].zfill(16),
        "name": sent["name"],
        "kind": kind,
        "start": sent["start_ms"] * NS_PER_MS,
        "end": sent["end_ms"] * NS_PER_MS,
        "attributes": {key: value_of(value, number) for key, value in tags.items()},
        "events": events,
        "links": links,
        "status": code,
    }


def found(span):
    """The same of a span that arrived."""
    return {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_id": span.parent_span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "attributes": dict(otlp.attributes_of(span.attributes)),
        "events": [
            (event.time_unix_nano, event.name, dict(otlp.attributes_of(event.attributes)))
            for event in span.events
        ],
        "links": [
            (link.trace_id.hex(), link.span_id.hex(), otlp.attributes_of(link.attributes))
            for link in span.links
        ],
        "status": span.status.code,
    }


class Jaeger(case.Case):
    def start(self):
        """A back-end, and the daemon's ports by protocol."""
        names = ("grpc", "thrift_http", "thrift_compact", "thrift_binary")
        ports = {name: free_port() for name in names}
        back_end = self.sink()
        self.daemon(jaeger_config(ports, back_end.url))
        return back_end, ports

    def check(self, client, transport, back_end, port):
        """What that client sends to the port arrives."""
        number = {"jaeger-node": "double_value", "jaeger-go": "int_value"}[client]
        before = len(back_end.requests)
        sent = peers.send(client, transport, port, "Shop")
        back_end.wait(
            lambda requests: len(otlp.spans_of(r.payload for r in requests[before:])) >= len(sent)
        )
        payloads = [request.payload for request in back_end.requests[before:]]
        spans = otlp.spans_of(payloads).values()
        self.assertEqual(
            sorted((found(span) for span in spans), key=lambda span: span["start"]),
            [expected(span, number) for span in sent],
        )
        for payload in payloads:
            for group in otlp.decode("traces", payload).resource_spans:
                resource = dict(otlp.attributes_of(group.resource.attributes))
                self.assertEqual(resource["service.name"], ("string_value", "Shop"))
                self.assertEqual(resource["deployment"], ("string_value", "eu"))
                self.assertEqual(resource["replica"], (number, 3))
                self.assertEqual(resource["canary"], ("bool_value", True))
                self.assertIn("host.name", resource)
                self.assertNotIn("hostname", resource)
                _, version = resource["opencensus.exporterversion"]
                self.assertTrue(version.startswith("Jaeger-" + client[len("jaeger-") :].title()))

    def test_clients_over_udp(self):
        back_end, ports = self.start()
        for client, protocol in (("jaeger-go", "thrift_compact"), ("jaeger-node", "thrift_binary")):
            with self.subTest(client):
                self.check(client, "udp", back_end, ports[protocol])

    def test_clients_over_http(self):
        back_end, ports = self.start()
        for client in ("jaeger-go", "jaeger-node"):
            with self.subTest(client):
                self.check(client, "http", back_end, ports["thrift_http"])

    def test_the_agent_over_grpc(self):
        executable = peers.jaeger_agent()
        back_end, ports = self.start()
        compact, binary, other, http, admin = (free_port() for _ in range(5))
        agent = Program(
            [
                executable,
                f"--reporter.grpc.host-port=127.0.0.1:{ports['grpc']}",
                f"--processor.jaeger-compact.server-host-port=127.0.0.1:{compact}",
                f"--processor.jaeger-binary.server-host-port=127.0.0.1:{binary}",
                f"--processor.zipkin-compact.server-host-port=127.0.0.1:{other}",
                f"--http-server.host-port=127.0.0.1:{http}",
                f"--admin.http.host-port=127.0.0.1:{admin}",
            ],
            f"http://127.0.0.1:{admin}/",
        )
        self.addCleanup(agent.close)
        for client, port in (("jaeger-go", compact), ("jaeger-node", binary)):
            with self.subTest(client):
                self.check(client, "udp", back_end, port)


if __name__ == "__main__":
    case.main()
