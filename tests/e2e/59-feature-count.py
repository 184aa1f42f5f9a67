# SPDX-License-Identifier: Apache-2.0
"""Samples that count for local roots and ancestors besides their span: profiles of types of their own,
which a span's selector finds. On a sink, and in a real Pyroscope server where PYROSCOPE_URL names one."""

import time
import uuid

from support import case, process, profiles, pyroscope
from support.joined import MS, SECOND, Joined, ids, trace

COUNT_FOR = "    count_for: [span, root, ancestors]\n"
OF_CPU = "process_cpu:{}:nanoseconds:cpu:nanoseconds"
ROOT, MIDDLE, LEAF = ((ids(1)[0], ids(number)[1]) for number in (1, 2, 3))
NAMES = {ROOT: "checkout", MIDDLE: "invoice", LEAF: "render"}
OWN = {ROOT: {"serve": MS}, MIDDLE: {"load": 20 * MS}, LEAF: {"draw": 300 * MS}}
BELOW_ROOT = {**OWN[MIDDLE], **OWN[LEAF]}
IDLE = {"idle": 4000 * MS}
NAMES_MAX, CAP = 10_000, 100
# What the flame graph of each type shows: of all samples, and of one span.
WANTED = {
    "cpu": {None: {**OWN[ROOT], **BELOW_ROOT, **IDLE}, **OWN},
    "cpu_root": {
        None: {**OWN[ROOT], **BELOW_ROOT},
        ROOT: {**OWN[ROOT], **BELOW_ROOT},
        MIDDLE: {},
        LEAF: {},
    },
    "cpu_ancestors": {
        None: {**OWN[MIDDLE], "draw": 600 * MS},
        ROOT: BELOW_ROOT,
        MIDDLE: OWN[LEAF],
        LEAF: {},
    },
}


class Counted(Joined):
    """A root, its child and its grandchild, each with a function of its own."""

    def send_spans(self, service):
        now = time.time_ns()
        rows = [
            (*ROOT, NAMES[ROOT], now - 4 * SECOND, now - SECOND),
            (*MIDDLE, NAMES[MIDDLE], now - 4 * SECOND, now - 2 * SECOND, ROOT[1]),
            (*LEAF, NAMES[LEAF], now - 3 * SECOND, now - 2 * SECOND, MIDDLE[1]),
        ]
        self.send("/v1/traces", trace(rows, service))

    def send_many_names(self, service):
        """Requests of a root and a child each, and a sample taken in every child."""
        now = time.time_ns()
        builder = profiles.Builder({"service.name": service})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), now - 3 * SECOND)
        rows = []
        for number in range(1, NAMES_MAX + 1):
            trace_id, root = ids(number)
            child = (NAMES_MAX + number).to_bytes(8, "big")
            rows.append((trace_id, root, f"GET /item/{number}", now - 2 * SECOND, now))
            rows.append((trace_id, child, f"query {number}", now - SECOND, now, root))
            builder.sample(["work", "main"], MS, link=(trace_id, child))
        self.send("/v1/traces", trace(rows, service))
        self.send(profiles.PATH, builder.bytes())

    def send_profile(self, service):
        builder = profiles.Builder({"service.name": service})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), time.time_ns() - 5 * SECOND)
        for span, took in OWN.items():
            for function, value in took.items():
                builder.sample([function, "main"], value, link=span)
        builder.sample(["idle", "main"], IDLE["idle"])
        self.send(profiles.PATH, builder.bytes())


class Delivered(Counted):
    """As an OTLP back-end gets them."""

    def samples(self, requests):
        """(type, leaf, span id or None, value, attributes) of each, equal ones added up."""
        payloads = [r.payload for r in requests if r.path == profiles.PATH]
        return [
            (kind.split(":")[0], "".join(stack[:1]), link[1] or None, count * values[0], dict(attributes))
            for (kind, stack, attributes, link, values, _), count in profiles.samples_of(
                payloads
            ).items()
        ]

    def took(self, samples, kind, span=None):
        """What each function took by itself, of one type and perhaps one span."""
        found = {}
        for one, function, link, value, _ in samples:
            if one == kind and span in (None, link):
                found[function] = found.get(function, 0) + value
        return found

    def test_spans_have_what_those_below_them_took(self):
        self.start(join=COUNT_FOR)
        self.send_spans("shop")
        self.send_profile("shop")
        requests = self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))
        samples = self.samples(requests)
        for kind, rows in WANTED.items():
            for span, wanted in rows.items():
                with self.subTest(f"{kind} of {NAMES.get(span, 'all')}"):
                    self.assertEqual(self.took(samples, kind, span and span[1]), wanted)
        for kind, _, link, _, attributes in samples:
            name = NAMES.get((ROOT[0], link))
            self.assertEqual(attributes.get("span_name"), name and ("string_value", name), kind)
        self.assertEqual(self.counter("copied_samples"), 6)
        self.assertEqual(self.counter("uncopied_samples"), 0)

    def test_ten_thousand_names_stay_under_the_cap(self):
        self.start(join=f"{COUNT_FOR}    cap: {CAP}\n")
        self.send_many_names("shop")
        requests = self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))
        samples = self.samples(requests)
        names = {attributes["span_name"][1] for *_, attributes in samples}
        self.assertEqual(len(names), CAP + 1)
        self.assertIn("other", names)
        for kind in WANTED:
            self.assertEqual(self.took(samples, kind), {"work": NAMES_MAX * MS})

    def check_sdk(self, sdk):
        daemon = self.start(join=COUNT_FOR)
        had = self.run_sdk(sdk, work="nested")
        self.assertEqual(daemon.stop(), 0)
        samples = self.samples(self.back_end.accepted())
        root, child = (bytes.fromhex(had[name]["span_id"]) for name in ("checkout", "invoice"))
        own = {span: sum(self.took(samples, "cpu", span).values()) for span in (root, child)}
        self.assertGreater(own[root], 0)
        self.assertGreater(own[child], 0)
        for kind, of_root in (("cpu_root", sum(own.values())), ("cpu_ancestors", own[child])):
            self.assertEqual(sum(self.took(samples, kind).values()), of_root)
            self.assertEqual(sum(self.took(samples, kind, root).values()), of_root)

    def test_python(self):
        self.check_sdk("python")

    def test_go(self):
        self.check_sdk("go")


