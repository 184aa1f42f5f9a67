# SPDX-License-Identifier: Apache-2.0
"""Rules of keep, changed while the daemon runs: by HTTP, on all lanes at once, until a reload."""

import http.client
import json
import signal
import threading
import time

from support import case, client, metrics, otlp, profiles
from support.ports import free_port

SECOND = 10**9
JSON = {"Content-Type": "application/json"}
CONFIGURED = {"keep": [{"slow": "1s"}, "error"], "keep_unlinked": False}
EVERYTHING = {"keep": [], "keep_unlinked": False}
ROUNDS = 50


class Keep(case.Case):
    def start(self, token=None):
        self.ports = {name: free_port() for name in ("otlp", "control", "metrics")}
        self.back_end = self.sink()
        secret = f", token: {token}" if token else ""
        return self.daemon(
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{self.ports['otlp']}\n"
            "processors:\n  trace_profile_join:\n"
            "    keep: [slow: 1s, error]\n    keep_unlinked: false\n    hold: 0s\n"
            f"    control: {{endpoint: \"127.0.0.1:{self.ports['control']}\"{secret}}}\n"
            f"exporters:\n  otlp_http:\n    endpoint: {self.back_end.url}\n"
            f"service:\n  lanes: 2\n{case.metrics_service(self.ports['metrics'])}  pipelines:\n"
            "    traces: {receivers: [otlp], processors: [trace_profile_join], "
            "exporters: [otlp_http]}\n"
            "    profiles: {receivers: [otlp], processors: [trace_profile_join], "
            "exporters: [otlp_http]}\n"
        )

    def ask(self, method, body=b"", headers=None, path="/keep"):
        return client.request(self.ports["control"], method, path, body, headers or {})

    def rules(self, response):
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["content-type"], "application/json")
        return json.loads(response.body)

    def send(self, path, body):
        headers = {"Content-Type": client.PROTOBUF}
        self.assertEqual(
            client.request(self.ports["otlp"], "POST", path, body, headers).status, 200
        )

    def send_request(self, number, duration_ns):
        """A span of that duration, and a sample taken in it."""
        ids = number.to_bytes(16, "big"), number.to_bytes(8, "big")
        now = time.time_ns()
        request = otlp.REQUESTS["traces"]()
        resource = request.resource_spans.add()
        otlp.add_attributes(resource.resource.attributes, {"service.name": "shop"})
        resource.scope_spans.add().spans.add(
            trace_id=ids[0],
            span_id=ids[1],
            name="GET /",
            start_time_unix_nano=now - duration_ns,
            end_time_unix_nano=now,
        )
        self.send("/v1/traces", request.SerializeToString())
        builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
        self.send(profiles.PATH, builder.sample(["work"], 1, link=ids).bytes())
        return ids[1]

    def linked(self):
        payloads = [r.payload for r in self.back_end.accepted() if r.path == profiles.PATH]
        return {link[1] for _, _, _, link, _, _ in profiles.samples_of(payloads)}

    def test_rules_are_shown_set_and_taken_back(self):
        daemon = self.start()
        self.assertEqual(self.rules(self.ask("GET")), CONFIGURED)
        fast = self.send_request(1, SECOND // 10)
        body = json.dumps({"keep": []}).encode()
        self.assertEqual(self.rules(self.ask("POST", body, JSON)), EVERYTHING)
        self.assertEqual(self.rules(self.ask("GET")), EVERYTHING)
        kept = self.send_request(2, SECOND // 10)
        self.back_end.wait(lambda _: kept in self.linked())
        self.assertNotIn(fast, self.linked())
        self.assertEqual(self.rules(self.ask("DELETE")), CONFIGURED)
        slow = self.send_request(3, 2 * SECOND)
        self.back_end.wait(lambda _: self.linked() == {kept, slow})
        found = metrics.Metrics(self.ports["metrics"])
        self.assertEqual(found.sum("otelcol_processor_trace_profile_join_unwanted_samples"), 1)
        self.assertEqual(
            found.sum("spanflame_items_dropped", signal="profiles", reason="unwanted"), 1
        )
        metrics.assert_conserved(self, self.ports["metrics"], "profiles")
        self.assertIn("Keep rules changed", daemon.log())

    def test_a_reload_keeps_the_socket_and_forgets_what_was_set(self):
        daemon = self.start()
        body = json.dumps({"keep": ["sampled"], "keep_unlinked": True}).encode()
        self.rules(self.ask("POST", body, JSON))
        daemon.signal(signal.SIGHUP)
        responses = []
        for _ in range(ROUNDS):  # no request is refused meanwhile
            try:
                responses.append(self.rules(self.ask("GET")))
            except (http.client.RemoteDisconnected, ConnectionResetError):
                pass  # accepted by the service that was about to stop
        self.assertEqual(responses[-1], CONFIGURED)

    def test_wrong_requests_change_nothing(self):
        self.start()
        rows = [
            (b"", 400, b"byte 0: expected an object"),
            (b"[]", 400, b"byte 0: expected an object"),
            (b'{"keep": "error"}', 400, b"expected a list"),
            (b'{"keep": ["errors"]}', 400, b'found "errors"'),
            (b'{"keep": [{"slow": 1}]}', 400, b"expected a string in quotes"),
            (b'{"keep": [{"slow": "-1s"}]}', 400, b"expected a duration above 0"),
            (b'{"keep": [], "unlinked": true}', 400, b'found "unlinked"'),
            (b'{"keep": []} x', 400, b"expected the end"),
            (b'{"keep": ["' + b"x" * 5000 + b'"]}', 413, b"at most 4096 bytes"),
        ]
        for body, status, text in rows:
            with self.subTest(body[:40]):
                response = self.ask("POST", body, JSON)
                self.assertEqual(response.status, status)
                self.assertIn(text, response.body)
        plain = {"Content-Type": "text/plain"}
        self.assertEqual(self.ask("POST", b'{"keep": []}', plain).status, 415)
        self.assertEqual(self.ask("PUT", b"{}", JSON).status, 405)
        self.assertEqual(self.ask("GET", path="/").status, 404)
        rebound = http.client.HTTPConnection("127.0.0.1", self.ports["control"], timeout=30)
        self.addCleanup(rebound.close)
        rebound.request("GET", "/keep", headers={"Host": "rebound.example"})
        self.assertEqual(rebound.getresponse().status, 403)
        self.assertEqual(self.rules(self.ask("GET")), CONFIGURED)

    def test_with_a_token_configured_requests_without_it_get_401(self):
        self.start(token="s3cret")
        for headers in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "Basic s3cret"}):
            response = self.ask("DELETE", headers=headers, path="/none")
            self.assertEqual(response.status, 401)
            self.assertEqual(response.headers["www-authenticate"], "Bearer")
        headers = {"Authorization": "Bearer s3cret"}
        self.assertEqual(self.rules(self.ask("GET", headers=headers)), CONFIGURED)

    def test_rules_may_change_while_all_lanes_read_them(self):
        self.start()
        bodies = [json.dumps(rules).encode() for rules in (CONFIGURED, EVERYTHING)]

        def change():
            for number in range(ROUNDS):
                self.ask("POST", bodies[number % 2], JSON)

        changing = threading.Thread(target=change)
        changing.start()
        for number in range(1, ROUNDS + 1):
            self.send_request(number, SECOND // 10)
        changing.join()
        figures = metrics.assert_conserved(self, self.ports["metrics"], "profiles")
        self.assertEqual(figures[0], ROUNDS)


if __name__ == "__main__":
    case.main()
