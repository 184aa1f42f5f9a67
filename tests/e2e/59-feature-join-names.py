# SPDX-License-Identifier: Apache-2.0
"""Spans and services by all the names that profilers and SDKs have for them."""

import time

from support import case, client, otlp, pprof_sketch, profiles
from support.joined import MS, SECOND, Joined, ids, samples_of, trace

PREFIX = "process.context.label."
PUSH = "/push.v1.PusherService/Push"
FIRST = 1 << 63  # span ids beyond what a signed number holds

# What a profiler writes into labels: of the ids in hexadecimal, and of the span's as a number.
SPELLINGS = {
    "pyroscope": lambda trace_id, span_id, _: {"trace_id": trace_id, "span_id": span_id},
    "upper case": lambda trace_id, span_id, _: {
        "trace_id": trace_id.upper(),
        "span_id": span_id.upper(),
    },
    "span only": lambda _, span_id, __: {"span_id": span_id},
    "ruby": lambda _, span_id, __: {"profile_id": span_id},
    "joined": lambda trace_id, span_id, _: {"traceid": trace_id, "spanid": span_id},
    "dotted": lambda trace_id, span_id, _: {"trace.id": trace_id, "span.id": span_id},
    "polar": lambda trace_id, span_id, _: {"otel.traceid": trace_id, "otel.spanid": span_id},
    "ebpf": lambda trace_id, span_id, _: {
        f"{PREFIX}trace_id": trace_id,
        f"{PREFIX}span_id": span_id,
    },
    "ebpf, ruby": lambda _, span_id, __: {f"{PREFIX}profile_id": span_id},
    "datadog": lambda trace_id, _, number: {"trace id": trace_id, "span id": str(number)},
    "datadog's root": lambda _, __, number: {"local root span id": str(number)},
    "datadog, number": lambda _, __, number: {
        "span id": number - (1 << 64),
        "local root span id": 1,
    },
    "not a trace": lambda _, span_id, __: {"trace_id": "none", "span_id": span_id},
}
OTLP_SPELLINGS = {
    "lists": lambda trace_id, span_id, _: {"trace_id": [trace_id], "span_id": [span_id]},
    "list of a number": lambda _, __, number: {"span id": [number - (1 << 64)]},
    "bytes": lambda trace_id, span_id, _: {
        "trace_id": bytes.fromhex(trace_id),
        "span_id": bytes.fromhex(span_id),
    },
}
NOT_IDS = {
    "no digits": lambda trace_id, span_id: {"trace_id": trace_id, "span_id": span_id[1:] + "g"},
    "too short": lambda trace_id, span_id: {"trace_id": trace_id, "span_id": span_id[1:]},
    "zero": lambda trace_id, span_id: {"trace_id": trace_id, "span_id": "0" * 16},
    "empty": lambda trace_id, span_id: {"trace_id": trace_id, "span_id": ""},
}


