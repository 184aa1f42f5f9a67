# SPDX-License-Identifier: Apache-2.0
"""A request that got OK arrives, whatever happens to the process: kills under load, during the
start and during the replay, reloads, changed configurations. JOURNAL_KILLS: how many kills in each
loop; JOURNAL_SEED: which."""

import os
import random
import re
import signal
import sys
import threading

from support import case, journaled, kill_load

KILLS = int(os.environ.get("JOURNAL_KILLS", "8"))
SEED = int(os.environ.get("JOURNAL_SEED", "1"))
ARRIVE_WITHIN_S = 120
# Every road into the daemon.
ROADS = (
    ("grpc", "traces"),
    ("grpc", "metrics"),
    ("grpc", "logs"),
    ("grpc", "profiles"),
    ("http", "traces"),
    ("http", "metrics"),
    ("http", "logs"),
    ("http", "profiles"),
    ("push", "push"),
)
PIPELINES = {
    "traces": ("otlp", "trace_profile_join, batch"),
    "metrics": ("otlp", "batch"),
    "logs": ("otlp", "batch"),
    "profiles": ("otlp, pyroscope", "trace_profile_join, batch"),
}


def config(ports, back_end, directory, fsync, **options):
    return journaled.config(
        ports,
        back_end,
        f"{{directory: '{directory}', fsync: {fsync}}}",
        PIPELINES,
        receivers=f"  pyroscope: {{endpoint: '127.0.0.1:{ports['push']}'}}\n",
        processors="  trace_profile_join: {hold: 1s}\n",
        **options,
    )


class Journal(journaled.Case):
    PORTS = ("grpc", "http", "push")

    def setUp(self):
        super().setUp()
        self.complaints = {}

    def load(self, roads=ROADS):
        load = kill_load.Load(roads, self.ports, SEED)
        self.addCleanup(load.close)
        return load

    def start(self, fsync="false", **options):
        """Not waited for: it may be killed before it is ready."""
        server = self.server(config(self.ports, self.back_end, self.directory, fsync, **options))
        self.addCleanup(server.close)
        return server

    def kill(self, server):
        server.process.kill()
        server.wait()
        self.note_losses(server)
        server.close()

    def note_losses(self, server):
        """The daemon's log lines about losses and failures."""
        for line in server.lines:
            if re.search(r"Dropping data|\terror\t|Assertion|Sanitizer", line):
                self.complaints[line.split("\t", 1)[-1]] = line

    def check_arrival(self, load):
        missing = self.back_end.wait_for(set(load.acknowledged), ARRIVE_WITHIN_S)
        if missing:
            lost = [(serial, *load.acknowledged[serial]) for serial in sorted(missing)]
            self.fail(f"{len(lost)} acknowledged items lost: {lost[:20]}; {self.complaints}")

    def report(self, what, load, kills):
        seen = self.back_end.collect()
        doubled = sum(count - 1 for count in seen.values())
        print(
            f"{what}: {kills} kills, {load.sent} sent, {len(load.acknowledged)} acknowledged, "
            f"{len(seen)} arrived, {doubled} duplicates, refusals {load.refusals}",
            file=sys.stderr,
        )


class Kills(Journal):
    def loop(self, fsync):
        """Each round starts the daemon and kills it, in one of four ways; every third is reloaded."""
        choice = random.Random(SEED)
        never = threading.Event()
        load = self.load()
        states = (self.back_end.up, self.back_end.up, self.back_end.refuse, self.back_end.away)
        for kill in range(KILLS):
            choice.choice(states)()
            server = self.start(fsync)
            if kill % 4 == 3:
                # At any moment of the start.
                never.wait(choice.random() * 0.6)
            else:
                server.wait_until_ready()
                if kill % 3 == 1:
                    server.signal(signal.SIGHUP)
                    never.wait(choice.random() * 0.5)
            if kill % 4 == 2:
                # While it replays.
                never.wait(choice.random() * 0.2)
            elif kill % 4 < 2:
                load.wait_for_more(choice.randrange(200), 3)
                if choice.random() < 0.5:
                    choice.choice(states)()
                load.wait_for_more(choice.randrange(100), 3)
            self.assertIsNone(server.process.poll(), server.log())
            self.kill(server)
        self.back_end.up()
        server = self.start(fsync).wait_until_ready()
        self.assertTrue(load.wait_for_more(100, 60), "it does not take requests")
        load.pause()
        self.check_arrival(load)
        self.assertEqual(server.stop(), 0, server.log())
        self.assertGreater(len(load.acknowledged), 10 * KILLS)
        self.assertEqual(load.roads_without_ok(), [])
        for _, status, has_hint in load.refusals:
            self.assertTrue(has_hint, load.refusals)
        self.report(f"fsync {fsync}", load, KILLS)

    def test_kills_without_fsync(self):
        self.loop("false")

    def test_kills_with_fsync(self):
        self.loop("true")


