# SPDX-License-Identifier: Apache-2.0
"""forward, with the same configuration in the Go collector and in the daemon."""

import signal
import threading

from support import case, client, otlp, peers, process
from support.ports import free_port
from support.sink import Reply

# in -> forward -> live, edited there, and archive; another way in -> archive.
CONFIG = """\
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{grpc}'}}, http: {{endpoint: '127.0.0.1:{http}'}}}}}}
  otlp/side: {{protocols: {{http: {{endpoint: '127.0.0.1:{side}'}}}}}}
processors:
  resource/in: {{attributes: [{{key: way, value: in, action: upsert}}]}}
  resource/live: {{attributes: [{{key: way, value: live, action: upsert}}]}}
{processors}connectors:
  forward:
  forward/archive:
exporters:
  otlp_http/live:
    endpoint: {live}
{live_options}  otlp_http/archive:
    endpoint: {archive}
{archive_options}service:
{quiet}  pipelines:
{pipelines}"""
PIPELINES = """\
    {signal}/in: {{receivers: [otlp], processors: [{first}resource/in], exporters: [forward]}}
    {signal}/side: {{receivers: [otlp/side], exporters: [forward/archive]}}
    {signal}/live: {{receivers: [forward], processors: [resource/live{last}], exporters: [otlp_http/live]}}
    {signal}/back: {{receivers: [forward], exporters: [forward/archive]}}
    {signal}/archive: {{receivers: [forward/archive], exporters: [otlp_http/archive]}}
"""
DIRECT = case.DIRECT + case.NO_RETRY
BATCH = "  batch: {timeout: 10s}\n"


class Forward(case.Case):
    def serve(self, executable=None, options=DIRECT, processors="", first="", last=""):
        self.live, self.archive = self.sink(), self.sink()
        self.grpc_port, self.http, self.side = free_port(), free_port(), free_port()
        config = CONFIG.format(
            grpc=self.grpc_port,
            http=self.http,
            side=self.side,
            live=self.live.url,
            archive=self.archive.url,
            live_options=options,
            archive_options=options,
            processors=processors,
            quiet=case.QUIET,
            pipelines="".join(
                PIPELINES.format(signal=name, first=first, last=last) for name in case.SIGNALS
            ),
        )
        if executable:
            return self.server(config, executable=executable).wait_until_ready()
        return self.daemon(config)

    def both(self):
        yield "spanflame", None
        yield "the Go collector", peers.otelcol()

    def test_every_pipeline_behind_gets_all_with_its_own_edits(self):
        for name, executable in self.both():
            with self.subTest(name):
                self.serve(executable)
                self.check_edits()

    def check_edits(self):
        for name in case.SIGNALS:
            body = otlp.sample(name, 7).SerializeToString()
            self.assertEqual(client.post(self.http, name, body).status, 200)
            self.assertEqual(self.grpc(self.grpc_port).export(name, body), ("OK", ""))
            self.assertEqual(client.post(self.side, name, body).status, 200)
            # Nothing is queued: the back-ends come first, then the client's response.
            self.assertEqual(ways(self.live, name), ["live", "live"])
            self.assertEqual(sorted(ways(self.archive, name), key=str), [None, "in", "in"])

    def test_the_client_gets_the_worst_result_of_the_pipelines_behind(self):
        """The same status for each pair of responses. Of a retryable and a permanent failure the Go
        collector reports either, spanflame the permanent one."""
        replies = [Reply(), Reply(400), Reply(503)]
        seen = {}
        for name, executable in self.both():
            self.serve(executable)
            for live in replies:
                for archive in replies:
                    self.live.respond_with(live)
                    self.archive.respond_with(archive)
                    body = otlp.traces().SerializeToString()
                    pair = (live.status, archive.status)
                    seen.setdefault(pair, []).append(client.post(self.http, "traces", body).status)
        for (live, archive), (ours, theirs) in seen.items():
            with self.subTest(live=live, archive=archive):
                if {live, archive} == {400, 503}:
                    self.assertEqual(ours, 400)
                    self.assertIn(theirs, (400, 503))
                else:
                    self.assertEqual(ours, theirs)

    def test_a_stop_drains_all_pipelines(self):
        daemon = self.serve(
            options="", processors=BATCH, first="batch, ", last=", batch"
        )
        for _ in range(50):
            body = otlp.traces(3).SerializeToString()
            self.assertEqual(client.post(self.http, "traces", body).status, 200)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(spans(self.live), 150)
        self.assertEqual(spans(self.archive), 150)

    def test_reloads_lose_nothing(self):
        daemon = self.serve(
            options="", processors="  batch: {timeout: 20ms}\n", first="batch, ", last=", batch"
        )
        sent, over = [], threading.Event()

        def send():
            while not over.is_set():
                try:
                    status = client.post(
                        self.http, "traces", otlp.traces(2).SerializeToString()
                    ).status
                except OSError:
                    continue  # a connection that a reload closed before it read the request
                sent.append(status)

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        for reloads in range(2, 5):
            daemon.signal(signal.SIGHUP)
            process.poll_until(
                lambda: daemon.log().count(process.READY) == reloads,
                process.READY_WITHIN_S,
                f"start {reloads}",
            )
        over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(daemon.stop(), 0)
        acknowledged = 2 * sent.count(200)
        self.assertGreater(acknowledged, 0)
        self.assertGreaterEqual(spans(self.live), acknowledged)
        self.assertEqual(spans(self.live), spans(self.archive))


def ways(sink, name):
    """The attribute `way` of each Resource that arrived."""
    return [
        dict(otlp.attributes_of(resource.resource.attributes)).get("way", (None, None))[1]
        for request in sink.accepted(name)
        for resource in list(otlp.decode(name, request.payload).ListFields()[0][1])
    ]


def spans(sink):
    return len(otlp.spans_of([request.payload for request in sink.accepted("traces")]))


if __name__ == "__main__":
    case.main()