class Spellings(Joined):
    def send_spans(self, names):
        now = time.time_ns()
        rows = [
            (*ids(FIRST + number), name, now - 2 * SECOND, now - SECOND)
            for number, name in enumerate(names)
        ]
        self.send("/v1/traces", trace(rows, "shop"))

    def labels(self, spelling, number):
        trace_id, span_id = ids(FIRST + number)
        return spelling(trace_id.hex(), span_id.hex(), FIRST + number)

    def check(self, names):
        """Each sample, whose function is named after its spelling, has the span of that name."""
        requests = self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))
        found = samples_of(requests)
        self.assertEqual(
            sorted((stack[0], a["span_name"], link) for stack, a, link in found),
            sorted((name, name, ids(FIRST + number)[1]) for number, name in enumerate(names)),
        )
        for stack, attributes, _ in found:
            rest = set(attributes) - {"span_name", "duration_bucket"}
            self.assertEqual(rest, {"trace_id"} if stack[0] == "not a trace" else set(), stack)

    def test_in_otlp(self):
        spellings = {**SPELLINGS, **OTLP_SPELLINGS}
        self.start(join="    hold: 0s\n")
        self.send_spans(spellings)
        builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
        for number, (name, spelling) in enumerate(spellings.items()):
            builder.sample([name], 1, **self.labels(spelling, number))
        self.send(profiles.PATH, builder.bytes())
        self.check(spellings)

    def test_in_pprof(self):
        self.start(join="    hold: 0s\n")
        self.send_spans(SPELLINGS)
        sketch = pprof_sketch.Sketch()
        for number, (name, spelling) in enumerate(SPELLINGS.items()):
            sketch.sample([name], [1], **self.labels(spelling, number))
        profile = sketch.bytes(["cpu:nanoseconds"], ("cpu:nanoseconds", 10 * MS), time.time_ns())
        body = pprof_sketch.push({"__name__": "process_cpu", "service_name": "shop"}, profile)
        headers = {"Content-Type": "application/proto"}
        response = client.request(self.ports["pyroscope"], "POST", PUSH, body, headers)
        self.assertEqual(response.status, 200, response.body)
        self.check(SPELLINGS)

    def test_values_that_are_not_ids_stay_labels(self):
        self.start(join="    hold: 0s\n")
        builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
        for number, (name, spelling) in enumerate(NOT_IDS.items()):
            builder.sample([name], 1, **spelling(*(one.hex() for one in ids(FIRST + number))))
        self.send(profiles.PATH, builder.bytes())
        requests = self.back_end.wait(lambda all: len(all) > 0)
        self.assertEqual(
            profiles.samples_of([requests[0].payload]), profiles.samples_of([builder.bytes()])
        )


SHOP = {
    "service.name": "shop",
    "service.namespace": "retail",
    "service.instance.id": "1",
    "deployment.environment.name": "prod",
    "container.id": "c1",
}
WHOLE = {key: value for key, value in SHOP.items() if key != "container.id"}

# What a profile says of itself, and what it says then.
IDENTITIES = [
    ({"container.id": "c1"}, {**WHOLE, "container.id": "c1"}),
    ({"container.id": "c1", "service.name": ""}, {**WHOLE, "container.id": "c1"}),
    ({"container.id": "c1", "service.name": "unknown_service"}, {**WHOLE, "container.id": "c1"}),
    (
        {"service.name": "unknown_service:java", "container.id": "c1", "a": "b"},
        {**WHOLE, "container.id": "c1", "a": "b"},
    ),
    (
        {"container.id": "c1", "service.namespace": "own", "deployment.environment": "dev"},
        {
            "container.id": "c1",
            "service.namespace": "own",
            "deployment.environment": "dev",
            "service.name": "shop",
            "service.instance.id": "1",
        },
    ),
    ({"container.id": "c1", "service.name": "own"}, {"container.id": "c1", "service.name": "own"}),
    ({"k8s.pod.uid": "p1"}, {"k8s.pod.uid": "p1", "service.name": "podded"}),
    ({"container.id": "shared"}, {"container.id": "shared"}),
    ({"container.id": "forked"}, {"container.id": "forked", "service.name": "workers"}),
    ({"container.id": "unnamed"}, {"container.id": "unnamed"}),
    ({"process.pid": 7}, {"process.pid": 7}),
]
OTHERS = [
    {"service.name": "podded", "k8s.pod.uid": "p1", "k8s.container.name": "app"},
    {"service.name": "one", "container.id": "shared"},
    {"service.name": "two", "container.id": "shared"},
    {"service.name": "workers", "container.id": "forked", "service.instance.id": "1"},
    {"service.name": "workers", "container.id": "forked", "service.instance.id": "2"},
    {"service.name": "unknown_service:java", "container.id": "unnamed"},
    {"service.name": "numbered", "host.name": "h", "process.pid": 7},
]


