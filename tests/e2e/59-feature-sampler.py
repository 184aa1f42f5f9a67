# SPDX-License-Identifier: Apache-2.0
"""tail_sampling by what profiles say, with a real SDK: the traces that it has profiled go on, with their samples; others do
not, nor do the samples of those that are dropped."""

from support import case, metrics, profiles
from support.joined import MS, SECOND, Joined, ids, samples_of, spans_of, trace

WAIT_S = 15  # longer than an SDK takes to send profiles after its spans
SAMPLER = f"""\
    keep: [sampled]
    hold: {2 * WAIT_S}s
  tail_sampling:
    decision_wait: {WAIT_S}s
    policies:
    - {{name: hot, type: profile, profile: {{min_samples: 1, min_cpu: 20ms}}}}
"""
START = 1_700_000_000 * SECOND


class Sampler(Joined):
    def configure(self, exporters=None, **options):
        text = super().configure(exporters, join=SAMPLER, **options)
        return text.replace("[trace_profile_join]\n", "[trace_profile_join, tail_sampling]\n", 1)

    def send_trace(self, number):
        self.send("/v1/traces", trace([(*ids(number), "by hand", START, START + SECOND)], "shop"))

    def send_profile(self, number, cpu_ns):
        builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
        self.send(profiles.PATH, builder.sample(["work"], cpu_ns, link=ids(number)).bytes())

    def dropped(self, signal):
        found = metrics.Metrics(self.ports["metrics"])
        return found.sum("spanflame_items_dropped", signal=signal, reason="unwanted")

    def test_what_costs_goes_on_with_its_samples(self):
        self.start()
        for number, cpu_ns in ((1, 25 * MS), (2, 5 * MS), (3, 0)):
            self.send_trace(number)
            if cpu_ns > 0:
                self.send_profile(number, cpu_ns)
        requests = self.back_end.wait(
            lambda all: spans_of(all) and samples_of(all), within=4 * WAIT_S
        )
        self.assertEqual(set(spans_of(requests)), {ids(1)[1]})
        self.assertEqual({link for _, _, link in samples_of(requests)}, {ids(1)[1]})
        self.assertEqual(self.dropped("traces"), 2)
        self.assertEqual(self.dropped("profiles"), 1)
        metrics.assert_conserved(self, self.ports["metrics"], "profiles")

    def test_spans_that_an_sdk_has_profiled_go_on(self):
        self.start()
        self.send_trace(9)  # not profiled
        had = self.run_sdk("python")
        hot = {bytes.fromhex(span["span_id"]) for span in had.values()}
        requests = self.back_end.wait(
            lambda all: hot <= set(spans_of(all)) and hot <= {link for _, _, link in samples_of(all)},
            within=6 * WAIT_S,
        )
        self.assertNotIn(ids(9)[1], spans_of(requests))


if __name__ == "__main__":
    case.main()
