# SPDX-License-Identifier: Apache-2.0
"""The daemon's own metrics: the names that dashboards use, and a count of everything lost."""

import signal
import tempfile

from support import case, client, metrics, otlp, peers, process
from support.ports import free_port
from support.sink import Reply

# What the collector shows at level normal after requests through memory_limiter, resource, batch.
DASHBOARD = {
    "otelcol_receiver_accepted_spans": "counter",
    "otelcol_receiver_refused_spans": "counter",
    "otelcol_receiver_accepted_metric_points": "counter",
    "otelcol_receiver_accepted_log_records": "counter",
    "otelcol_exporter_sent_spans": "counter",
    "otelcol_exporter_sent_metric_points": "counter",
    "otelcol_exporter_sent_log_records": "counter",
    "otelcol_exporter_queue_size": "gauge",
    "otelcol_exporter_queue_capacity": "gauge",
    "otelcol_processor_incoming_items": "counter",
    "otelcol_processor_outgoing_items": "counter",
    "otelcol_processor_memory_limiter_accepted_spans": "counter",
    "otelcol_processor_batch_batch_send_size": "histogram",
    "otelcol_processor_batch_timeout_trigger_send": "counter",
    "otelcol_processor_batch_metadata_cardinality": "gauge",
    "otelcol_process_uptime": "counter",
    "otelcol_process_cpu_seconds": "counter",
    "otelcol_process_memory_rss": "gauge",
    "otelcol_process_runtime_heap_alloc_bytes": "gauge",
    "otelcol_process_runtime_total_alloc_bytes": "counter",
    "otelcol_process_runtime_total_sys_memory_bytes": "gauge",
    "target_info": "gauge",
}
SENT = "spans", "metric_points", "log_records"
PROCESSORS = {
    "memory_limiter": "    check_interval: 1s\n    limit_mib: 1000\n",
    "resource": "    attributes:\n    - {key: a, value: b, action: insert}\n",
    "batch": "    timeout: 50ms\n",
}


class Names(case.Case):
    def scrape(self, executable):
        sink, grpc, http, port = self.sink(), free_port(), free_port(), free_port()
        service = case.metrics_service(port)
        config = case.otlp_config(grpc, http, sink.url, processors=PROCESSORS, service=service)
        self.server(config, executable=executable).wait_until_ready()
        for signal in case.SIGNALS:
            body = otlp.sample(signal, 3).SerializeToString()
            self.assertEqual(client.post(http, signal, body).status, 200)
        self.assertEqual(
            self.grpc(grpc).export("traces", otlp.traces(2).SerializeToString())[0], "OK"
        )
        sink.wait(
            lambda requests: sum(
                len(otlp.spans_of([r.payload])) for r in requests if r.signal == "traces"
            )
            >= 5
        )
        return self.until_counted(port)

    def until_counted(self, port):
        """The exporter counts after it has read the response, so a scrape may come too early."""

        def is_counted():
            scraped = metrics.Metrics(port)
            sent = [scraped.sum(f"otelcol_exporter_sent_{items}") for items in SENT]
            return sent[0] >= 5 and all(sent)

        process.poll_until(is_counted, within=30, what="all signals counted as sent")
        return metrics.Metrics(port)

    def check(self, scraped):
        types = {name: scraped.types.get(name) for name in DASHBOARD}
        self.assertEqual(types, DASHBOARD)
        self.assertTrue(scraped.content_type.startswith("text/plain"))
        for transport, spans in (("http", 3), ("grpc", 2)):
            labels = {"receiver": "otlp", "transport": transport}
            self.assertEqual(scraped.sum("otelcol_receiver_accepted_spans", **labels), spans)
        self.assertEqual(scraped.sum("otelcol_exporter_queue_capacity", data_type="traces"), 1000)
        for processor in ("memory_limiter", "resource"):
            for direction in ("incoming", "outgoing"):
                name = f"otelcol_processor_{direction}_items"
                labels = {"processor": processor, "otel_signal": "traces"}
                self.assertEqual(scraped.sum(name, **labels), 5, (name, labels))
        self.assertEqual(scraped.sum("otelcol_processor_batch_metadata_cardinality"), 3)
        for cause in ("encoding", "gathering"):
            self.assertTrue(scraped.has("promhttp_metric_handler_errors_total", cause=cause))
        self.assertTrue(scraped.has("target_info", service_version=scraped_version(scraped)))

    def test_spanflame_shows_what_dashboards_use(self):
        self.check(self.scrape(None))

    def test_go_collector_shows_the_same(self):
        self.check(self.scrape(peers.otelcol()))