class WriteAheadLog(Journal):
    """The wal of prometheus_remote_write, with and without the queue that it replaces."""

    ROADS = (("grpc", "metrics"), ("http", "metrics"))

    def start(self, queue="true", **options):
        text = f"""receivers:
  otlp:
    protocols:
      grpc: {{endpoint: '127.0.0.1:{self.ports["grpc"]}'}}
      http: {{endpoint: '127.0.0.1:{self.ports["http"]}'}}
processors:
  batch: {{timeout: 50ms}}
exporters:
  prometheus_remote_write:
    endpoint: {self.back_end.url}{kill_load.REMOTE_WRITE_PATH}
    # So that the names of metrics, which are the items, stay as they are.
    protobuf_message: io.prometheus.write.v2.Request
    translation_strategy: NoTranslation
    remote_write_queue: {{enabled: {queue}}}
    wal: {{directory: '{self.directory}/made/wal', buffer_size: 20}}
    retry_on_failure:
      {{initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 1s}}
service:
  lanes: 2
  drain_timeout: 10s
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    metrics: {{receivers: [otlp], processors: [batch], exporters: [prometheus_remote_write]}}
"""
        gates = "exporter.prometheusremotewritexporter.enableSendingRW2"
        server = self.server(text, arguments=("--feature-gates", gates))
        self.addCleanup(server.close)
        return server

    def loop(self, queue):
        choice = random.Random(SEED)
        load = self.load(self.ROADS)
        states = (self.back_end.up, self.back_end.refuse, self.back_end.away)
        for kill in range(KILLS):
            states[kill % 3]()
            server = self.start(queue).wait_until_ready()
            load.wait_for_more(choice.randrange(100, 400), 3)
            choice.choice(states)()
            load.wait_for_more(choice.randrange(100), 3)
            self.assertIsNone(server.process.poll(), server.log())
            self.kill(server)
        self.back_end.up()
        server = self.start(queue).wait_until_ready()
        self.assertTrue(load.wait_for_more(100, 60), "it does not take requests")
        load.pause()
        self.check_arrival(load)
        self.assertEqual(server.stop(), 0, server.log())
        self.assertGreater(len(load.acknowledged), 10 * KILLS)
        self.assertEqual(load.roads_without_ok(), [])
        self.report(f"wal, queue {queue}", load, KILLS)

    def test_kills(self):
        self.loop("true")

    def test_kills_without_a_queue(self):
        self.loop("false")


class CutShort(Journal):
    """A back-end that never responds: stops and reloads end by their deadline and lose nothing."""

    def test_a_reload_and_a_stop(self):
        self.back_end.hold()
        text = config(self.ports, self.back_end, self.directory, "false")
        server = self.server(text.replace("drain_timeout: 10s", "drain_timeout: 1s"))
        server.wait_until_ready()
        load = self.load()
        self.assertTrue(load.wait_for_more(200, 60))
        server.signal(signal.SIGHUP)
        server.wait_for_line("Restarting the process with the new configuration")
        # The new process takes requests, and the lock of the directory.
        self.assertTrue(load.wait_for_more(200, 60), server.log())
        load.pause()
        self.assertEqual(server.stop(), 0, server.log())
        said = [line for line in server.lines if "Shutdown was cut short" in line]
        self.assertEqual(len(said), 2, server.log())
        for line in said:
            self.assertIn('"dropped_items": 0', line)
        # What the held requests bring when they are released does not count.
        self.back_end.refuse()
        self.back_end.release()
        self.back_end.away()
        self.back_end.up()
        server = self.start().wait_until_ready()
        self.check_arrival(load)
        self.assertEqual(server.stop(), 0, server.log())


class Changes(Journal):
    """Requests for exporters or storages that are no longer configured are reported, and delivered
    when these are back."""

    def test_names_and_storages_that_come_and_go(self):
        load = self.load()
        server = self.start().wait_until_ready()  # the back-end is not listening
        self.assertTrue(load.wait_for_more(200, 60))
        load.pause()
        waiting = set(load.acknowledged)
        self.kill(server)
        self.back_end.up()
        # Under another name: what comes now is delivered, and the other's requests are not lost.
        server = self.start(exporter="otlp_http/new").wait_until_ready()
        said = [line for line in server.lines if "Requests wait in the journal" in line]
        self.assertEqual(len(said), 4, server.log())
        for line in said:
            self.assertIn('"exporter": "otlp_http"', line)
        load.go_on()
        self.assertTrue(load.wait_for_more(100, 60))
        load.pause()
        new = set(load.acknowledged) - waiting
        self.assertEqual(self.back_end.wait_for(new, ARRIVE_WITHIN_S), set())
        self.assertEqual(server.stop(), 0, server.log())
        # Without storage: said of each of the four directories.
        server = self.start(queue="queue_size: 500").wait_until_ready()
        said = [line for line in server.lines if "a journal that no pipeline uses" in line]
        self.assertEqual(len(said), 4, server.log())
        for pipeline in ("traces", "metrics", "logs", "profiles"):
            self.assertIn(f"{self.directory}/{pipeline}", "".join(said))
        self.assertFalse(waiting & self.back_end.collect().keys())
        self.assertEqual(server.stop(), 0, server.log())
        # Everything as before.
        server = self.start().wait_until_ready()
        self.check_arrival(load)
        self.assertNotIn("Requests wait", server.log())
        self.assertEqual(server.stop(), 0, server.log())


if __name__ == "__main__":
    case.main()
