#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark: what one span costs in spanflame, beside the least that any relay could cost.

Protocol. The system under test has one core, generator and sink have the other. A round is fixed
work: so many requests, sent as fast as the responses come, until the sink has every span. Its
figure is CPU time (user and system) per span, of profiles per request; wall time is noise on a shared
machine. Rounds of the relay (A), of spanflame (B) and, with OTELCOL=path, of the Go collector (C)
alternate: ABC CBA ABC …, so that a drift of the machine favours none of them. A cost is that of
the best round, as neighbours only ever add to it; a ratio is the median of the rounds' ratios, with a
bootstrap 95 % interval. Every round passes a gate: all requests got OK, and the sink has exactly
the spans that were sent, by their ids, and where nothing may be changed, exactly as many bytes. A round that fails it voids its row. A generator above 70 % of its core
voids the throughput, not the cost.

After the table: time from exec to ready and RSS when idle; RSS and latency at 100 000 spans/s; a
sink slowed to half of what is offered and a sink silent for a while (RSS within budget + 15 %,
nothing acknowledged is lost); two lanes against one; checking and merging of profiles, with
PPROFILE=path beside the Go collector's library (tests/peers/build pprofile DIRECTORY); the join's
index.

usage: run.py --tools DIR [--spanflame FILE] [--output DIR] [--rounds N] [--share PERCENT]
              [--only NAME,…] [--quick] [--record FILE]
