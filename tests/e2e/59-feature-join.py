# SPDX-License-Identifier: Apache-2.0
"""Profiles get their spans' names, with real SDKs: a slow span leads to its function and
its siblings do not. On a sink, and in a real Pyroscope server where PYROSCOPE_URL names one."""

import pathlib
import re
import signal
import tempfile
import time
import uuid

from support import case, metrics, otlp, profiles, pyroscope
from support.joined import CPU, MS, SECOND, Joined, free_ports, ids, samples_of, spans_of, trace
from support.ports import free_port

WALL = "wall:wall:nanoseconds:wall:nanoseconds"
SLOW, FAST = "checkout", ("search", "list")
BUCKETS = [(10 * MS, "<10ms"), (100 * MS, "<100ms"), (SECOND, "<1s"), (10 * SECOND, "<10s")]
NAMES = 10_000
CAP = 100


def bucket(span):
    duration = span.end_time_unix_nano - span.start_time_unix_nano
    return next((text for bound, text in BUCKETS if duration < bound), "≥10s")


class Sdks(Joined):
    """What a person's program sends, on its way through."""

    def check(self, sdk):
        self.start()
        had = self.run_sdk(sdk)
        by_id = {bytes.fromhex(span["span_id"]): name for name, span in had.items()}
        requests = self.back_end.wait(
            lambda all: set(by_id) <= {link for _, _, link in samples_of(all)}
            and set(by_id) <= set(spans_of(all))
        )
        spans = spans_of(requests)
        for stack, attributes, link in samples_of(requests):
            name = by_id[link]
            frames = " ".join(stack)
            self.assertNotIn("parse" if name == SLOW else "render", frames)
            self.assertEqual(attributes.get("span_name"), name)
            self.assertEqual(attributes.get("http.route"), f"/{name}")
            self.assertEqual(attributes.get("duration_bucket"), bucket(spans[link]))
        hot = [stack for stack, _, link in samples_of(requests) if by_id[link] == SLOW]
        self.assertTrue(any("render" in frame for stack in hot for frame in stack), hot)
        for span_id in by_id:
            marks = dict(otlp.attributes_of(spans[span_id].attributes))
            self.assertEqual(marks["pyroscope.profile.id"], ("string_value", span_id.hex()))

    def test_python(self):
        self.check("python")

    def test_go(self):
        self.check("go")

    def test_node(self):
        self.check("node")


