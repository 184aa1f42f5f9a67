# SPDX-License-Identifier: Apache-2.0
"""The pprof receiver in front of a Go program that serves net/http/pprof."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import urllib.request

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from support import case, peers, process, profiles
from support.metrics import Metrics, assert_conserved
from support.ports import free_port

SCRAPED_WITHIN_S = 60
KINDS = {
    "process_cpu": {"samples:count", "cpu:nanoseconds"},
    "memory": {"alloc_objects:count", "alloc_space:bytes", "inuse_objects:count", "inuse_space:bytes"},
    "goroutine": {"goroutine:count"},
    "mutex": {"contentions:count", "delay:nanoseconds"},
    "block": {"contentions:count", "delay:nanoseconds"},
}


class Program:
    """The Go program; it burns a CPU if told to."""

    def __init__(self, test, *arguments):
        peers.need("pprof-target")
        path = os.path.join(os.environ["SPANFLAME_PEERS"], "pprof-target", "pprof-target")
        self.process = subprocess.Popen([path, *arguments], stdout=subprocess.PIPE, text=True)
        test.addCleanup(lambda: (self.process.kill(), self.process.wait(30), self.process.stdout.close()))
        self.port = int(self.process.stdout.readline())

    def work(self, **counts):
        query = "&".join(f"{name}={count}" for name, count in counts.items())
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/work?{query}", timeout=60) as response:
            response.read()


def series_of(payload):
    """(labels, type, attributes) of each profile."""
    request = ExportProfilesServiceRequest.FromString(payload)
    strings = request.dictionary.string_table
    for resource in request.resource_profiles:
        labels = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                table = request.dictionary.attribute_table
                own = {
                    strings[table[index].key_strindex]: table[index].value.string_value
                    for index in profile.attribute_indices
                }
                kind = profile.sample_type
                yield labels, f"{strings[kind.type_strindex]}:{strings[kind.unit_strindex]}", own


class Pprof(case.Case):
    def start(self, keys):
        back_end, port = self.sink(), free_port()
        self.daemon(
            "receivers:\n  pprof:\n    scrape_configs:\n      - job_name: shop\n        scrape_interval: 2s\n"
            f"{keys}"
            f"exporters:\n  otlp_http:\n    endpoint: {back_end.url}\n    compression: none\n"
            "service:\n  lanes: 2\n  telemetry:\n    metrics:\n      readers:\n        - pull:\n            exporter:\n"
            f"              prometheus: {{host: 127.0.0.1, port: {port}}}\n"
            "  pipelines:\n    profiles: {receivers: [pprof], exporters: [otlp_http]}\n"
        )
        return back_end, port

    def total(self, back_end, kind, function, **attributes):
        """Of all samples of that type in that function."""
        return sum(
            sum(values) * count
            for (found, stack, own, _, values, _), count in profiles.samples_of(
                request.payload for request in back_end.requests
            ).items()
            if found == kind and function in stack and attributes.items() <= dict(own).items()
        )

    def series(self, back_end):
        return [series for request in back_end.requests for series in series_of(request.payload)]

    def test_every_profile_arrives(self):
        program = Program(self, "--burn")
        program.work(objects=10, contentions=3)
        back_end, port = self.start(
            f"        static_configs: [{{targets: ['127.0.0.1:{program.port}'], labels: {{zone: eu}}}}]\n"
        )

        def found():
            kinds = {}
            for _, kind, own in self.series(back_end):
                kinds.setdefault(own["pyroscope.label.__name__"], set()).add(kind)
            return kinds

        def has_all():
            program.work(objects=10, contentions=3)
            return all(wanted <= found().get(name, set()) for name, wanted in KINDS.items())

        process.poll_until(has_all, SCRAPED_WITHIN_S, f"these profiles are at the back-end: {KINDS}")
        self.assertGreater(self.total(back_end, "cpu:nanoseconds", "main.burnCPU"), 0)
        self.assertGreater(self.total(back_end, "contentions:count", "main.waitForMutex"), 0)
        for labels, _, own in self.series(back_end):
            self.assertEqual(
                labels,
                {"service.name": "shop", "job": "shop", "instance": f"127.0.0.1:{program.port}", "zone": "eu"},
            )
            differs = own["pyroscope.label.__name__"] in ("memory", "mutex", "block")
            self.assertEqual(own.get("pyroscope.label.__delta__"), "false" if differs else None)
        self.assertEqual(Metrics(port).sum("spanflame_pprof_targets"), 5)
        self.assertEqual(Metrics(port).sum("spanflame_pprof_target_failures"), 0)
        assert_conserved(self, port, "profiles")

    def test_allocations_are_differences(self):
        program = Program(self)
        program.work(objects=5000)
        only = "".join(
            f"          profile.{name}: {{enabled: false}}\n" for name in ("process_cpu", "goroutine", "mutex", "block")
        )
        back_end, port = self.start(
            f"        static_configs: [{{targets: ['127.0.0.1:{program.port}']}}]\n"
            f"        profiling_config:\n{only}"
        )

        def allocated(kind):
            return self.total(back_end, kind, "main.allocateObjects", bytes=("int_value", 1024))

        # What was allocated before the first scrape is in use, but no difference.
        process.poll_until(lambda: allocated("inuse_objects:count"), SCRAPED_WITHIN_S, "memory in use arrives")
        self.assertEqual(allocated("alloc_objects:count"), 0)
        program.work(objects=1000)
        process.poll_until(
            lambda: allocated("alloc_objects:count") >= 1000, SCRAPED_WITHIN_S, "1000 allocations arrive"
        )
        self.assertEqual(allocated("alloc_space:bytes"), 1000 * 1024)
        program.work(objects=500)
        process.poll_until(
            lambda: allocated("alloc_objects:count") >= 1500, SCRAPED_WITHIN_S, "500 more allocations arrive"
        )
        before = Metrics(port).sum("spanflame_pprof_target_scrapes")
        process.poll_until(
            lambda: Metrics(port).sum("spanflame_pprof_target_scrapes") >= before + 2,
            SCRAPED_WITHIN_S,
            "two more scrapes",
        )
        self.assertEqual(allocated("alloc_objects:count"), 1500)
        self.assertEqual(allocated("alloc_space:bytes"), 1500 * 1024)

    def test_targets_come_and_go(self):
        one, two = Program(self), Program(self)
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-pprof-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        path = directory / "targets.json"

        def write(*programs):
            (directory / "new").write_text(json.dumps([{"targets": [f"127.0.0.1:{p.port}" for p in programs]}]))
            os.replace(directory / "new", path)

        write(one)
        back_end, port = self.start(
            f"        file_sd_configs: [{{files: ['{path}']}}]\n"
            "        relabel_configs:\n"
            "          - {source_labels: [__name__], regex: 'goroutine|memory', action: keep}\n"
            "          - {source_labels: [__name__], target_label: service_name, replacement: 'shop/$$1'}\n"
        )

        def instances():
            return {labels["instance"] for labels, _, _ in self.series(back_end)}

        process.poll_until(
            lambda: f"127.0.0.1:{one.port}" in instances(), SCRAPED_WITHIN_S, "the first program's profiles arrive"
        )
        self.assertEqual(Metrics(port).sum("spanflame_pprof_targets"), 2)
        write(two)
        process.poll_until(
            lambda: f"127.0.0.1:{two.port}" in instances(), SCRAPED_WITHIN_S, "the second program's profiles arrive"
        )
        self.assertLessEqual(
            {labels["service.name"] for labels, _, _ in self.series(back_end)}, {"shop/goroutine", "shop/memory"}
        )
        process.poll_until(
            lambda: Metrics(port).sum("spanflame_pprof_targets") == 2, SCRAPED_WITHIN_S, "the first program is gone"
        )

    def test_series_come_through_pyroscope(self):
        """The exporter pyroscope pushes them to the receiver pyroscope."""
        program, port, back_end = Program(self), free_port(), self.sink()
        program.work(objects=100)
        self.daemon(
            "receivers:\n  pprof:\n    scrape_configs:\n      - job_name: shop\n        scrape_interval: 2s\n"
            f"        static_configs: [{{targets: ['127.0.0.1:{program.port}'], labels: {{zone: eu}}}}]\n"
            f"  pyroscope:\n    endpoint: 127.0.0.1:{port}\n"
            f"exporters:\n  pyroscope:\n    endpoint: http://127.0.0.1:{port}\n"
            f"  otlp_http:\n    endpoint: {back_end.url}\n    compression: none\n"
            f"service:\n{case.QUIET}  pipelines:\n"
            "    profiles: {receivers: [pprof], exporters: [pyroscope]}\n"
            "    profiles/2: {receivers: [pyroscope], exporters: [otlp_http]}\n"
        )

        def found():
            return {own["pyroscope.label.__name__"]: (labels, own) for labels, _, own in self.series(back_end)}

        process.poll_until(
            lambda: {"memory", "goroutine"} <= found().keys(), SCRAPED_WITHIN_S, "two profiles come through"
        )
        labels, own = found()["memory"]
        self.assertEqual(labels["service.name"], "shop")
        self.assertEqual(labels["zone"], "eu")
        self.assertEqual(own["pyroscope.label.__delta__"], "false")
        self.assertNotIn("pyroscope.label.__delta__", found()["goroutine"][1])

    def test_failures_are_counted(self):
        program = Program(self)
        back_end, port = self.start(
            f"        static_configs: [{{targets: ['127.0.0.1:{program.port}']}}]\n"
            "        profiling_config:\n          path_prefix: /work\n"
        )
        process.poll_until(
            lambda: Metrics(port).sum("spanflame_pprof_target_failures") >= 4, SCRAPED_WITHIN_S, "404 is a failure"
        )
        self.assertEqual(back_end.requests, [])

    def test_mistakes_are_named(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-pprof-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        for keys, words in (
            ("scrape_interval: 1s", "at least 2 seconds"),
            ("delta_profiling_duration: 15s", "delta_profiling_duration"),
            ("scrape_timeout: 20s", "scrape_timeout"),
            ("profiling_config: {profile.custom: [{name: a}]}", "path"),
            ("profiling_config: {profile.heap: {}}", "profile.heap"),
            ("kubernetes_sd_configs: [{role: pod}]", "kubernetes_sd_configs"),
            ("relabel_configs: [{action: nonsense}]", "relabel_configs"),
        ):
            with self.subTest(keys):
                path = directory / "config.yaml"
                path.write_text(
                    f"receivers:\n  pprof:\n    scrape_configs:\n      - job_name: a\n        {keys}\n"
                    "exporters: {nop: }\nservice: {pipelines: {profiles: {receivers: [pprof], exporters: [nop]}}}\n"
                )
                checked = process.run("validate", "--config", str(path))
                self.assertNotEqual(checked.returncode, 0)
                self.assertIn(words, checked.stdout + checked.stderr)


if __name__ == "__main__":
    case.main()
