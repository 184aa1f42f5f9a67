#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark: what one span costs in spanflame, beside the least that any relay could cost.

Protocol. The system under test has one core, generator and sink have the other. A round is fixed
work: so many requests, sent as fast as the answers come, until the sink has every span. Its figure
is CPU time (user and system, as /proc counts it) per span; wall time is noise on a shared machine.
Rounds of the relay (A), of spanflame (B) and, with OTELCOL=path, of the Go collector (C) alternate:
ABC CBA ABC …, so that a drift of the machine favours nobody. A ratio is the median of the rounds'
ratios, with a bootstrap 95 % interval. Every round passes a gate: all requests were answered OK,
and the sink has exactly the spans that were sent, by their ids, and where nothing may be changed,
exactly as many bytes. A round that fails it voids its row. A generator above 70 % of its core
voids the throughput, not the cost.

After the table: time from exec to ready and RSS when idle; RSS and latency at 100 000 spans/s; a
sink slowed to half of what is offered and a sink silent for a while (RSS within budget + 15 %,
nothing acknowledged is lost); two lanes against one; checking and merging of profiles, with
PPROFILE=path beside the Go collector's library (tests/peers/build pprofile DIRECTORY).

usage: run.py --tools DIR [--spanflame FILE] [--output DIR] [--rounds N] [--only NAME,…] [--quick]
The results are printed and left in DIR as results.md, results.json and the configurations used."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import signal
import statistics
import sys

import figures
from rig import (RIG_CORE, SUT_CORE, BenchError, Contender, Process, Sink, bootstrap, free_port,
                 one_round)
from scenarios import SCENARIOS, configuration

GENERATOR_LOAD_MAX = 0.70
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
        self.share = 0.01 if arguments.quick else 1.0
        self.seconds = 2 if arguments.quick else 20
        self.only = set(filter(None, arguments.only.split(",")))
        self.scenarios = [dataclasses.replace(scenario, span_bytes=arguments.span_bytes)
                          for scenario in SCENARIOS]
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
        path = self.write_config(name, configuration(scenario, port, sink.port, **options))
        return Process([binary, "--config", path], port, cores, self.output / f"{name}.log")


def start_contenders(bench, scenario, sink):
    """Pairs of name and contender, in the order of their turns."""

    def collector(binary, row, name, **options):
        process = bench.start_collector(binary, row, sink, f"{scenario.name}-{name}")
        return Contender(process, row, **options)

    yield "relay", Contender(bench.start_relay(scenario, sink), scenario)
    if bench.spanflame:
        yield "spanflame", collector(bench.spanflame, scenario, "spanflame")
    if bench.spanflame and scenario.above:
        base = next(row for row in bench.scenarios if row.name == scenario.above)
        yield "base", collector(bench.spanflame, base, "base")
    if bench.otelcol:
        yield "otelcol", collector(bench.otelcol, scenario, "otelcol", divisor=COLLECTOR_WORK,
                                   keeps_bytes=False)


def run_scenario(bench, scenario):
    """All rounds of one row of the table."""
    requests = max(int(scenario.requests * bench.share), 1)
    sink = Sink(bench.tools, bench.output, *scenario.sink_arguments(requests))
    contenders = {}
    try:
        for name, contender in start_contenders(bench, scenario, sink):
            contenders[name] = contender
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
    finally:
        for contender in contenders.values():
            contender.process.stop()
        sink.stop()
    return summarise(scenario, rounds, memory)


def median_of(rounds, key):
    return statistics.median(a_round[key] for a_round in rounds)


def paired(function, first, second):
    return bootstrap([function(a["us_per_span"], b["us_per_span"])
                      for a, b in zip(first, second)])


def summarise(scenario, rounds, memory):
    result = {"name": scenario.name, "title": scenario.title, "span_bytes": scenario.span_bytes,
              "systems": {}, "wrong": []}
    for name, own in rounds.items():
        result["systems"][name] = {
            key: median_of(own, key) for key in ("us_per_span", "user_us_per_span", "spans_per_s",
                                                 "sut_load", "generator_load", "sink_load")
        } | {"peak_rss_kib": memory[name], "rounds": own}
        result["wrong"] += [f"{name}: {text}" for a_round in own for text in a_round["wrong"]]
    for name in rounds.keys() - {"relay"}:
        ratio = paired(lambda a, b: a / b, rounds[name], rounds["relay"])
        result["systems"][name]["ratio"] = ratio
    if "base" in rounds:
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
        text, is_met = f"≤ {scenario.us_max} µs", own["us_per_span"] <= scenario.us_max
    else:
        limit = scenario.above_us_max
        text, is_met = f"≤ plain + {limit} µs", result["above"]["median"] <= limit
    return text, is_met and not result["wrong"]


