# SPDX-License-Identifier: Apache-2.0
"""`spanflame journal` on what a daemon keeps on disk, while it runs, after it was killed, and with a
byte flipped. What export writes is read by the Go collector, and by spanflame."""

import json
import os
import pathlib
import signal
import tempfile

from support import case, client, otlp, peers, profiles
from support.ports import free_port
from support.process import poll_until, run
from support.sink import Reply

JSON = {"Content-Type": "application/json"}
REQUESTS = 6
ITEMS = 4
DELIVERED_WITHIN_S = 60
BUSY = Reply(503)
OF = {"traces": otlp.spans_of, "metrics": otlp.metrics_of, "logs": otlp.logs_of}
PATHS = {name: f"/v1/{name}" for name in case.SIGNALS} | {"profiles": profiles.PATH}


def config(http, backend, storage=None, signals=(*case.SIGNALS, "profiles")):
    extensions = queue = service = ""
    if storage:
        extensions = (
            f"extensions:\n  file_storage:\n    directory: {storage}\n    create_directory: true\n"
        )
        queue = (
            "    sending_queue: {storage: file_storage}\n"
            "    retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}\n"
        )
        service = "  extensions: [file_storage]\n"
    pipelines = "".join(
        f"    {name}{'/in/out' if name == 'logs' else ''}: "
        "{receivers: [otlp], exporters: [otlp_http]}\n"
        for name in signals
    )
    return (
        f"receivers:\n  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}\n"
        f"{extensions}exporters:\n  otlp_http:\n    endpoint: {backend}\n{case.UNCOMPRESSED}{queue}"
        f"service:\n{service}{case.QUIET}  pipelines:\n{pipelines}"
    )


def profile(number):
    builder = profiles.Builder().profile("cpu:nanoseconds")
    return builder.sample([f"function-{number}", "main"], number + 1).request


def request_of(name, number):
    return profile(number) if name == "profiles" else otlp.sample(name, ITEMS)


def contents(name, payloads):
    """The items of requests, whatever order they came in."""
    read = profiles.samples_of if name == "profiles" else OF[name]
    found = read(payloads)
    return sorted(map(str, found.items() if isinstance(found, dict) else found))