class Stored(Counted):
    """In a real server, asked as Grafana asks."""

    def setUp(self):
        self.server_side = pyroscope.Pyroscope(pyroscope.need())
        self.service = f"shop-{uuid.uuid4().hex[:12]}"
        self.selector = f'{{service_name="{self.service}"}}'

    def start_in(self, mode, more=""):
        url = self.server_side.url
        exporter = {"pyroscope": f"    endpoint: {url}\n    mode: {mode}\n"}
        return self.start(exporter, join=COUNT_FOR + more)

    def check(self, mode, types):
        self.start_in(mode)
        self.send_spans(self.service)
        self.send_profile(self.service)
        ask = self.server_side
        for kind, rows in WANTED.items():
            one = types.format(kind)
            total = sum(rows[None].values())
            self.assertEqual(ask.wait_for(one, self.selector, total), rows[None])
            for span, wanted in rows.items():
                if span is None:
                    continue
                with self.subTest(f"{one} of {NAMES[span]}"):
                    selected = [span[1].hex()]
                    found = ask.functions(one, self.selector, spanSelector=selected)
                    self.assertEqual(found, wanted)
                    self.assertEqual(ask.span_profile(one, self.selector, selected), wanted)
        self.assertEqual(ask.types(self.selector), sorted(map(types.format, WANTED)))
        self.assertLessEqual(set(map(types.format, WANTED)), ask.all_types())
        by_name = ask.totals(types.format("cpu_root"), self.selector, "span_name")
        self.assertEqual(by_name, {NAMES[ROOT]: sum(WANTED["cpu_root"][None].values())})

    def test_push(self):
        self.check("push", OF_CPU)

    def test_ingest(self):
        self.check("ingest", OF_CPU)

    def test_otlp(self):
        """The server names OTLP's types by their period."""
        self.check("otlp", "cpu:{}:nanoseconds:cpu:nanoseconds")

    def test_ten_thousand_names_stay_under_the_cap(self):
        self.start_in("push", f"    cap: {CAP}\n")
        self.send_many_names(self.service)
        for kind in WANTED:
            found = self.server_side.wait_for(
                OF_CPU.format(kind), self.selector, NAMES_MAX * MS
            )
            self.assertEqual(found, {"work": NAMES_MAX * MS})
        names = {name for name, in self.server_side.series(self.selector, ["span_name"])}
        self.assertEqual(len(names), CAP + 1)

    def check_sdk(self, sdk):
        daemon = self.start_in("push")
        had = self.run_sdk(sdk, self.service, "nested")
        self.assertEqual(daemon.stop(), 0)

        def functions(kind, name):
            span = [had[name]["span_id"]]
            one = OF_CPU.format(kind)
            return " ".join(self.server_side.functions(one, self.selector, spanSelector=span))

        def leads(kind, name, *wanted):
            process.poll_until(
                lambda: all(function in functions(kind, name) for function in wanted),
                pyroscope.STORED_WITHIN_S,
                f"{wanted} in {kind} of {name}",
            )

        leads("cpu", "checkout", "parse")
        leads("cpu", "invoice", "render")
        leads("cpu_root", "checkout", "parse", "render")
        leads("cpu_ancestors", "checkout", "render")
        self.assertNotIn("render", functions("cpu", "checkout"))
        self.assertNotIn("parse", functions("cpu", "invoice"))
        self.assertNotIn("parse", functions("cpu_ancestors", "checkout"))
        self.assertEqual(functions("cpu_root", "invoice"), "")

    def test_python(self):
        self.check_sdk("python")

    def test_go(self):
        self.check_sdk("go")


if __name__ == "__main__":
    case.main()
