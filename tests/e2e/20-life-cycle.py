# SPDX-License-Identifier: Apache-2.0
"""Start, stop and signals: what operators and supervisors rely on."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from support import case, client, otlp, process
from support.ports import free_port
from support.sink import Reply

# So that another process may look at its descriptors, without root's rights too.
OPEN_TO_VIEW = "  core_dumps: true\n"
READY_WITHIN_S = 0.5  # exec to "Everything is ready"; the benchmark measures the 50 ms
LOG_FILE = (
    "  telemetry:\n    logs:\n      output_paths: [{path}]\n    metrics:\n      level: none\n"
)
HEALTH = "extensions:\n  health_check:\n    endpoint: 127.0.0.1:{port}\n"


def open_files(pid):
    """The targets of its file descriptors, without those that close meanwhile."""
    paths = []
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(file))
    return paths


class LifeCycle(case.Case):
    def config(self, **options):
        self.grpc_port, self.http_port = free_port(), free_port()
        return case.otlp_config(self.grpc_port, self.http_port, **options)

    def test_start_and_stop_log_the_lines_that_people_grep_for(self):
        server = self.daemon(self.config(backend="http://127.0.0.1:1"))
        self.assertEqual(server.stop(), 0)
        log = server.log()
        for line in (
            "Starting GRPC server",
            "Starting HTTP server",
            "Everything is ready. Begin running and processing data.",
            "Received signal from OS",
            "Starting shutdown...",
            "Shutdown complete.",
        ):
            self.assertIn(line, log)

    def test_sigint_stops_too(self):
        server = self.daemon(self.config(backend="http://127.0.0.1:1"))
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait(), 0)

    def test_user_signals_change_nothing(self):
        server = self.daemon(self.config(backend="http://127.0.0.1:1"))
        server.signal(signal.SIGUSR1)
        server.signal(signal.SIGUSR2)
        self.assertEqual(client.post(self.http_port, "traces", b"").status, 200)

    @unittest.skipIf(process.is_sanitized(), "sanitizers start slowly")
    def test_ready_soon_after_exec(self):
        server = self.daemon(self.config(backend="http://127.0.0.1:1"))
        self.assertLess(time.monotonic() - server.started_at, READY_WITHIN_S)

    def test_unset_environment_variables_are_named(self):
        backend = '"http://127.0.0.1:1/${env:E2E_UNSET}" # ${env:NOT_READ_IN_COMMENTS}'
        server = self.daemon(self.config(backend=backend))
        self.assertIn("Configuration references unset environment variable", server.log())
        self.assertIn("E2E_UNSET", server.log())
        self.assertNotIn("NOT_READ_IN_COMMENTS", server.log())

    def test_a_port_in_use_ends_with_1_and_names_it(self):
        config = self.config(backend="http://127.0.0.1:1")
        # The second of a receiver's listeners fails when the first is open already.
        for port in (self.grpc_port, self.http_port):
            with self.subTest(port=port), socket.create_server(("127.0.0.1", port)):
                server = self.server(config)
                self.assertEqual(server.wait(), 1)
                self.assertIn(f"127.0.0.1:{port}", server.log())
                self.assertIn("address already in use", server.log())

    def test_a_reload_keeps_its_ports_and_opens_its_log_once(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            service = OPEN_TO_VIEW + LOG_FILE.format(path=log)
            server = self.server(self.config(backend="http://127.0.0.1:1", service=service))
            for starts in (1, 2, 3):
                process.poll_until(
                    lambda: log.exists() and log.read_text().count(process.READY) == starts,
                    process.READY_WITHIN_S,
                    f"start {starts}",
                )
                self.assertEqual(client.get(self.http_port, "/").status, 404)
                self.assertEqual(open_files(server.process.pid).count(str(log)), 1)
                if starts < 3:
                    server.signal(signal.SIGHUP)
            self.assertEqual(server.stop(), 0)

    def test_reloads_may_be_asked_for_at_any_time(self):
        """A signal without a handler ends the process. Between two configurations the handlers stay,
        and no other thread, such as those that resolve names, takes the signal."""
        server = self.daemon(self.config(backend="http://localhost:1"))
        client.post(self.http_port, "traces", otlp.traces(1).SerializeToString())
        tasks = f"/proc/{server.process.pid}/task"
        process.poll_until(lambda: len(os.listdir(tasks)) > 1, process.READY_WITHIN_S, "a resolver's thread")
        storm = f"import os\nwhile True: os.kill({server.process.pid}, {int(signal.SIGHUP)})"

        def has_reloaded():
            self.assertIsNone(server.process.poll())
            return server.log().count(process.READY) > 10

        with subprocess.Popen([sys.executable, "-c", storm]) as sender:
            try:
                process.poll_until(has_reloaded, 10 * process.READY_WITHIN_S, "ten reloads")
            finally:
                sender.kill()
        self.assertEqual(server.stop(), 0)

    def test_a_reload_of_a_wrong_file_changes_nothing(self):
        server = self.daemon(self.config(backend="http://127.0.0.1:1"))
        pathlib.Path(server.config_path).write_text("receivers: {nope: }\n")
        server.signal(signal.SIGHUP)
        server.wait_for_line("The new configuration is invalid")
        self.assertIn("unknown type", server.log())
        self.assertEqual(client.get(self.http_port, "/").status, 404)

    def test_a_reload_without_descriptors_changes_nothing(self):
        server = self.daemon(
            self.config(backend="http://127.0.0.1:1", service=OPEN_TO_VIEW + case.QUIET)
        )
        pid = server.process.pid
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        first_free = min(set(range(max(used) + 2)) - used)
        limit = first_free + 1  # one is left, for the file
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        server.signal(signal.SIGHUP)
        server.wait_for_line("The new configuration is invalid")
        self.assertIn("cannot create an event loop", server.log())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual(client.get(self.http_port, "/").status, 404)

    def test_a_log_that_cannot_be_opened_is_reported(self):
        service = LOG_FILE.format(path="/nowhere/log")
        server = self.daemon(self.config(backend="http://127.0.0.1:1", service=service))
        self.assertIn("Cannot open a log output", server.log())

    def test_health_check_follows_the_state(self):
        port = free_port()
        service = "  extensions: [health_check]\n" + case.QUIET
        extra = HEALTH.format(port=port)
        config = self.config(backend="http://127.0.0.1:1", extra=extra, service=service)
        server = self.daemon(config)
        response = client.get(port, "/")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["content-type"], "application/json")
        self.assertEqual(json.loads(response.body)["status"], "Server available")
        self.assertEqual(server.stop(), 0)
        with self.assertRaises(OSError):
            client.get(port, "/")

    def test_healthcheck_command_asks_the_endpoint(self):
        port = free_port()
        service = "  extensions: [health_check]\n" + case.QUIET
        extra = HEALTH.format(port=port)
        server = self.daemon(
            self.config(backend="http://127.0.0.1:1", extra=extra, service=service)
        )
        url = f"http://127.0.0.1:{port}/"
        self.assertEqual(process.run("healthcheck", url).returncode, 0)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(process.run("healthcheck", url).returncode, 1)

    def test_json_logs_are_one_object_a_line(self):
        service = "  telemetry:\n    logs:\n      encoding: json\n    metrics:\n      level: none\n"
        server = self.daemon(self.config(backend="http://127.0.0.1:1", service=service))
        self.assertEqual(server.stop(), 0)
        self.assertGreater(len(server.lines), 3)
        for line in server.lines:
            record = json.loads(line)
            for key in ("level", "ts", "msg"):
                self.assertIn(key, record)


class Stopping(case.Case):
    """What happens to telemetry that was acknowledged and not yet delivered."""

    def start(self, exporter="", service="", processors=None):
        self.back_end = self.sink()
        self.port = free_port()
        config = case.otlp_config(
            free_port(),
            self.port,
            self.back_end.url,
            exporter=case.UNCOMPRESSED + exporter,
            processors=processors,
            service=service,
        )
        return self.server(config).wait_until_ready()

    def test_sigterm_flushes_the_batch_that_is_being_gathered(self):
        server = self.start(processors={"batch": "    timeout: 600s\n"})
        sent = otlp.traces(7).SerializeToString()
        self.assertEqual(client.post(self.port, "traces", sent).status, 200)
        self.assertEqual(self.back_end.requests, [])
        self.assertEqual(server.stop(), 0)
        arrived = [request.payload for request in self.back_end.requests]
        self.assertEqual(otlp.spans_of(arrived), otlp.spans_of([sent]))

    def test_sigterm_drains_the_queue(self):
        server = self.start(exporter="    sending_queue:\n      num_consumers: 1\n")
        self.back_end.hold()
        sent = [otlp.traces(1).SerializeToString() for _ in range(20)]
        for body in sent:
            self.assertEqual(client.post(self.port, "traces", body).status, 200)
        server.signal(signal.SIGTERM)
        server.wait_for_line("Starting shutdown")
        self.back_end.release()
        self.assertEqual(server.wait(), 0)
        arrived = [request.payload for request in self.back_end.requests]
        self.assertEqual(otlp.spans_of(arrived), otlp.spans_of(sent))

    def test_a_queue_before_a_dead_back_end_is_tried_once_and_dropped_loudly(self):
        server = self.start()
        self.back_end.respond_with(Reply(503))
        self.assertEqual(
            client.post(self.port, "traces", otlp.traces(3).SerializeToString()).status, 200
        )
        self.back_end.wait_for_requests(1)
        self.assertEqual(server.stop(), 0)
        self.assertIn("Dropping data", server.log())
        self.assertIn('"dropped_items": 3', server.log())

    def test_signals_that_come_twice_do_not_cut_the_drain(self):
        server = self.start()
        self.back_end.hold()
        sent = otlp.traces(5).SerializeToString()
        self.assertEqual(client.post(self.port, "traces", sent).status, 200)
        server.signal(signal.SIGTERM)
        server.wait_for_line("Starting shutdown")
        begun = time.monotonic()
        # Supervisors repeat themselves, and at once: neither cuts the drain short.
        server.signal(signal.SIGINT)
        server.wait_for_line("Shutdown is already in progress")

        # Nor does SIGTERM, however late it comes.
        def has_come_late():
            server.signal(signal.SIGTERM)
            return time.monotonic() > begun + 1.5

        process.poll_until(has_come_late, 20, "a signal more than a second later")
        self.assertIsNone(server.process.poll())
        self.back_end.release()
        self.assertEqual(server.wait(), 0)
        self.assertNotIn("Shutdown was cut short", server.log())
        arrived = [request.payload for request in self.back_end.requests]
        self.assertEqual(otlp.spans_of(arrived), otlp.spans_of([sent]))

    def test_a_later_interrupt_does_not_wait_for_the_back_end(self):
        server = self.start(
            exporter="    timeout: 120s\n", service="  drain_timeout: 120s\n" + case.QUIET
        )
        self.back_end.hold()
        client.post(self.port, "traces", otlp.traces(1).SerializeToString())
        server.signal(signal.SIGINT)
        server.wait_for_line("Starting shutdown")

        def has_ended():
            if server.process.poll() is None:
                server.signal(signal.SIGINT)
            return server.process.poll() is not None

        process.poll_until(has_ended, within=20, what="the end after more interrupts")
        self.assertEqual(server.wait(), 0)
        self.assertRegex(server.log(), r'Shutdown was cut short.*"dropped_items": 1\b')

    def test_the_drain_ends_at_its_bound(self):
        service = "  drain_timeout: 1s\n" + case.QUIET
        server = self.start(service=service)
        self.back_end.hold()
        client.post(self.port, "traces", otlp.traces(1).SerializeToString())
        self.assertEqual(server.stop(within=20), 0)
        self.assertRegex(server.log(), r'Shutdown was cut short.*"dropped_items": 1\b')


if __name__ == "__main__":
    case.main()
