# SPDX-License-Identifier: Apache-2.0
"""The join: what its index takes for each span as it grows, what reading spans into it costs, and
what profiles, in one process without sockets."""

import re

from profiles import run

BYTES_MAX = 96
NS_MAX = 120
PROFILES_NS_MAX = 1.5  # per byte
ENTRIES_MAX = 200000  # the default, of which the limits speak


def index_curve(bench):
    """Bytes and ns per span by the number of spans."""
    pattern = r"(\d+) spans: filling +([\d.]+) ns, replacing +([\d.]+) ns,.* ([\d.]+) B/span"
    rows = [(int(row[0]), *map(float, row[1:]))
            for row in re.findall(pattern, run([bench.tools / "bench_span_index"]))]
    text = "; ".join(f"{spans:,} spans {size:.0f} B and {replacing:.0f} ns"
                     for spans, _, replacing, size in rows)
    judged = [size for spans, _, _, size in rows if spans <= ENTRIES_MAX]
    return {"title": "the join's index, memory of a span and time to replace one", "text": text,
            "required": f"≤ {BYTES_MAX} B up to {ENTRIES_MAX:,} spans", "is_sound": bool(rows),
            "is_met": bool(judged) and max(judged) <= BYTES_MAX}


def reading(bench):
    """Judged with the default settings: local roots, every eighth span, are marked."""
    text = run([bench.tools / "bench_join_spans"])
    cost, unmarked, most = map(float, re.search(
        r"ns/span: ([\d.]+), without marks ([\d.]+), .* marked ([\d.]+)", text).groups())
    return {"title": "spans into the join, 1000 of 672 B per request, default settings",
            "text": f"{cost:.0f} ns/span; {unmarked:.0f} with mark: off, {most:.0f} with route, "
                    f"status and every span marked", "required": f"≤ {NS_MAX} ns/span",
            "is_met": cost <= NS_MAX, "is_sound": unmarked < cost < most}


def writing(bench):
    """Every sample names a span; half of them a local root, half one with two ancestors."""
    text = run([bench.tools / "bench_join_profiles"])
    size, cost, counted, factor = map(float, re.search(
        r"([\d.]+) B/sample; ns/B: .* all ([\d.]+);(?:.|\n)*ns/B: ([\d.]+); ([\d.]+) times",
        text).groups())
    return {"title": f"profiles through the join, 5000 samples of {size:.0f} B that all name a span",
            "text": f"{cost:.2f} ns/B; {counted:.2f} ns/B and {factor:.2f} × the bytes with count_for: "
                    f"[span, root, ancestors], two copies of each sample",
            "required": f"≤ {PROFILES_NS_MAX} ns/B", "is_met": cost <= PROFILES_NS_MAX,
            "is_sound": counted > cost and factor > 1}


def join(bench):
    return [index_curve(bench), reading(bench), writing(bench)]
