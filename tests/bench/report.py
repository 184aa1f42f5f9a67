# SPDX-License-Identifier: Apache-2.0
"""What the benchmark found, as text: the table of rows, the list of figures, and the part of the
README between its two marks."""

import datetime
import platform
import re

from rig import RIG_CORE, SUT_CORE

GENERATOR_LOAD_MAX = 0.70
MARKS = re.compile(r"(<!-- figures:begin[^\n]*-->\n).*(<!-- figures:end -->)", re.S)

HEADINGS = ["scenario", "relay µs/span", "spanflame µs/span", "ns/B", "÷ relay [95 %]", "required",
            "met", "Go collector µs/span", "spanflame is faster by",
            "peak RSS MiB of relay, spanflame, Go collector",
            "generator, sink: share of a core"]
# The columns of HEADINGS that the README has.
README_COLUMNS = [0, 1, 2, 3, 4, 5, 7]


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
    return [f"- {figure['title']}: {figure['text']} (required: {figure['required']}; "
            f"{'met' if figure['is_met'] else '**not met**'})" for figure in figures]


def report(bench, rows, figures):
    lines = [*table(rows), "", conditions(bench), ""]
    for row in rows:
        lines += [f"- VOID, {row['name']}: {text}" for text in sorted(set(row["wrong"]))]
        lines += [f"- {row['name']}: the generator took {system['generator_load']:.0%} of its core "
                  f"with {name}: no statement on throughput"
                  for name, system in row["systems"].items()
                  if system["generator_load"] > GENERATOR_LOAD_MAX]
    return "\n".join(lines + figure_lines(figures)) + "\n"


def write_readme(path, bench, rows, figures):
    """Replaces what is between the marks, so that every number there is of the same run."""
    lines = ["", conditions(bench), "", *table(rows, README_COLUMNS), "",
             *figure_lines(figures), ""]
    text, count = MARKS.subn(lambda found: found[1] + "\n".join(lines) + "\n" + found[2],
                             path.read_text(encoding="utf-8"))
    assert count == 1, f"{path} lacks the marks of the figures"
    path.write_text(text, encoding="utf-8")
