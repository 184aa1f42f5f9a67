# SPDX-License-Identifier: Apache-2.0
"""Batch jobs, all of whose spans belong to one trace: profiles whose profiler knows of no span get it.
On a sink, and in a real Pyroscope server where PYROSCOPE_URL names one."""

import uuid

from support import case, otlp, profiles, pyroscope
from support.joined import CPU, Joined, samples_of, spans_of

AT_EXIT = 600  # seconds, more than any job takes
EVERY_ORDER = {
    "both as they come": {},
    "spans at exit, before the last profile": {"spans_every": AT_EXIT},
    "spans at exit, behind the last profile": {"spans_every": AT_EXIT, "last": "spans"},
    "profiles at exit, behind the last spans": {"profiles_every": AT_EXIT},
    "profiles at exit, before the last spans": {"profiles_every": AT_EXIT, "last": "spans"},
    "spans at exit, then profiles": {"spans_every": AT_EXIT, "profiles_every": AT_EXIT},
    "profiles at exit, then spans": {
        "spans_every": AT_EXIT,
        "profiles_every": AT_EXIT,
        "last": "spans",
    },
}


def windows_of(requests):
    """(attributes of the resource, from when, until when) of every Profile."""
    for request in requests:
        if request.path != profiles.PATH:
            continue
        for resource in profiles.REQUEST.FromString(request.payload).resource_profiles:
            found = dict(otlp.attributes_of(resource.resource.attributes))
            attributes = {key: value[1] for key, value in found.items()}
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    begin = profile.time_unix_nano
                    yield attributes, begin, begin + profile.duration_nano


class BatchJob(Joined):
    """50 000 iterations under one root span."""

    def check(self, work, **order):
        daemon = self.start()
        had = self.run_sdk("python", "nightly", work, **order)["nightly"]
        self.assertEqual(daemon.stop(), 0)
        requests = self.back_end.accepted()
        root = spans_of(requests)[bytes.fromhex(had["span_id"])]
        wanted = {"trace_id": had["trace_id"], "root_span_id": had["span_id"]}
        within = 0
        for attributes, begin, end in windows_of(requests):
            found = {key: attributes[key] for key in wanted if key in attributes}
            overlap = min(end, root.end_time_unix_nano) - max(begin, root.start_time_unix_nano)
            if 2 * overlap > end - begin:
                self.assertEqual(found, wanted)
                within += 1
            else:
                self.assertIn(found, ({}, wanted))
        self.assertGreater(within, 0)

    def test_all_profiles_get_its_trace_in_any_order(self):
        for name, order in EVERY_ORDER.items():
            with self.subTest(name):
                self.check("batch", **order)

    def test_all_profiles_of_a_job_with_one_span_get_its_trace(self):
        for name in ("both as they come", "profiles at exit, then spans"):
            with self.subTest(name):
                self.check("batch-of-one-span", **EVERY_ORDER[name])

    def test_requests_of_a_server_are_not_taken_for_one(self):
        self.start()
        self.run_sdk("python")
        requests = self.back_end.wait(lambda all: len(samples_of(all)) > 0)
        self.assertEqual([f for f, _, _ in windows_of(requests) if "root_span_id" in f], [])

    def test_the_job_in_a_real_server(self):
        server = pyroscope.Pyroscope(pyroscope.need())
        service = f"nightly-{uuid.uuid4().hex[:12]}"
        self.start({"pyroscope": f"    endpoint: {server.url}\n"})
        root = self.run_sdk("python", service, "batch")["nightly"]
        selector = f'{{service_name="{service}", trace_id="{root["trace_id"]}"}}'
        self.assertIn("step", server.wait_for(CPU, selector, 1))


if __name__ == "__main__":
    case.main()