class Links(Joined):
    """OTLP profiles, whose samples have Links."""

    def setUp(self):
        self.service = f"shop-{uuid.uuid4().hex[:12]}"
        self.now = time.time_ns()

    def send_spans(self):
        rows = [
            (*ids(1), SLOW, self.now - 3 * SECOND, self.now - SECOND),
            (*ids(2), FAST[0], self.now - 3 * SECOND, self.now - 3 * SECOND + 50 * MS),
        ]
        self.send("/v1/traces", trace(rows, self.service))

    def send_profile(self):
        builder = profiles.Builder({"service.name": self.service})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), self.now - 4 * SECOND)
        builder.sample(["render", "main"], 700 * MS, link=ids(1))
        builder.sample(["parse", "main"], 20 * MS, link=ids(2))
        builder.sample(["idle", "main"], 5 * MS)
        self.send(profiles.PATH, builder.bytes())

    def check(self, found):
        self.assertEqual(
            sorted((stack[0], a.get("span_name"), a.get("duration_bucket")) for stack, a, _ in found),
            [("parse", FAST[0], "<100ms"), ("render", SLOW, "<10s")],
        )

    def wait_for_profiles(self):
        return self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))

    def test_spans_before_the_profile(self):
        self.start()
        self.send_spans()
        self.send_profile()
        self.check(samples_of(self.wait_for_profiles()))

    def test_a_profile_waits_for_its_spans(self):
        self.start(join="    hold: 60s\n")
        self.send_profile()
        self.assertEqual(self.counter("held_requests"), 1)
        self.assertEqual(self.back_end.accepted(profiles.PATH), [])
        self.send_spans()
        self.check(samples_of(self.wait_for_profiles()))
        self.assertEqual(self.counter("released_requests", reason="complete"), 1)
        metrics.assert_conserved(self, self.ports["metrics"], "profiles")

    def test_what_waits_at_the_end_is_delivered(self):
        daemon = self.start(join="    hold: 60s\n")
        self.send_profile()
        self.assertEqual(daemon.stop(), 0)
        found = samples_of(self.wait_for_profiles())
        self.assertEqual([a for _, a, _ in found], [{}, {}])

    def test_what_waits_at_a_reload_is_delivered_once(self):
        daemon = self.start(join="    hold: 60s\n")
        self.send_profile()
        daemon.signal(signal.SIGHUP)
        self.wait_for_profiles()
        self.send_spans()
        self.send_profile()
        requests = self.back_end.wait(
            lambda all: len([r for r in all if r.path == profiles.PATH]) >= 2
        )
        after = [r for r in requests if r.path == profiles.PATH][1:]
        self.assertEqual(len(after), 1)
        self.check(samples_of(after))

    def test_after_a_kill_the_next_life_begins_anew(self):
        """What only waits in memory dies with it, as the queue of an exporter does."""
        text = self.configure(join="    hold: 60s\n")
        killed = self.server(text).wait_until_ready()
        self.send_profile()
        killed.signal(signal.SIGKILL)
        killed.wait()
        self.daemon(text)
        self.send_spans()
        self.send_profile()
        self.check(samples_of(self.wait_for_profiles()))
        self.assertEqual(self.counter("released_requests"), 0)
        metrics.assert_conserved(self, self.ports["metrics"], "profiles")

    def test_with_storage_what_waits_survives_a_kill(self):
        """It comes back from the journal, joined like any other, and only once. Whatever was done with
        the first is on disk with the second."""
        directory = tempfile.TemporaryDirectory(prefix="spanflame-join-")
        self.addCleanup(directory.cleanup)
        text = self.configure(join="    hold: 60s\n", extra="  extensions: [file_storage]\n")
        place = f"    endpoint: {self.back_end.url}\n"
        text = text.replace(place, f"{place}    sending_queue: {{storage: file_storage}}\n")
        text += f"extensions:\n  file_storage: {{directory: {directory.name}}}\n"
        killed = self.server(text).wait_until_ready()
        for held in (1, 2):
            self.send_profile()
            self.assertEqual(self.counter("held_requests"), held)
        killed.signal(signal.SIGKILL)
        killed.wait()
        daemon = self.daemon(text)
        self.send_spans()
        requests = self.back_end.wait(
            lambda all: len([r for r in all if r.path == profiles.PATH]) >= 2
        )
        for request in requests:
            if request.path == profiles.PATH:
                self.check(samples_of([request]))
        self.assertEqual(daemon.stop(), 0)
        self.daemon(text)
        self.send_spans()
        self.back_end.wait(lambda all: len([r for r in all if r.signal == "traces"]) >= 2)
        self.assertEqual(len(self.back_end.accepted(profiles.PATH)), 2)


