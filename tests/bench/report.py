#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the benchmark found, as text: the table of rows and the list of figures.

usage: report.py RESULTS README [--check]
Writes the part of README between its two marks from RESULTS, which run.py --record left; with
--check it writes nothing and ends with 1 when that part is another."""

import datetime
import json
import pathlib
import platform
import re
import sys

from rig import RIG_CORE, SUT_CORE

GENERATOR_LOAD_MAX = 0.70
MARKS = re.compile(r"(<!-- figures:begin[^\n]*-->\n).*(<!-- figures:end -->)", re.S)

HEADINGS = ["scenario", "relay µs/span", "spanflame µs/span", "ns/B", "÷ relay [95 %]", "required",
            "met", "Go collector µs/span", "spanflame is faster by",
            "peak RSS MiB of relay, spanflame, Go collector",
            "generator, sink: share of a core"]
# The columns of HEADINGS that the README has.
README_COLUMNS = [0, 1, 2, 3, 4, 5, 6, 7]


def number(value):
    """With as many digits as mean something."""
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def cell(system, key="us_per_item"):
    return number(system[key]) if system else "–"


def interval(value):
    return f"{value['median']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"


def table_row(result):
    systems = result["systems"]
    own, peer = systems.get("spanflame"), systems.get("otelcol")
    against = interval(own["ratio"]) if own else "–"
    if "above" in result:
        above = f"{number(systems['base']['us_per_item'])} µs, {result['above_name']}"
        against = f"({above}) + {interval(result['above'])} µs"
    faster = f"{peer['us_per_item'] / own['us_per_item']:.1f} ×" if own and peer else "–"
    verdict = "–" if not own else "yes" if result["is_met"] else "**no**"
    if result["wrong"]:
        verdict = "**void**"
    rss = ", ".join(f"{systems[name]['peak_rss_kib'] / 1024:.0f}"
                    for name in ("relay", "spanflame", "otelcol") if name in systems)
    load = (f"{max(s['generator_load'] for s in systems.values()):.0%}, "
            f"{max(s['sink_load'] for s in systems.values()):.0%}")
    return [result["title"], cell(systems["relay"]), cell(own), cell(own, "ns_per_byte"), against,
            result.get("target", "–"), verdict, cell(peer), faster, rss, load]


def table(rows, columns=range(len(HEADINGS))):
    lines = [HEADINGS, ["---"] * len(HEADINGS), *map(table_row, rows)]
    return ["| " + " | ".join(line[column] for column in columns) + " |" for line in lines]


def conditions(bench):
    work = "" if bench.share == 1 else f" with {bench.share:.0%} of the usual work"
    machine = (f"{platform.system()} {platform.release()}, {cpu_model()}, "
               f"{datetime.date.today().isoformat()}, five minutes' load average {load_average()}")
    return (f"CPU time, user and system, of the best of {bench.rounds} alternating rounds{work}; "
            f"ratios and differences are medians of pairs of rounds. Spans of "
            f"{bench.scenarios[0].span_bytes} bytes; ns per byte of the body as it came in. System "
            f"under test on core {SUT_CORE}, generator and sink on core {RIG_CORE}; loopback; gzip "
            f"in by zlib 6, zstd by level 3, out by each system's default; answers wait for the "
            f"sink unless batched; where another row runs beside a row, the relay does that one's "
            f"work. {machine}.")


def load_average():
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read().split()[1]


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file
                     if line.startswith("model name")), platform.machine())


def figure_lines(figures):
    def verdict(figure):
        if not figure["is_sound"]:
            return "**void**"
        return "met" if figure["is_met"] else "**not met**"

    return [f"- {figure['title']}: {figure['text']} (required: {figure['required']}; "
            f"{verdict(figure)})" for figure in figures]


def void_lines(rows):
    return [f"- **void**, {row['title']}: {text}" for row in rows
            for text in sorted(set(row["wrong"]))]


def report(results):
    rows = results["rows"]
    lines = [*table(rows), "", f"{results['conditions']} Commit {results['commit']}.", "",
             *void_lines(rows)]
    for row in rows:
        lines += [f"- {row['name']}: the generator took {system['generator_load']:.0%} of its core "
                  f"with {name}: no statement on throughput"
                  for name, system in row["systems"].items()
                  if system["generator_load"] > GENERATOR_LOAD_MAX]
    return "\n".join(lines + figure_lines(results["figures"])) + "\n"


def with_figures(text, results):
    """The text of the README with all that is between the marks of these results."""
    rows = results["rows"]
    lines = ["", f"{results['conditions']} Commit {results['commit']}.", "",
             *table(rows, README_COLUMNS), "", *void_lines(rows),
             *figure_lines(results["figures"]), ""]
    made, count = MARKS.subn(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text)
    if count != 1:
        sys.exit("report.py: the README lacks the marks of the figures")
    return made


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--check"]):
        sys.exit(__doc__)
    results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    readme = pathlib.Path(sys.argv[2])
    text = readme.read_text(encoding="utf-8")
    made = with_figures(text, results)
    if len(sys.argv) == 3:
        readme.write_text(made, encoding="utf-8")
    elif made != text:
        sys.exit(f"{readme}: its figures are not those of {sys.argv[1]}; write them with "
                 f"tests/bench/report.py {sys.argv[1]} {readme}")


if __name__ == "__main__":
    main()