def scraped_version(scraped):
    return next(
        labels["service_version"] for name, labels, _ in scraped.samples if name == "target_info"
    )


class Details(case.Case):
    """What only the level "detailed" shows."""

    EXPORTERS = (
        "  otlp_http:\n    endpoint: {good}\n"
        "  otlp_http/bad:\n    endpoint: {bad}\n    sending_queue: {{enabled: false}}\n"
        "  otlp_http/dead:\n    endpoint: http://127.0.0.1:{dead}\n{direct}"
        "  otlp_http/late:\n    endpoint: {late}\n    timeout: 300ms\n{direct}"
        "  otlp_grpc/dead:\n    endpoint: 127.0.0.1:{dead}\n    tls: {{insecure: true}}\n{direct}"
    )
    FAILURES = {
        ("otlp_http/bad", "InvalidArgument", "true"): 3,
        ("otlp_http/dead", "_OTHER", "false"): 3,
        ("otlp_http/late", "Deadline_Exceeded", "false"): 3,
        ("otlp_grpc/dead", "Unavailable", "false"): 3,
    }
    SIZES = (
        "otelcol_exporter_queue_batch_send_size",
        "otelcol_exporter_queue_batch_send_size_bytes",
        "otelcol_processor_batch_batch_send_size_bytes",
    )

    def scrape(self, executable, level):
        good, bad, late = self.sink(), self.sink(otherwise=Reply(400)), self.sink()
        http, port = free_port(), free_port()
        late.hold()
        exporters = self.EXPORTERS.format(
            good=good.url,
            bad=bad.url,
            late=late.url,
            dead=free_port(),
            direct=case.DIRECT + case.NO_RETRY,
        )
        names = [line.strip()[:-1] for line in exporters.splitlines() if line.startswith("  otlp_")]
        pipelines = "".join(
            f"    traces/{i}:\n      receivers: [otlp]\n      processors: [{'' if i else 'batch'}]\n"
            f"      exporters: [{name}]\n"
            for i, name in enumerate(names)
        )
        self.server(
            f"receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{http}\n"
            f"processors:\n  batch:\n    timeout: 10ms\nexporters:\n{exporters}service:\n"
            + case.metrics_service(port).replace("metrics:\n", f"metrics:\n      level: {level}\n")
            + f"  pipelines:\n{pipelines}",
            executable=executable,
        ).wait_until_ready()
        client.post(http, "traces", otlp.traces(3).SerializeToString())
        process.poll_until(
            lambda: metrics.Metrics(port).sum("otelcol_exporter_sent_spans") == 3,
            within=30,
            what="three spans counted as sent",
        )
        late.release()
        return metrics.Metrics(port)

    def failures(self, scraped):
        return {
            (labels["exporter"], labels.get("error_type"), labels.get("error_permanent")): value
            for name, labels, value in scraped.samples
            if name == "otelcol_exporter_send_failed_spans" and value > 0
        }

    def sizes(self, scraped):
        """Histograms without the sum of bytes, which differs by what Go adds to a request."""
        return {
            (name, *sorted(labels.items())): value
            for name, labels, value in scraped.samples
            if name.startswith(self.SIZES) and not name.endswith("_bytes_sum")
        }

    def test_detailed(self):
        ours = self.scrape(None, "detailed")
        self.assertEqual(self.failures(ours), self.FAILURES)
        for name in self.SIZES:
            self.assertEqual(ours.types[name], "histogram")
        theirs = self.scrape(peers.otelcol(), "detailed")
        self.assertEqual(self.failures(theirs), self.FAILURES)
        self.assertEqual(self.sizes(ours), self.sizes(theirs))

    def test_normal(self):
        for executable in peers.systems():
            scraped = self.scrape(executable, "normal")
            plain = {(name, None, None): value for (name, _, _), value in self.FAILURES.items()}
            self.assertEqual(self.failures(scraped), plain)
            self.assertEqual(self.sizes(scraped), {})