class Stored(Joined):
    """The same in a real server, asked as Grafana asks."""

    def setUp(self):
        self.server_side = pyroscope.Pyroscope(pyroscope.need())
        self.service = f"shop-{uuid.uuid4().hex[:12]}"
        self.selector = f'{{service_name="{self.service}"}}'

    def start(self, **options):
        return super().start({"pyroscope": f"    endpoint: {self.server_side.url}\n"}, **options)

    def functions_of(self, kind, span):
        return " ".join(
            self.server_side.wait_for(kind, self.selector, 1, spanSelector=[span["span_id"]])
        )

    def check(self, sdk, kind):
        self.start()
        had = self.run_sdk(sdk, self.service)
        for name in (SLOW, *FAST):
            found = self.functions_of(kind, had[name])
            here, elsewhere = ("render", "parse") if name == SLOW else ("parse", "render")
            self.assertIn(here, found)
            self.assertNotIn(elsewhere, found)
        named = f'{{service_name="{self.service}", span_name="{SLOW}"}}'
        self.assertGreater(sum(self.server_side.functions(kind, named).values()), 0)
        rows = self.server_side.series(self.selector, ["span_name", "duration_bucket"])
        spans = {span.name: span for span in spans_of(self.back_end.accepted()).values()}
        for name, found in rows:
            if name is not None:
                self.assertEqual(found, bucket(spans[name]))

    def test_python(self):
        self.check("python", CPU)

    def test_go(self):
        self.check("go", CPU)

    def test_node(self):
        self.check("node", WALL)

    def test_ten_thousand_names_stay_under_the_cap(self):
        self.start(join=f"    cap: {CAP}\n")
        now = time.time_ns()
        rows = [
            (*ids(number), f"GET /item/{number}", now - 2 * SECOND, now - SECOND)
            for number in range(1, NAMES + 1)
        ]
        self.send("/v1/traces", trace(rows, self.service))
        builder = profiles.Builder({"service.name": self.service})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), now - 3 * SECOND)
        for number in range(1, NAMES + 1):
            builder.sample(["work", "main"], MS, link=ids(number))
        self.send(profiles.PATH, builder.bytes())
        found = self.server_side.wait_for(CPU, self.selector, NAMES * MS)
        self.assertEqual(found, {"work": NAMES * MS})
        names = {name for name, in self.server_side.series(self.selector, ["span_name"])}
        self.assertEqual(len(names), CAP + 1)
        self.assertIn("other", names)
        one = self.server_side.wait_for(
            CPU, self.selector, MS, spanSelector=[ids(NAMES)[1].hex()]
        )
        self.assertEqual(one, {"work": MS})


class Grafana(Joined):
    """The two files of config/examples/grafana: what its data source asks finds the flame graph."""

    FILES = pathlib.Path(__file__).resolve().parents[2] / "config" / "examples" / "grafana"
    MARGIN_MS = 30_000

    def start_example(self, url):
        self.ports = free_ports()
        self.back_end = self.sink()
        otlp_http = "receivers.otlp.protocols.http"
        settings = {
            f"{otlp_http}.endpoint": f"127.0.0.1:{self.ports['otlp']}",
            "receivers.otlp.protocols.grpc.endpoint": f"127.0.0.1:{free_port()}",
            "receivers.pyroscope.endpoint": f"127.0.0.1:{self.ports['pyroscope']}",
            "service.telemetry.metrics.level": "none",
        }
        self.daemon(
            (self.FILES / "spanflame.yaml").read_text(encoding="utf-8"),
            arguments=[f"--set={key}={value}" for key, value in settings.items()],
            environment={"TEMPO_URL": self.back_end.url, "PYROSCOPE_URL": url},
        )

    def test_the_slow_span_leads_to_its_flame_graph(self):
        server = pyroscope.Pyroscope(pyroscope.need())
        source = (self.FILES / "datasources.yaml").read_text(encoding="utf-8")
        kind = re.search(r"profileTypeId: (\S+)", source).group(1)
        key, label = re.search(r"- key: (\S+)\n\s+value: (\S+)", source).groups()
        service = f"shop-{uuid.uuid4().hex[:12]}"
        self.start_example(server.url)
        had = self.run_sdk("python", service)
        requests = self.back_end.wait(lambda all: len(spans_of(all)) == len(had))
        resource = otlp.decode("traces", requests[0].payload).resource_spans[0].resource
        tags = dict(otlp.attributes_of(resource.attributes))
        selector = f'{{{label}="{tags[key][1]}"}}'
        for span in spans_of(requests).values():
            mark = dict(otlp.attributes_of(span.attributes))["pyroscope.profile.id"][1]
            found = server.wait_for(
                kind,
                selector,
                1,
                spanSelector=[mark],
                start=span.start_time_unix_nano // MS - self.MARGIN_MS,
                end=span.end_time_unix_nano // MS + self.MARGIN_MS,
            )
            here, elsewhere = ("render", "parse") if span.name == SLOW else ("parse", "render")
            self.assertIn(here, found)
            self.assertNotIn(elsewhere, found)


if __name__ == "__main__":
    case.main()
