#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the benchmark found, as text: the table of rows and the list of figures.

usage: report.py RESULTS PAGE... [--check]
Writes the parts of each PAGE that stand between marks, `<!-- NAME:begin ... -->` and
`<!-- NAME:end -->`, from RESULTS, which run.py --record left. Names are those of PARTS below. With
--check it writes nothing and exits with 1 when a part differs."""

import datetime
import json
import pathlib
import platform
import re
import sys

from rig import RIG_CORE, SUT_CORE

GENERATOR_LOAD_MAX = 0.70
MARKS = re.compile(r"(<!-- (\w+):begin[^\n]*-->\n).*?(<!-- (\w+):end -->)", re.S)

HEADINGS = ["scenario", "relay µs/span", "spanflame µs/span", "ns/B", "÷ relay [95 %]", "required",
            "met", "Go collector µs/span", "spanflame is faster by",
            "peak RSS MiB of relay, spanflame, Go collector",
            "generator, sink: share of a core"]
SUMMARY_HEADINGS = ["scenario", "CPU time, µs per span", "bound", "met", "Go collector, µs per span",
                    "peak RSS, MiB", "Go collector, peak RSS, MiB"]
# The rows of the README, by name: some that users have most, missed bounds included.
SUMMARY_ROWS = ["grpc", "defaults", "gateway", "tls-grpc", "json", "profiles-http"]
SUMMARY_FIGURES = ["ready after exec", "RSS when idle"]


def number(value):
    """With significant digits only."""
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def cell(system, key="us_per_item"):
    return number(system[key]) if system else "–"


def interval(value):
    return f"{value['median']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"


def verdict(result):
    if result["wrong"]:
        return "**void**"
    return "–" if "spanflame" not in result["systems"] else "yes" if result["is_met"] else "**no**"


def table_row(result):
    systems = result["systems"]
    own, peer = systems.get("spanflame"), systems.get("otelcol")
    against = interval(own["ratio"]) if own else "–"
    if "above" in result:
        above = f"{number(systems['base']['us_per_item'])} µs, {result['above_name']}"
        against = f"({above}) + {interval(result['above'])} µs"
    faster = f"{peer['us_per_item'] / own['us_per_item']:.1f} ×" if own and peer else "–"
    rss = ", ".join(f"{systems[name]['peak_rss_kib'] / 1024:.0f}"
                    for name in ("relay", "spanflame", "otelcol") if name in systems)
    load = (f"{max(s['generator_load'] for s in systems.values()):.0%}, "
            f"{max(s['sink_load'] for s in systems.values()):.0%}")
    return [result["title"], cell(systems["relay"]), cell(own), cell(own, "ns_per_byte"), against,
            result.get("target", "–"), verdict(result), cell(peer), faster, rss, load]


def markdown(lines):
    return ["| " + " | ".join(line) + " |" for line in lines]


def table(rows):
    return markdown([HEADINGS, ["---"] * len(HEADINGS), *map(table_row, rows)])


def summary_row(result):
    def rss(name):
        return f"{systems[name]['peak_rss_kib'] / 1024:.0f}" if name in systems else "–"

    systems = result["systems"]
    return [result["title"], cell(systems.get("spanflame")), result.get("target", "–"),
            verdict(result), cell(systems.get("otelcol")), rss("spanflame"), rss("otelcol")]


def conditions(bench):
    work = "" if bench.share == 1 else f" with {bench.share:.0%} of the usual work"
    machine = (f"{platform.system()} {platform.release()}, {cpu_model()}, "
               f"{datetime.date.today().isoformat()}, five minutes' load average {load_average()}")
    return (f"CPU time is user plus system, of the best of {bench.rounds} alternating rounds{work}; "
            f"ratios and differences are medians of pairs of rounds, with a 95 % interval. Spans "
            f"have {bench.scenarios[0].span_bytes} bytes; ns/B is per byte of the request body as "
            f"received. The system under test runs on core {SUT_CORE}, generator and sink on core "
            f"{RIG_CORE}, over loopback. Requests are compressed by zlib level 6 or zstd level 3, "
            f"exports by each system's default. Clients get their response when the sink has "
            f"answered, unless requests are batched. Where a row is compared with another row, "
            f"the relay does the work of that one. {machine}.")


def load_average():
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read().split()[1]


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file
                     if line.startswith("model name")), platform.machine())


def figure_verdict(figure):
    if not figure["is_sound"]:
        return "**void**"
    return "yes" if figure["is_met"] else "**no**"


def figure_table(figures):
    lines = [[figure["title"], figure["text"], figure["required"], figure_verdict(figure)]
             for figure in figures]
    return markdown([["figure", "measured", "required", "met"], ["---"] * 4, *lines])


def void_lines(rows):
    return [f"- **void**, {row['title']}: {text}" for row in rows
            for text in sorted(set(row["wrong"]))]


def report(results):
    """Everything, as run.py prints it."""
    rows = results["rows"]
    lines = [*rows_part(results), "", *conditions_part(results), ""]
    for row in rows:
        lines += [f"- {row['name']}: the generator took {system['generator_load']:.0%} of its core "
                  f"with {name}: no statement on throughput"
                  for name, system in row["systems"].items()
                  if system["generator_load"] > GENERATOR_LOAD_MAX]
    return "\n".join([*lines, "", *figure_table(results["figures"])]) + "\n"


def rows_part(results):
    voids = void_lines(results["rows"])
    return table(results["rows"]) + (["", *voids] if voids else [])


def conditions_part(results):
    return [f"{results['conditions']} Commit {results['commit']}."]


def figures_part(results):
    return figure_table(results["figures"])


def summary_part(results):
    """Six rows, and what a process costs before it has work."""
    named = {row["name"]: row for row in results["rows"]}
    rows = [named[name] for name in SUMMARY_ROWS if name in named]
    lines = [SUMMARY_HEADINGS, ["---"] * len(SUMMARY_HEADINGS), *map(summary_row, rows)]
    figures = [f"- {figure['title']}: {figure['text']} ({figure['required']}; met: "
               f"{figure_verdict(figure)})."
               for figure in results["figures"] if figure["title"] in SUMMARY_FIGURES]
    missed = sum(verdict(row) != "yes" for row in results["rows"])
    return [*markdown(lines), "",
            "The relay forwards bodies unread; grpc and http are the rows of plain forwarding. "
            f"{missed} of all {len(results['rows'])} rows miss their bound. All rows, conditions and history: [docs/performance.md](docs/performance.md).",
            "", *figures]


PARTS = {"rows": rows_part, "conditions": conditions_part, "figures": figures_part,
         "summary": summary_part}


def with_figures(text, results):
    """A page with the parts between its marks written from these results."""
    def part(found):
        begin, name, end, end_name = found.groups()
        if name not in PARTS or name != end_name:
            sys.exit(f"report.py: marks {name} and {end_name}; there are {', '.join(PARTS)}")
        return begin + "\n".join(["", *PARTS[name](results), "", ""]) + end

    made, count = MARKS.subn(part, text)
    if count == 0:
        sys.exit("report.py: the page has no marks of figures")
    return made


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) < 2 or sys.argv[1:].count("--check") > 1:
        sys.exit(__doc__)
    is_check = "--check" in sys.argv
    results = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    for page in map(pathlib.Path, arguments[1:]):
        text = page.read_text(encoding="utf-8")
        made = with_figures(text, results)
        if not is_check:
            page.write_text(made, encoding="utf-8")
        elif made != text:
            sys.exit(f"{page}: its figures are not those of {arguments[0]}; write them with "
                     f"tests/bench/report.py {' '.join(arguments)}")


if __name__ == "__main__":
    main()
