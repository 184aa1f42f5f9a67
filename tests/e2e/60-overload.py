# SPDX-License-Identifier: Apache-2.0
"""Overload: requests are refused in time and within the budget; nothing acknowledged is lost."""

import threading
import unittest

from support import case, client, metrics, otlp, process
from support.ports import free_port
from support.sink import Reply

BUDGET_MIB = 64
SENDERS = 4
RSS_SLACK = 1.15
IDLE_KIB = 12 * 1024  # an idle release daemon needs 5 MB; the rest is what the allocator may keep
SETTLES_WITHIN_S = 30


class Overload(case.Case):
    def start(self, exporter="", service=""):
        self.back_end = self.sink()
        self.grpc_port, self.http, self.port = free_port(), free_port(), free_port()
        config = case.otlp_config(
            self.grpc_port,
            self.http,
            self.back_end.url,
            exporter=case.UNCOMPRESSED + exporter,
            service=f"  budget_mib: {BUDGET_MIB}\n" + service + case.metrics_service(self.port),
        )
        return self.daemon(config)

    def in_parallel(self, work):
        """Runs work(number) in SENDERS threads; the first failure is raised here."""
        failures = []

        def guarded(number):
            try:
                work(number)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def check_memory(self, daemon):
        if process.is_sanitized():
            return
        peak = daemon.rss_kib()[1]
        self.assertLessEqual(peak, BUDGET_MIB * 1024 * RSS_SLACK)

    def test_a_hanging_back_end_makes_refusals_not_memory(self):
        daemon = self.start()
        self.back_end.hold()
        body = otlp.traces(1000, text_bytes=1000).SerializeToString()
        responses = []

        def work(number):
            for _ in range(2 * BUDGET_MIB * 1024 * 1024 // len(body) // SENDERS):
                responses.append(client.post(self.http, "traces", body))

        self.in_parallel(work)
        statuses = [response.status for response in responses]
        refused = [response for response in responses if response.status != 200]
        self.assertEqual(set(statuses), {200, 503})
        for response in refused:
            self.assertGreaterEqual(int(response.headers["retry-after"]), 1)
        self.check_memory(daemon)
        self.back_end.release()
        accepted = statuses.count(200)
        self.back_end.wait_for_requests(accepted)
        self.assertEqual(len(self.back_end.accepted()), accepted)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(len(self.back_end.requests), accepted)

    def test_grpc_senders_get_a_retry_delay(self):
        self.start()
        self.back_end.hold()
        body = otlp.traces(1000, text_bytes=1000).SerializeToString()
        connection = self.grpc(self.grpc_port)
        codes = [
            connection.export("traces", body)[0]
            for _ in range(2 * BUDGET_MIB * 1024 * 1024 // len(body))
        ]
        self.back_end.release()
        self.assertEqual(set(codes), {"OK", "UNAVAILABLE"})

    def test_senders_that_retry_lose_nothing_at_twice_the_rate(self):
        """The back-end fails every second request; senders repeat what was refused."""
        daemon = self.start(
            exporter="    sending_queue:\n      queue_size: 20\n"
            "    retry_on_failure:\n      initial_interval: 10ms\n      max_interval: 20ms\n"
        )
        sent, lock = [], threading.Lock()
        self.back_end.respond_first([Reply(503 if number % 2 else 200) for number in range(300)])

        def work(number):
            for _ in range(50):
                body = otlp.traces(20).SerializeToString()
                for _ in range(10000):
                    if client.post(self.http, "traces", body).status == 200:
                        break
                else:
                    self.fail("refused 10000 times")
                with lock:
                    sent.append(body)

        self.in_parallel(work)
        self.check_memory(daemon)
        self.assertEqual(daemon.stop(), 0)
        arrived = [request.payload for request in self.back_end.accepted()]
        self.assertEqual(otlp.spans_of(arrived), otlp.spans_of(sent))


class Memory(case.Case):
    @unittest.skipIf(process.is_sanitized(), "sanitizers keep freed memory")
    def test_memory_goes_back_after_the_load(self):
        sink, http, port = self.sink(), free_port(), free_port()
        service = f"  budget_mib: {BUDGET_MIB}\n" + case.metrics_service(port)
        config = case.otlp_config(free_port(), http, sink.url, service=service)
        daemon = self.daemon(config)
        idle = daemon.rss_kib()[0]
        self.assertLessEqual(idle, IDLE_KIB)
        body = otlp.traces(1000, text_bytes=1000).SerializeToString()
        for _ in range(60):
            self.assertEqual(client.post(http, "traces", body).status, 200)
        sink.wait_for_requests(60)
        process.poll_until(
            lambda: daemon.rss_kib()[0] <= idle + IDLE_KIB, SETTLES_WITHIN_S, "memory went back"
        )
        metrics.assert_conserved(self, port, "traces")

    @unittest.skipIf(process.is_sanitized(), "sanitizers need more")
    def test_many_idle_connections_cost_little(self):
        http = free_port()
        daemon = self.daemon(case.otlp_config(free_port(), http, "http://127.0.0.1:1"))
        before = daemon.rss_kib()[0]
        open_ones = [client.open_connection(http) for _ in range(250)]
        self.addCleanup(lambda: [connection.close() for connection in open_ones])
        for connection in open_ones[::25]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"404", connection.recv(65536))
        each = (daemon.rss_kib()[0] - before) / len(open_ones)
        self.assertLessEqual(each, 24)


if __name__ == "__main__":
    case.main()