class JournalTools(case.Case):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.storage = pathlib.Path(directory.name, "storage")
        self.back_end, self.http = self.sink(otherwise=BUSY), free_port()
        self.sent = {name: [] for name in PATHS}
        self.config = config(self.http, self.back_end.url, self.storage)

    def start(self):
        return self.server(self.config).wait_until_ready()

    def send(self):
        for name, path in PATHS.items():
            for number in range(REQUESTS):
                body = request_of(name, number).SerializeToString()
                headers = {"Content-Type": client.PROTOBUF}
                self.assertEqual(client.request(self.http, "POST", path, body, headers).status, 200)
                self.sent[name].append(body)

    def journal(self, *arguments, status=0):
        done = run("journal", *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def waiting(self):
        """By pipeline: records and items that wait."""
        listed = json.loads(self.journal("list", "--json", str(self.storage)).stdout)
        return {
            journal["name"]: [(row["name"], row["records"], row["items"]) for row in journal["exporters"]]
            for journal in listed["journals"]
        }

    def expected(self, items):
        return {
            "logs/in/out": [("otlp_http", *items)],
            "metrics": [("otlp_http", *items)],
            "profiles": [("otlp_http", items[0], items[1] // ITEMS)],
            "traces": [("otlp_http", *items)],
        }

    def files(self):
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size)
            for path in sorted(self.storage.rglob("*"))
        }

    def lines(self, *arguments, status=0):
        return self.journal("export", str(self.storage), *arguments, status=status).stdout.splitlines()

    def replay(self, name, lines, executable=None):
        """What a back-end gets when the lines are sent by hand to spanflame or another collector."""
        back_end, http = self.sink(), free_port()
        text = config(http, back_end.url, signals=(name,)).replace("/in/out", "")
        self.server(text, executable=executable).wait_until_ready()
        for line in lines:
            response = client.request(http, "POST", PATHS[name], line.encode(), JSON)
            self.assertEqual(response.status, 200, response.body)
        arrived = back_end.wait(lambda seen: len(seen) >= len(lines))
        return contents(name, [request.payload for request in arrived])

    def test_a_running_daemon_is_looked_at_and_goes_on(self):
        self.start()
        self.send()
        self.assertEqual(self.waiting(), self.expected((REQUESTS, REQUESTS * ITEMS)))
        table = self.journal("list", str(self.storage / "traces")).stdout
        self.assertRegex(table, rf"(?m)^ +{REQUESTS} +{REQUESTS * ITEMS} .*  otlp_http$")
        self.assertNotIn("metrics", table)
        verified = self.journal("verify", str(self.storage)).stdout
        self.assertEqual(verified.count(f": {REQUESTS} records are sound, 0 are missing"), len(PATHS))
        self.assertEqual(len(self.lines()), REQUESTS * len(PATHS))
        self.back_end.respond_with(Reply(200))
        poll_until(
            lambda: self.waiting() == self.expected((0, 0)), DELIVERED_WITHIN_S, "nothing waits"
        )
        self.assertEqual(self.lines(), [])
        self.assertEqual(len(self.lines("--all", "--signal", "traces")), REQUESTS)

    def test_lines_after_a_kill_say_what_was_sent(self):
        server = self.start()
        self.send()
        server.signal(signal.SIGKILL)
        server.wait()
        before = self.files()
        self.journal("verify", str(self.storage))
        for name in PATHS:
            lines = self.lines("--signal", name, "--exporter", "otlp_http")
            self.assertEqual(len(lines), REQUESTS)
            wanted = contents(name, self.sent[name])
            with self.subTest(name, reader="spanflame"):
                self.assertEqual(self.replay(name, lines), wanted)
            if name == "profiles":
                continue
            with self.subTest(name, reader="the Go collector"):
                self.assertEqual(self.replay(name, lines, peers.otelcol()), wanted)
        self.assertEqual(self.files(), before)

    def test_a_flipped_byte_is_found_and_the_rest_is_rescued(self):
        server = self.start()
        self.send()
        server.signal(signal.SIGKILL)
        server.wait()
        victim = 2
        segment = max(self.storage.glob("traces/*.journal"), key=lambda path: path.stat().st_mtime_ns)
        data = bytearray(segment.read_bytes())
        at = data.index(self.sent["traces"][victim])
        data[at + 5] ^= 1
        segment.write_bytes(data)
        verified = json.loads(self.journal("verify", "--json", str(self.storage), status=1).stdout)
        found = {journal["name"]: journal for journal in verified["journals"]}
        self.assertEqual(
            {name: journal["is_sound"] for name, journal in found.items()},
            {"logs/in/out": True, "metrics": True, "profiles": True, "traces": False},
        )
        (damage,) = found["traces"]["damage"]
        self.assertEqual(
            (damage["file"], damage["missing_records"], damage["missing_waiting"]),
            (segment.name, 1, 1),
        )
        self.assertLess(damage["offset"], at)
        self.assertGreater(damage["offset"] + 4096, at)
        text = self.journal("verify", str(self.storage / "traces"), status=1).stdout
        self.assertIn(f"{segment}: offset {damage['offset']}: 1 record is missing, number ", text)
        done = self.journal("export", str(self.storage), "--signal", "traces", status=1)
        self.assertIn(f"{segment}: offset {damage['offset']}: 1 record is missing", done.stderr)
        rest = [body for number, body in enumerate(self.sent["traces"]) if number != victim]
        self.assertEqual(
            self.replay("traces", done.stdout.splitlines()), contents("traces", rest)
        )
        # The daemon delivers the same.
        self.back_end.respond_with(Reply(200))
        self.start()
        self.back_end.wait(lambda _: len(self.back_end.accepted("traces")) >= len(rest))
        arrived = [request.payload for request in self.back_end.accepted("traces")]
        self.assertEqual(contents("traces", arrived), contents("traces", rest))

    def test_a_directory_without_a_journal_is_an_error(self):
        missing = str(self.storage / "none")
        done = self.journal("list", missing, status=2)
        self.assertEqual(done.stderr, f"Error: cannot read the directory {missing}: No such file or directory\n")
        self.assertFalse(os.path.exists(missing))
        self.storage.mkdir()
        done = self.journal("verify", str(self.storage), status=2)
        self.assertIn("found no journal, expected segments (*.journal)", done.stderr)


if __name__ == "__main__":
    case.main()