class Conservation(case.Case):
    def start(self, exporter="", sink_script=(), processors=None):
        self.back_end = self.sink(script=sink_script)
        self.http, self.port = free_port(), free_port()
        config = case.otlp_config(
            free_port(),
            self.http,
            self.back_end.url,
            exporter=exporter,
            processors=processors,
            service=case.metrics_service(self.port),
        )
        return self.daemon(config)

    def send(self, spans):
        return client.post(self.http, "traces", otlp.traces(spans).SerializeToString()).status

    def settle(self, expected):
        """Until the figures are these; on the way they always add up."""
        process.poll_until(
            lambda: metrics.assert_conserved(self, self.port, "traces") == expected,
            within=30,
            what=f"the figures (received, delivered, rejected, dropped, in flight) {expected}",
        )

    def test_delivered(self):
        self.start(exporter=case.DIRECT)
        for spans in (1, 20, 300):
            self.assertEqual(self.send(spans), 200)
        self.settle((321, 321, 0, 0, 0))

    def test_in_flight_while_the_back_end_hangs(self):
        self.start()
        self.back_end.hold()
        self.assertEqual(self.send(10), 200)
        self.settle((10, 0, 0, 0, 10))
        self.back_end.release()
        self.settle((10, 10, 0, 0, 0))

    def test_rejected_with_the_senders_knowledge(self):
        self.start(exporter=case.DIRECT + case.NO_RETRY, sink_script=[Reply(503), Reply(400)])
        self.assertEqual(self.send(5), 503)
        self.assertEqual(self.send(6), 400)
        self.assertEqual(self.send(7), 200)
        self.settle((18, 7, 11, 0, 0))

    def test_dropped_after_an_acknowledgement(self):
        self.start(sink_script=[Reply(400)], processors={"batch": "    timeout: 10ms\n"})
        self.assertEqual(self.send(8), 200)
        self.settle((8, 0, 0, 8, 0))

    def test_bad_requests_are_not_received(self):
        self.start(exporter=case.DIRECT)
        self.assertEqual(client.post(self.http, "traces", b"\xff").status, 400)
        self.settle((0, 0, 0, 0, 0))

    def test_metrics_and_logs_too(self):
        self.start(exporter=case.DIRECT)
        for signal in ("metrics", "logs"):
            body = otlp.sample(signal, 4).SerializeToString()
            self.assertEqual(client.post(self.http, signal, body).status, 200)
            figures = metrics.assert_conserved(self, self.port, signal)
            self.assertEqual(figures[0], 4)