class Identities(Joined):
    def test_profiles_get_missing_attributes_from_spans(self):
        self.start()
        for resource in (SHOP, *OTHERS):
            self.send("/v1/traces", otlp.traces(resource=resource).SerializeToString())
        for had, expected in IDENTITIES:
            with self.subTest(had):
                before = len(self.back_end.accepted(profiles.PATH))
                builder = profiles.Builder(had).profile("cpu:nanoseconds").sample(["work"], 1)
                self.send(profiles.PATH, builder.bytes())
                self.back_end.wait(lambda _: len(self.back_end.accepted(profiles.PATH)) > before)
                received = self.back_end.accepted(profiles.PATH)[-1].payload
                resource = profiles.REQUEST.FromString(received).resource_profiles[0].resource
                found = otlp.attributes_of(resource.attributes)
                self.assertEqual(len(found), len(dict(found)), found)
                self.assertEqual({key: value[1] for key, value in found}, expected)


class Texts(Joined):
    """Whatever a span's name is, every reader accepts the profile that gets it."""

    def joined_name(self, name):
        """What a sample gets of a span with this name (bytes)."""
        self.start(join="    hold: 0s\n")
        now = time.time_ns()
        request = trace([(*ids(1), "A" * len(name), now - SECOND, now)], "shop")
        self.send("/v1/traces", request.replace(b"A" * len(name), name))
        builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
        self.send(profiles.PATH, builder.sample(["work"], 1, link=ids(1)).bytes())
        requests = self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))
        ((_, attributes, _),) = samples_of(requests)
        return attributes["span_name"]

    def test_long_names_are_cut_between_characters(self):
        self.assertEqual(self.joined_name(("x" + "é" * 600).encode()), "x" + "é" * 511)
        self.assertEqual(self.joined_name(("🔥" * 300).encode()), "🔥" * 256)

    def test_bytes_that_are_not_utf8_become_question_marks(self):
        self.assertEqual(self.joined_name(b"caf\xe9 \xf0\x9f\x94\xa5 \xc3"), "caf? 🔥 ?")


class LaterVersions(Joined):
    """Fields that OTLP does not have yet stay where they are, whatever the join edits beside them."""

    FIELD = b"\xfa\x3e\x05later"  # number 999

    def check(self, join, link, labels):
        self.start(join=f"    hold: 0s\n{join}")
        now = time.time_ns()
        self.send("/v1/traces", trace([(*ids(1), "checkout", now - SECOND, now)], "shop"))
        builder = profiles.Builder({"service.name": "shop"})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS))
        builder.sample(["work"], 1, link=link, **labels).sample(["idle"], 1)
        request = builder.request
        dictionary, resource = request.dictionary, request.resource_profiles[0]
        profile = resource.scope_profiles[0].profiles[0]
        messages = [request, dictionary, resource, resource.resource, resource.scope_profiles[0]]
        messages += [profile, profile.samples[0], dictionary.function_table[1]]
        messages += [dictionary.location_table[1], dictionary.stack_table[1]]
        for message in messages:
            message.MergeFromString(self.FIELD)
        self.send(profiles.PATH, builder.bytes())
        requests = self.back_end.wait(lambda all: any(r.path == profiles.PATH for r in all))
        received = next(r.payload for r in requests if r.path == profiles.PATH)
        self.assertEqual(received.count(self.FIELD), len(messages))
        ((_, attributes, _),) = samples_of(requests)
        self.assertEqual(attributes["span_name"], "checkout")

    def test_when_a_sample_gets_attributes(self):
        self.check("", ids(1), {})

    def test_when_labels_become_a_link(self):
        self.check("", None, self.labels(1))

    def test_when_samples_are_left_out(self):
        self.check("    keep: [slow: 1ms]\n    keep_unlinked: false\n", ids(1), {})

    def labels(self, number):
        return dict(zip(("trace_id", "span_id"), (one.hex() for one in ids(number))))


if __name__ == "__main__":
    case.main()