def cell(system, key="us_per_span"):
    return f"{system[key]:.3f}" if system else "–"


def interval(value, digits=2):
    return f"{value['median']:.{digits}f} [{value['low']:.{digits}f}, {value['high']:.{digits}f}]"


def table_row(result):
    systems = result["systems"]
    own, peer = systems.get("spanflame"), systems.get("otelcol")
    against = interval(own["ratio"]) if own else "–"
    if "above" in result:
        against = f"plain + {interval(result['above'], 3)} µs"
    faster = f"{peer['us_per_span'] / own['us_per_span']:.1f} ×" if own and peer else "–"
    verdict = "–" if not own else "yes" if result["is_met"] else "**no**"
    rss = ", ".join(f"{systems[name]['peak_rss_kib'] / 1024:.0f}"
                    for name in ("relay", "spanflame", "otelcol") if name in systems)
    load = (f"{max(s['generator_load'] for s in systems.values()):.0%}, "
            f"{max(s['sink_load'] for s in systems.values()):.0%}")
    return [result["title"], cell(systems["relay"]), cell(own), against,
            result.get("target", "–"), verdict, cell(peer), faster, rss, load]


HEADINGS = ["scenario", "relay µs/span", "spanflame µs/span", "÷ relay [95 %]", "required", "met",
            "Go collector µs/span", "spanflame is faster by", "peak RSS MiB (in this order)",
            "generator, sink: share of a core"]


def conditions(bench):
    work = "" if bench.share == 1 else f", {bench.share:.0%} of the work: not a measurement"
    return (f"{bench.scenarios[0].span_bytes} B spans, {bench.rounds} alternating rounds{work}; "
            f"system under test on core {SUT_CORE}, generator and sink on core {RIG_CORE}; loopback, no "
            f"TLS; gzip in by zlib 6, out by each system's default; answers wait for the sink "
            f"unless batched; {platform.system()} {platform.release()}, {cpu_model()}, "
            f"{datetime.date.today().isoformat()}.")


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file
                     if line.startswith("model name")), platform.machine())


def report(bench, rows, extra):
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
    lines += ["| " + " | ".join(table_row(row)) + " |" for row in rows]
    lines += ["", conditions(bench), ""]
    for row in rows:
        lines += [f"- VOID, {row['name']}: {text}" for text in sorted(set(row["wrong"]))]
        lines += [f"- {row['name']}: the generator took {system['generator_load']:.0%} of its core "
                  f"with {name}: no statement on throughput"
                  for name, system in row["systems"].items()
                  if system["generator_load"] > GENERATOR_LOAD_MAX]
    lines += [f"- {figure['title']}: {figure['text']} (required: {figure['required']}; "
              f"{'met' if figure['is_met'] else '**not met**'})" for figure in extra]
    return "\n".join(lines) + "\n"


def write_configs(bench):
    """To be run by hand, with the usual ports and a sink on 14318."""
    for scenario in bench.scenarios:
        port = 4318 if scenario.http else 4317
        print(bench.write_config(scenario.name, configuration(scenario, port, 14318)))


def main():
    arguments = read_arguments()
    bench = Bench(arguments)
    if arguments.configs:
        write_configs(bench)
        return 0
    rows = []
    for scenario in bench.scenarios:
        if bench.wants(scenario.name):
            rows.append(run_scenario(bench, scenario))
            costs = ", ".join(f"{name} {system['us_per_span']:.3f}"
                              for name, system in rows[-1]["systems"].items())
            print(f"{scenario.title}: µs/span: {costs}", file=sys.stderr, flush=True)
    extra = []
    for name, measure in figures.FIGURES.items():
        if bench.wants(name) and bench.spanflame:
            extra += measure(bench)
            print(f"{name}: {extra[-1]['text']}", file=sys.stderr, flush=True)
    text = report(bench, rows, extra)
    print(text, end="")
    (bench.output / "results.md").write_text(text, encoding="utf-8")
    (bench.output / "results.json").write_text(
        json.dumps({"conditions": conditions(bench), "rows": rows, "figures": extra}, indent=1),
        encoding="utf-8")
    return 1 if any(row["wrong"] for row in rows) or not all(f["is_sound"] for f in extra) else 0


if __name__ == "__main__":
    # Whatever ends us, the processes that we started end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"run.py: {error}")