The results are printed and left in DIR as results.md, results.json and the configurations used.
--record also writes them to FILE, with the commit: from tests/bench/results.json report.py writes
the figures of README.md and docs/performance.md."""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

import bodies
import figures
import report
from rig import (SUT_CORE, BenchError, Contender, Process, Sink, bootstrap, free_port, one_round,
                 run_load)
from scenarios import SCENARIOS, configuration

COLLECTOR_WORK = 12  # the collector gets a twelfth of the work: its rounds last as long


def read_arguments():
    parser = argparse.ArgumentParser(description="The benchmark of spanflame.")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where bench_load is")
    parser.add_argument("--spanflame", type=pathlib.Path,
                        help="the daemon; without it only the relay runs")
    parser.add_argument("--otelcol", type=pathlib.Path, default=os.environ.get("OTELCOL") or None,
                        help="the Go collector; also from the environment, OTELCOL")
    parser.add_argument("--pprofile", type=pathlib.Path, default=os.environ.get("PPROFILE") or None,
                        help="Go's merging of profiles; also from the environment, PPROFILE")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--span-bytes", type=int, default=672)
    parser.add_argument("--only", default="", help="scenarios and figures, by name, with commas")
    parser.add_argument("--share", type=int, default=100, help="percent of the work of each round")
    parser.add_argument("--record", type=pathlib.Path, help="the results go there, too")
    parser.add_argument("--quick", action="store_true", help="two short rounds: does the rig work?")
    parser.add_argument("--configs", action="store_true", help="only write the configurations")
    return parser.parse_args()


class Bench:
    """The arguments, made ready."""

    def __init__(self, arguments):
        self.tools = arguments.tools.resolve()
        self.spanflame = arguments.spanflame.resolve() if arguments.spanflame else None
        self.otelcol = pathlib.Path(arguments.otelcol).resolve() if arguments.otelcol else None
        self.pprofile = pathlib.Path(arguments.pprofile).resolve() if arguments.pprofile else None
        self.output = arguments.output.resolve()
        self.rounds = 2 if arguments.quick else arguments.rounds
        self.share = 0.01 if arguments.quick else arguments.share / 100
        self.seconds = 2 if arguments.quick else max(round(20 * min(self.share, 1)), 5)
        self.only = set(filter(None, arguments.only.split(",")))
        self.scenarios = [dataclasses.replace(scenario, span_bytes=arguments.span_bytes)
                          for scenario in SCENARIOS]
        self.made = set()
        (self.output / "configs").mkdir(parents=True, exist_ok=True)

    def wants(self, name):
        return not self.only or name in self.only

    def write_config(self, name, text):
        path = self.output / "configs" / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def start_relay(self, scenario, sink):
        port = free_port()
        argv = [self.tools / "bench_relay", *scenario.relay_arguments(port, sink.port)]
        return Process(argv, port, {SUT_CORE}, self.output / "relay.log")

    def start_collector(self, binary, scenario, sink, name, **options):
        """spanflame or the Go collector: both take the same file."""
        port = free_port()
        cores = options.pop("cores", {SUT_CORE})
        text = configuration(scenario, port, sink.port, certificates=self.output, **options)
        argv = [binary, "--config", self.write_config(name, text)]
        if binary == self.otelcol and scenario.has_profiles:
            argv.append("--feature-gates=service.profilesSupport")
        return Process(argv, port, cores, self.output / f"{name}.log")

    def base_of(self, scenario):
        return next((row for row in self.scenarios if row.name == scenario.above), None)

    def make_bodies(self, scenario):
        """The folder with the bodies that were made ahead, once in a run."""
        name = scenario.bodies + ("-late" if scenario.late else "")
        folder = self.output / "bodies" / name
        if name and name not in self.made:
            bodies.make(self.tools, scenario, folder)
            self.made.add(name)
        return folder

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                       cwd=self.output, check=True, capture_output=True)


def start_contenders(bench, scenario, sink):
    """Pairs of name and contender, in the order of their turns."""
    base = bench.base_of(scenario)

    def collector(binary, row, name, **options):
        process = bench.start_collector(binary, row, sink, f"{scenario.name}-{name}")
        return Contender(process, row, folder=bench.make_bodies(row), **options)

    simple = base or scenario
    yield "relay", Contender(bench.start_relay(simple, sink), simple,
                             folder=bench.make_bodies(simple), is_relay=True)
    if bench.spanflame:
        yield "spanflame", collector(bench.spanflame, scenario, "spanflame")
    if bench.spanflame and base:
        yield "base", collector(bench.spanflame, base, "base")
    if bench.otelcol and not scenario.is_ours_alone:
        yield "otelcol", collector(bench.otelcol, scenario, "otelcol", divisor=COLLECTOR_WORK,
                                   keeps_bytes=False)


def teach(bench, scenario, contender):
    """Shows the join a service that sends profiles, then the spans that most of them name."""
    port = contender.process.port
    profiles = next(row for row in bench.scenarios if row.name == "join-profiles")
    traces = next(row for row in bench.scenarios if row.name == "join-spans")
    assert scenario.http
    run_load(bench.tools, port, [*profiles.load_arguments(bench.make_bodies(profiles)),
                                 "--requests", bodies.BODIES])
    run_load(bench.tools, port, [*traces.load_arguments(), "--requests",
                                 bodies.KNOWN_SPANS // traces.spans])


def index_is_used(bench, contender, sink):
    """The join has indexed the spans that came last: profiles that name them get their names."""
    profiles = next(row for row in bench.scenarios if row.name == "join-profiles")
    teach(bench, contender.scenario, contender)
    before = sink.control("stats")
    sent = run_load(bench.tools, contender.process.port,
                    [*profiles.load_arguments(bench.make_bodies(profiles)),
                     "--requests", bodies.BODIES])
    grown = sink.control("stats")["body_bytes"] - before["body_bytes"] - sent["body_bytes"]
    return sent["ok"] == sent["requests"] and grown > 0


def run_scenario(bench, scenario):
    """All rounds of one row of the table."""
    requests = max(int(scenario.requests * bench.share), 1)
    sink = Sink(bench.tools, bench.output, *scenario.sink_arguments(requests))
    contenders = {}
    try:
        for name, contender in start_contenders(bench, scenario, sink):
            contenders[name] = contender
        if scenario.join and "spanflame" in contenders:
            teach(bench, scenario, contenders["spanflame"])
        for contender in contenders.values():  # connections, allocator, caches
            one_round(bench.tools, contender, sink, max(requests // 20, 1))
        rounds = {name: [] for name in contenders}
        for number in range(bench.rounds):
            turns = list(contenders.items())
            for name, contender in turns if number % 2 == 0 else reversed(turns):
                work = contender.requests(requests)
                rounds[name].append(one_round(bench.tools, contender, sink, work))
        memory = {name: contender.process.memory("VmHWM")
                  for name, contender in contenders.items()}
        if scenario.join and "spanflame" in contenders and not scenario.has_profiles and \
                not index_is_used(bench, contenders["spanflame"], sink):
            rounds["spanflame"][-1]["wrong"].append("the join knows none of the last spans")
    finally:
        for contender in contenders.values():
            contender.process.stop()
        sink.stop()
    return summarise(scenario, rounds, memory)


def median_of(rounds, key):
    return statistics.median(a_round[key] for a_round in rounds)


def paired(function, first, second):
    return bootstrap([function(a["us_per_item"], b["us_per_item"])
                      for a, b in zip(first, second)])


def summarise(scenario, rounds, memory):
    result = {"name": scenario.name, "title": scenario.title, "span_bytes": scenario.span_bytes,
              "systems": {}, "wrong": []}
    for name, own in rounds.items():
        result["systems"][name] = {
            key: median_of(own, key) for key in ("spans_per_s", "sut_load", "generator_load",
                                                 "sink_load")
        } | {
            key: min(a_round[key] for a_round in own)
            for key in ("us_per_item", "user_us_per_item", "ns_per_byte")
        } | {"peak_rss_kib": memory[name], "rounds": own}
        result["wrong"] += [f"{name}: {text}" for a_round in own for text in a_round["wrong"]]
    for name in rounds.keys() - {"relay"}:
        ratio = paired(lambda a, b: a / b, rounds[name], rounds["relay"])
        result["systems"][name]["ratio"] = ratio
    if "base" in rounds:
        result["above_name"] = scenario.above
        result["above"] = paired(lambda a, b: a - b, rounds["spanflame"], rounds["base"])
    if "spanflame" in rounds:
        result["target"], result["is_met"] = judge(scenario, result)
    return result


def judge(scenario, result):
    """What was required, and whether it was reached. A voided row reaches nothing."""
    own = result["systems"]["spanflame"]
    if scenario.ratio_max is not None:
        text = f"≤ {scenario.ratio_max} × relay"
        is_met = own["ratio"]["median"] <= scenario.ratio_max
    elif scenario.us_max is not None:
        text, is_met = f"≤ {scenario.us_max} µs", own["us_per_item"] <= scenario.us_max
    elif scenario.ns_max is not None:
        text, is_met = f"≤ {scenario.ns_max} ns/B", own["ns_per_byte"] <= scenario.ns_max
    elif scenario.above_us_max is not None:
        limit = scenario.above_us_max
        text, is_met = f"≤ {scenario.above} + {limit} µs", result["above"]["median"] <= limit
    else:
        limit = scenario.above_ns_max
        per_byte = result["above"]["median"] * own["ns_per_byte"] / own["us_per_item"]
        text = f"≤ {scenario.above} + {limit} ns/B (it is {per_byte:.2f})"
        is_met = per_byte <= limit
    return text, is_met and not result["wrong"]


def commit():
    """What was measured: the commit that the tree stands at, and whether it was changed since."""
    here = pathlib.Path(__file__).parent
    done = subprocess.run(["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
                          cwd=here, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def write_configs(bench):
    """To be run by hand, with the usual ports and a sink on 14318."""
    for scenario in bench.scenarios:
        port = 4040 if scenario.push_in else 4318 if scenario.http else 4317
        print(bench.write_config(scenario.name, configuration(scenario, port, 14318)))


def main():
    arguments = read_arguments()
    bench = Bench(arguments)
    if arguments.configs:
        write_configs(bench)
        return 0
    bench.make_certificate()
    rows = []
    for scenario in bench.scenarios:
        if bench.wants(scenario.name):
            rows.append(run_scenario(bench, scenario))
            costs = ", ".join(f"{name} {system['us_per_item']:.3f}"
                              for name, system in rows[-1]["systems"].items())
            print(f"{scenario.title}: µs: {costs}", file=sys.stderr, flush=True)
    extra = []
    for name, measure in figures.FIGURES.items():
        if bench.wants(name) and bench.spanflame:
            extra += measure(bench)
            print(f"{name}: {extra[-1]['text']}", file=sys.stderr, flush=True)
    results = {"commit": commit(), "conditions": report.conditions(bench), "rows": rows,
               "figures": extra}
    text = report.report(results)
    print(text, end="")
    (bench.output / "results.md").write_text(text, encoding="utf-8")
    for path in filter(None, (bench.output / "results.json", arguments.record)):
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if any(row["wrong"] for row in rows) or not all(f["is_sound"] for f in extra) else 0


if __name__ == "__main__":
    # Whatever ends us, the processes that we started end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"run.py: {error}")
