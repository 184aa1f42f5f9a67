# SPDX-License-Identifier: Apache-2.0
"""SDKs of four languages: everything they send arrives, byte for byte or with the same meaning."""

from support import case, otlp, peers
from support.ports import free_port
from support.tee import GrpcTee, HttpTee

SDKS = ("python", "node", "go", "java")
WAYS = [(protocol, codec) for protocol in ("http", "grpc") for codec in ("none", "gzip")]
SPANS, POINTS, LOGS = 50, 4, 20


class SdkCase(case.Case):
    def check_meaning(self, sent, arrived):
        spans = otlp.spans_of(arrived["traces"])
        found = {(s.trace_id.hex(), s.span_id.hex(), s.name) for s in spans.values()}
        self.assertEqual(found, {(s["trace_id"], s["span_id"], s["name"]) for s in sent["spans"]})
        self.assertEqual(len(found), SPANS)
        self.assertEqual(otlp.metrics_of(arrived["metrics"]), sent["metrics"])
        self.assertEqual(sorted(otlp.logs_of(arrived["logs"])), sorted(sent["logs"]))
        for signal, payloads in arrived.items():
            for payload in payloads:
                for part in getattr(otlp.decode(signal, payload), otlp.RESOURCES[signal]):
                    attributes = dict(otlp.attributes_of(part.resource.attributes))
                    self.assertEqual(attributes["service.name"], ("string_value", "e2e"))


class Sdks(SdkCase):
    """SDK -> tee -> spanflame -> back-end. The tee says what the SDK put on the wire."""

    def check(self, sdk):
        peers.need(sdk)
        for protocol, codec in WAYS:
            with self.subTest(f"{protocol}, {codec}"):
                self.check_one(sdk, protocol, codec)

    def check_one(self, sdk, protocol, codec):
        sink, ports = self.sink(), {"grpc": free_port(), "http": free_port()}
        exporter = case.UNCOMPRESSED + case.DIRECT
        daemon = self.daemon(
            case.otlp_config(ports["grpc"], ports["http"], sink.url, exporter=exporter)
        )
        tee_port = free_port()
        tee = (GrpcTee if protocol == "grpc" else HttpTee)(tee_port, ports[protocol])
        self.addCleanup(tee.close)
        sent = peers.emit(
            sdk,
            protocol=protocol,
            endpoint=f"127.0.0.1:{tee_port}",
            compression=codec,
            service="e2e",
            spans=SPANS,
            points=POINTS,
            logs=LOGS,
        )
        arrived = {signal: [] for signal in case.SIGNALS}
        for request in sink.accepted():
            arrived[request.signal].append(request.payload)
        for signal in case.SIGNALS:
            wire = [payload for kind, payload in tee.seen() if kind == signal]
            self.assertEqual(sorted(arrived[signal]), sorted(wire), "not the bytes that were sent")
        self.check_meaning(sent, arrived)
        self.assertEqual(daemon.stop(), 0)

    def test_python(self):
        self.check("python")

    def test_node(self):
        self.check("node")

    def test_go(self):
        self.check("go")

    def test_java(self):
        self.check("java")


class Json(SdkCase):
    """Node's SDK sends OTLP/JSON by default; at the back-end it is protobuf that says the same."""

    def test_node(self):
        peers.need("node")
        for codec in ("none", "gzip"):
            with self.subTest(codec):
                self.check_one("node", codec)

    def check_one(self, sdk, codec):
        sink, http = self.sink(), free_port()
        exporter = case.UNCOMPRESSED + case.DIRECT
        daemon = self.daemon(case.otlp_config(free_port(), http, sink.url, exporter=exporter))
        sent = peers.emit(
            sdk,
            protocol="json",
            endpoint=f"127.0.0.1:{http}",
            compression=codec,
            service="e2e",
            spans=SPANS,
            points=POINTS,
            logs=LOGS,
        )
        arrived = {
            signal: [request.payload for request in sink.accepted(signal)]
            for signal in case.SIGNALS
        }
        self.check_meaning(sent, arrived)
        self.assertEqual(daemon.stop(), 0)


class Batched(case.Case):
    """All four at once into one daemon that joins what they send."""

    def test_nothing_is_lost_or_doubled(self):
        sink, grpc, http = self.sink(), free_port(), free_port()
        batch = {
            "batch": "    timeout: 100ms\n    send_batch_size: 64\n    send_batch_max_size: 64\n"
        }
        self.daemon(case.otlp_config(grpc, http, sink.url, processors=batch))
        sent = {}
        for sdk in SDKS:
            if not peers.is_ready(sdk):
                continue
            for protocol, port in (("grpc", grpc), ("http", http)):
                emitted = peers.emit(
                    sdk,
                    protocol=protocol,
                    endpoint=f"127.0.0.1:{port}",
                    spans=150,
                    points=1,
                    logs=1,
                )
                sent.update({span["span_id"]: span["name"] for span in emitted["spans"]})
        sink.wait(lambda requests: sum(spans_in(request) for request in requests) >= len(sent))
        payloads = [request.payload for request in sink.accepted("traces")]
        found = {span_id.hex(): span.name for span_id, span in otlp.spans_of(payloads).items()}
        self.assertEqual(found, sent)
        self.assertLessEqual(max(len(otlp.spans_of([payload])) for payload in payloads), 64)


def spans_in(request):
    return len(otlp.spans_of([request.payload])) if request.signal == "traces" else 0


if __name__ == "__main__":
    case.main()
