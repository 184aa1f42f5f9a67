# SPDX-License-Identifier: Apache-2.0
"""`spanflame profile` on profiles of a Go program, with Go's own reader as the judge."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from support import case, peers
from support.process import run

WITHIN_S = 60
SVG = "{http://www.w3.org/2000/svg}"


def go(*arguments):
    """The Go peer: describes what its reader finds in a file, or emits files."""
    program = os.path.join(os.environ["SPANFLAME_PEERS"], "pprof", "pprof")
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=WITHIN_S, check=True
    )
    return done.stdout


class ProfileTools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        peers.need("pprof")
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        go("emit", directory.name)

    def path(self, name):
        return str(self.directory / name)

    def profile(self, *arguments):
        done = run("profile", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def show(self, name, *flags):
        return json.loads(self.profile("show", self.path(name), "--json", *flags))

    def total(self, name, wanted):
        return next(t["total"] for t in self.show(name)["types"] if t["type"] == wanted)

    def test_show_names_the_busy_function_and_its_label(self):
        shown = self.show("cpu.pb.gz", "--type", "cpu:nanoseconds")
        (cpu,) = shown["types"]
        busy = {f["name"]: f for f in cpu["functions"]}["main.busy"]
        self.assertGreater(busy["cumulative"], cpu["total"] / 2)
        self.assertEqual(sum(f["flat"] for f in cpu["functions"]), cpu["total"])
        labels = {label["key"]: label["example"] for label in shown["labels"]}
        self.assertEqual(labels["http.route"], "/checkout")
        table = self.profile("show", self.path("cpu.pb.gz"))
        self.assertIn("cpu:nanoseconds", table)
        self.assertIn("main.busy", table)

    def test_a_flame_graph_has_every_function_and_needs_nothing_else(self):
        svg = self.path("cpu.svg")
        self.profile("show", self.path("cpu.pb.gz"), "--flamegraph", svg)
        root = xml.etree.ElementTree.parse(svg).getroot()
        names = {frame.get("data-n") for frame in root.iter(f"{SVG}g")}
        self.assertIn("main.busy", names)
        for element in root.iter():
            for key in element.attrib:
                self.assertNotIn("href", key)

    def test_there_and_back_go_reads_the_same_samples(self):
        for name in ("cpu", "heap", "goroutine"):
            with self.subTest(name):
                self.profile("convert", self.path(f"{name}.pb.gz"), self.path(f"{name}.otlp"))
                self.profile("convert", self.path(f"{name}.otlp"), self.path(f"{name}2.pb.gz"))
                for one in self.show(f"{name}.otlp")["types"]:
                    for other in (f"{name}.pb.gz", f"{name}2.pb.gz"):
                        self.assertEqual(self.total(other, one["type"]), one["total"])
        self.assertEqual(go("describe", self.path("cpu2.pb.gz")),
                         go("describe", self.path("cpu.pb.gz")))

    def test_through_json_go_reads_the_same_samples(self):
        cpu = self.path("cpu.pb.gz")
        for name in ("cpu.json", "cpu.json.gz"):
            self.profile("convert", cpu, self.path(name))
            self.profile("convert", self.path(name), self.path("cpu3.pb.gz"))
            self.assertEqual(go("describe", self.path("cpu3.pb.gz")), go("describe", cpu))
            self.assertEqual(self.show(name)["format"], "OTLP/JSON")
            self.assertEqual(self.total(name, "cpu"), self.total("cpu.pb.gz", "cpu"))
        document = json.loads(pathlib.Path(self.path("cpu.json")).read_text(encoding="utf-8"))
        self.assertEqual(document["dictionary"]["stringTable"][0], "")
        diff = json.loads(self.profile("diff", cpu, self.path("cpu.json"), "--json"))
        self.assertEqual([t["functions"] for t in diff["types"]], [[]] * len(diff["types"]))

    def test_a_merge_of_one_is_the_same_and_of_two_is_twice_as_much(self):
        cpu = self.path("cpu.pb.gz")
        self.profile("merge", cpu, "-o", self.path("one.pb.gz"))
        self.assertEqual(go("describe", self.path("one.pb.gz")), go("describe", cpu))
        for output in ("two.pb.gz", "two.otlp"):
            self.profile("merge", cpu, cpu, "-o", self.path(output))
            self.assertEqual(self.total(output, "cpu"), 2 * self.total("cpu.pb.gz", "cpu"))

    def test_diff_tells_each_function_before_and_after(self):
        cpu = self.path("cpu.pb.gz")
        double = self.path("double.otlp")
        self.profile("merge", cpu, cpu, "-o", double)
        same = json.loads(self.profile("diff", cpu, cpu, "--json"))
        self.assertEqual([t["functions"] for t in same["types"]], [[]] * len(same["types"]))
        for one in json.loads(self.profile("diff", cpu, double, "--json"))["types"]:
            self.assertEqual(one["total_after"], 2 * one["total_before"])
            for function in one["functions"]:
                self.assertEqual(function["flat_after"], 2 * function["flat_before"])

    def test_mistakes_are_reported_with_exit_code_1(self):
        cpu = self.path("cpu.pb.gz")
        for arguments, text in (
            (("show", self.path("nowhere")), "nowhere: cannot read: No such file"),
            (("show", __file__), "expected pprof"),
            (("show", cpu, "--type", "wall"), 'found no type "wall", expected one of: samples, cpu'),
            (("convert", cpu, self.path("x.txt")), "add --to pprof, --to otlp or --to otlp-json"),
            (("frobnicate",), "expected show, convert, merge, diff or help"),
        ):
            with self.subTest(arguments):
                done = run("profile", *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(text, done.stderr)
                self.assertTrue(done.stderr.startswith("Error: "))


if __name__ == "__main__":
    case.main()
