# SPDX-License-Identifier: Apache-2.0
"""routing: each pipeline's back-end gets what the table gives it, by HTTP headers and by attributes."""

import tempfile

from support import case, client, otlp
from support.metrics import assert_conserved
from support.ports import free_port
from support.sink import Reply

BACKENDS = ("errors", "acme", "rest")


def config(ports, backends, options=case.DIRECT, more="", extensions=""):
    exporters = "".join(
        f"  otlp_http/{name}:\n    endpoint: {backend.url}\n{options}{case.NO_RETRY}"
        for name, backend in backends.items()
    )
    pipelines = "".join(
        f"    traces/{name}: {{receivers: [routing], exporters: [otlp_http/{name}]}}\n"
        for name in backends
    )
    return (
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{ports['http']}\n        include_metadata: true\n"
        "connectors:\n  routing:\n    default_pipelines: [traces/rest]\n    table:\n"
        "    - condition: span.attributes[\"index\"] == 1\n      action: copy\n"
        "      pipelines: [traces/errors]\n"
        "    - context: request\n      condition: request[\"X-Tenant\"] == \"acme\"\n"
        "      pipelines: [traces/acme]\n"
        f"{more}exporters:\n{exporters}service:\n{extensions}"
        f"{case.metrics_service(ports['own'])}  pipelines:\n"
        f"    traces/in: {{receivers: [otlp], exporters: [routing]}}\n{pipelines}"
    )


class Routing(case.Case):
    def setUp(self):
        self.ports = {"http": free_port(), "own": free_port()}
        self.backends = {name: self.sink() for name in BACKENDS}

    def post(self, body, tenant=None):
        headers = {"Content-Type": client.PROTOBUF}
        if tenant:
            headers["X-Tenant"] = tenant
        body = body.SerializeToString()
        return client.request(self.ports["http"], "POST", "/v1/traces", body, headers).status

    def names(self, backend):
        payloads = [request.payload for request in self.backends[backend].accepted("traces")]
        return sorted(span.name for span in otlp.spans_of(payloads).values())

    def test_each_back_end_gets_its_part(self):
        self.daemon(config(self.ports, self.backends))
        self.assertEqual(self.post(otlp.traces(3), tenant="acme"), 200)
        self.assertEqual(self.post(otlp.traces(2), tenant="other"), 200)
        self.assertEqual(self.post(otlp.traces(1)), 200)
        # Nothing is queued: the back-ends come first, then the client's response.
        self.assertEqual(self.names("errors"), ["span-1", "span-1"])
        self.assertEqual(self.names("acme"), ["span-0", "span-1", "span-2"])
        self.assertEqual(self.names("rest"), ["span-0", "span-0", "span-1"])
        self.assertEqual(
            assert_conserved(self, self.ports["own"], "traces"), (18, 8, 0, 10, 0)
        )

    def test_a_sender_hears_of_the_pipelines_that_got_something(self):
        self.backends["acme"].respond_with(Reply(503))
        self.daemon(config(self.ports, self.backends))
        self.assertEqual(self.post(otlp.traces(1)), 200)
        self.assertEqual(self.post(otlp.traces(1), tenant="acme"), 503)
        assert_conserved(self, self.ports["own"], "traces")

    def test_pipelines_behind_have_their_own_journals(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        stored = "    sending_queue: {storage: file_storage}\n"
        more = f"extensions:\n  file_storage: {{directory: '{folder.name}'}}\n"
        text = config(self.ports, self.backends, stored, more, "  extensions: [file_storage]\n")
        self.backends["rest"].respond_with(Reply(503))
        self.daemon(text)
        self.assertEqual(self.post(otlp.traces(3), tenant="acme"), 200)
        self.assertEqual(self.post(otlp.traces(2)), 200)
        self.backends["acme"].wait_for_requests(1)
        self.backends["errors"].wait_for_requests(2)
        self.assertEqual(self.names("errors"), ["span-1", "span-1"])
        self.assertEqual(self.names("acme"), ["span-0", "span-1", "span-2"])


if __name__ == "__main__":
    case.main()