class Journal(case.Case):
    """What waits on disk is counted, dated and shown, before and after a kill."""

    REQUESTS, SPANS, MAX_SIZE = 5, 7, 256 << 20

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.storage = directory.name
        self.back_end = self.sink(otherwise=Reply(503))
        self.http, self.port, self.pages = free_port(), free_port(), free_port()

    def start(self, exporter="otlp_http"):
        return self.server(
            f"extensions:\n  zpages: {{endpoint: '127.0.0.1:{self.pages}'}}\n"
            f"  file_storage: {{directory: {self.storage}, fsync: true, max_size: {self.MAX_SIZE}}}\n"
            f"receivers:\n  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{self.http}'}}}}}}\n"
            f"exporters:\n  {exporter}:\n    endpoint: {self.back_end.url}\n"
            "    sending_queue: {storage: file_storage, sizer: items, queue_size: 1000}\n"
            "    retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}\n"
            "service:\n  extensions: [zpages, file_storage]\n"
            + case.metrics_service(self.port)
            + f"  pipelines:\n    traces: {{receivers: [otlp], exporters: [{exporter}]}}\n"
        ).wait_until_ready()

    def page(self):
        return client.get(self.pages, "/debug/pipelinez").body.decode()

    def assert_waiting(self, exporter="otlp_http", configured="true"):
        scraped = metrics.Metrics(self.port)
        journal = {"pipeline": "traces", "extension": "file_storage"}
        waiting = {"exporter": exporter, "configured": configured}
        for name, labels, expected in (
            ("journal_records", journal, self.REQUESTS),
            ("journal_waiting_records", journal | waiting, self.REQUESTS),
            ("journal_capacity", journal, self.MAX_SIZE),
            ("journal_full", journal, 0),
            ("journal_corrupt_records", journal, 0),
            ("journal_refusals", journal | {"reason": "max_size"}, 0),
        ):
            name = f"spanflame_{name}"
            self.assertTrue(scraped.has(name, **labels), f"{name} {labels}")
            self.assertEqual(scraped.sum(name, **labels), expected, f"{name} {labels}")
        self.assertGreater(scraped.sum("spanflame_journal_oldest_age_seconds", **journal), 0)
        self.assertGreater(scraped.sum("spanflame_journal_bytes", **journal), 0)
        return scraped

    def test_what_waits_is_shown(self):
        server = self.start()
        for _ in range(self.REQUESTS):
            body = otlp.traces(self.SPANS).SerializeToString()
            self.assertEqual(client.post(self.http, "traces", body).status, 200)
        scraped = self.assert_waiting()
        self.assertEqual(scraped.sum("spanflame_journal_committed_records"), self.REQUESTS)
        self.assertGreater(scraped.sum("spanflame_journal_commits"), 0)
        self.assertEqual(scraped.types["spanflame_journal_flush_seconds"], "histogram")
        flushes = scraped.sum("spanflame_journal_flush_seconds_count")
        self.assertGreater(flushes, 0)
        self.assertLess(scraped.sum("spanflame_journal_flush_seconds_sum") / flushes, 10)
        self.assertTrue(scraped.has("spanflame_journal_flush_seconds_bucket", le="0.0001"))
        # As in the Go collector, in units of the sizer, and what is under way included.
        queue = {"exporter": "otlp_http", "data_type": "traces"}
        size = self.REQUESTS * self.SPANS
        self.assertEqual(scraped.sum("otelcol_exporter_queue_size", **queue), size)
        self.assertGreater(scraped.sum("otelcol_exporter_queue_capacity", **queue), size)
        for text in ("<h2>Journals</h2>", f"{self.storage}/traces", f"<td>{size}</td>"):
            self.assertIn(text, self.page())
        server.signal(signal.SIGKILL)
        server.wait()

        # The configuration has no such exporter any more: what it left is kept, and reported.
        server = self.start("otlp_http/renamed")
        server.wait_for_line("Requests wait in the journal for an exporter .*otlp_http")
        self.assert_waiting(configured="false")
        self.assertIn("otlp_http (not in the configuration)", self.page())
        self.assertEqual(server.stop(), 0)

        server = self.start()
        server.wait_for_line(f'An earlier process left requests.*"requests": {self.REQUESTS},')
        scraped = self.assert_waiting()
        self.assertEqual(scraped.sum("otelcol_exporter_queue_size", **queue), size)
        self.back_end.respond_with(Reply(200))
        server.wait_for_line("The backlog of the earlier process has been delivered")
        scraped = metrics.Metrics(self.port)
        self.assertEqual(scraped.sum("otelcol_exporter_queue_size", **queue), 0)
        self.assertEqual(scraped.sum("spanflame_journal_records"), 0)
        self.assertEqual(scraped.sum("spanflame_journal_oldest_age_seconds"), 0)
        self.assertGreaterEqual(scraped.sum("spanflame_journal_replayed"), self.REQUESTS)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    case.main()
