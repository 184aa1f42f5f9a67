# SPDX-License-Identifier: Apache-2.0
"""The batch processor beside the Go collector's: what it joins, cuts and keeps apart."""

from support import case, client, otlp, peers
from support.ports import free_port


class Batch(case.Case):
    executable = None

    def start(self, batch, receiver_metadata=False):
        self.back_end, self.http = self.sink(), free_port()
        config = case.otlp_config(
            free_port(),
            self.http,
            self.back_end.url,
            exporter=case.UNCOMPRESSED + "    sending_queue:\n      num_consumers: 1\n",
            processors={"batch": batch},
        )
        if receiver_metadata:
            config = config.replace(
                "      http:\n", "      http:\n        include_metadata: true\n"
            )
        return self.server(config, executable=self.executable).wait_until_ready()

    def send(self, request, signal="traces", headers=None):
        fields = {"Content-Type": client.PROTOBUF, **(headers or {})}
        body = request.SerializeToString()
        response = client.request(self.http, "POST", f"/v1/{signal}", body, fields)
        self.assertEqual(response.status, 200)
        return body

    def sizes(self, count):
        """How many spans each of the first `count` requests at the back-end had."""
        arrived = self.back_end.wait_for_requests(count)[:count]
        return [len(otlp.spans_of([request.payload])) for request in arrived]

    def test_reaching_the_size_sends_at_once(self):
        self.start("    timeout: 600s\n    send_batch_size: 10\n")
        for spans in (4, 4, 4):
            self.send(otlp.traces(spans))
        self.assertEqual(self.sizes(1), [12])

    def test_the_timeout_sends_what_there_is(self):
        self.start("    timeout: 100ms\n")
        self.send(otlp.traces(3))
        self.assertEqual(self.sizes(1), [3])

    def test_a_large_request_is_cut_at_the_maximum(self):
        self.start("    timeout: 600s\n    send_batch_size: 10\n    send_batch_max_size: 10\n")
        sent = self.send(otlp.traces(30, {"service.name": "cut"}, scopes=3))
        self.assertEqual(self.sizes(3), [10, 10, 10])
        payloads = [request.payload for request in self.back_end.requests]
        self.assertEqual(otlp.spans_of(payloads), otlp.spans_of([sent]))
        for payload in payloads:
            part = otlp.decode("traces", payload)
            self.assertEqual(len(part.resource_spans), 1)
            name = otlp.attributes_of(part.resource_spans[0].resource.attributes)
            self.assertEqual(name, [("service.name", ("string_value", "cut"))])
            for scope in part.resource_spans[0].scope_spans:
                self.assertEqual(
                    {f"scope-{scope_of(span)}" for span in scope.spans}, {scope.scope.name}
                )

    def test_the_rest_of_a_cut_waits_for_more(self):
        self.start("    timeout: 600s\n    send_batch_size: 10\n    send_batch_max_size: 10\n")
        self.send(otlp.traces(14))
        self.send(otlp.traces(6))
        self.assertEqual(self.sizes(2), [10, 10])

    def test_without_a_timeout_nothing_is_joined(self):
        self.start("    timeout: 0s\n    send_batch_max_size: 5\n    send_batch_size: 5\n")
        self.send(otlp.traces(12))
        self.assertEqual(sorted(self.sizes(3)), [2, 5, 5])

    def test_signals_are_never_mixed(self):
        self.start("    timeout: 100ms\n")
        for signal in case.SIGNALS:
            self.send(otlp.sample(signal, 2), signal)
        arrived = self.back_end.wait_for_requests(3)
        self.assertEqual({request.signal for request in arrived}, set(case.SIGNALS))

    def test_points_and_records_are_counted_and_cut_too(self):
        self.start("    timeout: 600s\n    send_batch_size: 4\n    send_batch_max_size: 4\n")
        self.send(otlp.metrics(8), "metrics")
        self.send(otlp.logs(8), "logs")
        arrived = self.back_end.wait_for_requests(4)
        for signal, count in (("metrics", otlp.metrics_of), ("logs", otlp.logs_of)):
            sizes = [len(count([seen.payload])) for seen in arrived if seen.signal == signal]
            self.assertEqual(sizes, [4, 4])

    def test_metadata_keys_keep_tenants_apart(self):
        keys = "    timeout: 600s\n    send_batch_size: 4\n    metadata_keys: [X-Tenant]\n"
        self.start(keys, receiver_metadata=True)
        for tenant in ("a", "b", "a", "b"):
            request = otlp.traces(2, {"tenant": tenant})
            self.send(request, headers={"x-tenant": tenant})
        for seen in self.back_end.wait_for_requests(2):
            resources = otlp.decode("traces", seen.payload).resource_spans
            tenants = {otlp.attributes_of(part.resource.attributes)[0][1] for part in resources}
            self.assertEqual((len(resources), len(tenants)), (2, 1))


class GoBatch(Batch):
    """The same table on the real collector."""

    def setUp(self):
        self.executable = peers.otelcol()


def scope_of(span):
    """otlp.traces deals its spans to the scopes in turn."""
    return int(span.name.removeprefix("span-")) % 3


if __name__ == "__main__":
    case.main()
