# SPDX-License-Identifier: Apache-2.0
"""The figures beside the table: memory, start, overload, lanes, profiles, join. Each returns a list
of {title, text, required, is_met, is_sound}; what is not sound (spans were lost) fails the run."""

import dataclasses
import statistics
import threading
import time

from join import join
from journal import journal
from profiles import profiles
from rig import CORES, Sink, bootstrap, run_load
from scenarios import SCENARIOS

LIMIT_MIB = 64
LIMITED_RSS_KIB_MAX = LIMIT_MIB * 1024 * 115 // 100
IDLE_RSS_KIB_MAX = 5 * 1024
READY_MS_MAX = 50
STEADY_SPANS_PER_S = 100000
STEADY_RSS_KIB_MAX = 12 * 1024
LANES_RATIO_MIN = 1.8


def scenario(name, **changes):
    return dataclasses.replace(next(row for row in SCENARIOS if row.name == name), **changes)


def figure(title, text, required, is_met, is_sound=True):
    return {"title": title, "text": text, "required": required, "is_met": bool(is_met and is_sound),
            "is_sound": is_sound}


def mib(kib):
    return f"{kib / 1024:.1f} MiB"


def start(bench):
    """Exec to ready, and the memory of an idle process."""
    sink = Sink(bench.tools, bench.output)
    ready_ms = []
    try:
        for _ in range(3 if bench.seconds < 10 else 9):
            sut = bench.start_collector(bench.spanflame, scenario("grpc"), sink, "start")
            ready_ms.append(sut.ready_s * 1000)
            time.sleep(0.2)
            idle_kib, anonymous_kib = sut.memory("VmRSS"), sut.memory("RssAnon")
            sut.stop()
    finally:
        sink.stop()
    ready = statistics.median(ready_ms)
    return [
        figure("ready after exec", f"{ready:.1f} ms, at worst {max(ready_ms):.1f} ms",
               f"≤ {READY_MS_MAX} ms", ready <= READY_MS_MAX),
        figure("RSS when idle", f"{mib(idle_kib)}, of which {mib(anonymous_kib)} anonymous",
               f"≤ {mib(IDLE_RSS_KIB_MAX)}", idle_kib <= IDLE_RSS_KIB_MAX),
    ]


def steady_once(bench, row, name):
    """RSS, cost and latency at a rate that leaves time to spare."""
    rate = STEADY_SPANS_PER_S // row.spans
    requests = rate * bench.seconds
    sink = Sink(bench.tools, bench.output, *row.sink_arguments(requests))
    sut = bench.start_collector(bench.spanflame, row, sink, name)
    try:
        sent = run_load(bench.tools, sut.port, [*row.load_arguments(), "--requests", requests,
                                                "--rate", rate])
        got = sink.await_spans(sent["spans"], 20)
        peak_kib = sut.memory("VmHWM")
        cores = sum(sut.cpu()) / sent["seconds"]
    finally:
        sut.stop()
        sink.stop()
    latency = sent["latency_ms"]
    text = (f"peak RSS {mib(peak_kib)}, {cores:.1%} of a core, responses after "
            f"{latency['p50']:.2f} ms (p50), {latency['p99']:.2f} (p99), {latency['p999']:.2f} (p99.9), "
            f"{latency['max']:.2f} (longest)")
    return text, peak_kib, got["spans"] == sent["spans"] and got["ids_sum"] == sent["ids_sum"]


def steady(bench):
    """Passed on at once, and gathered by the batch processor with its defaults."""
    text, peak_kib, is_sound = steady_once(bench, scenario("grpc"), "steady")
    batched = scenario("gateway", edits=False, coding_out="")
    batched_text, _, batched_is_sound = steady_once(bench, batched, "steady-batched")
    return [
        figure("100 000 spans/s, 1000 per request", text, f"≤ {mib(STEADY_RSS_KIB_MAX)}",
               peak_kib <= STEADY_RSS_KIB_MAX, is_sound),
        figure("100 000 spans/s, 100 per request, batches of 8192", batched_text,
               "all delivered", True, batched_is_sound),
    ]


def lost_spans(acked_path, seen_path, requests, spans):
    """Spans in requests that got OK, and that the sink has never seen."""
    acked = int.from_bytes(acked_path.read_bytes(), "little")
    seen = int.from_bytes(seen_path.read_bytes(), "little") >> 1  # spans count from 1
    everything = (1 << spans) - 1
    lost = 0
    for request in range(requests):
        if acked >> request & 1:
            missing = everything & ~(seen >> (request * spans) & everything)
            lost += missing.bit_count()
    return lost


def overload_once(bench, row):
    """The sink takes half of what is offered."""
    offered = 100000
    rate = offered // row.spans
    requests = rate * bench.seconds
    seen, acked = bench.output / "seen.bits", bench.output / "acked.bits"
    sink = Sink(bench.tools, bench.output, "--spans-max", requests * row.spans, "--seen", seen,
                "--spans-per-s", offered // 2)
    sut = bench.start_collector(bench.spanflame, row, sink, f"overload-{row.name}",
                                limit_mib=LIMIT_MIB)
    try:
        sent = run_load(bench.tools, sut.port, [*row.load_arguments(), "--requests", requests,
                                                "--rate", rate, "--acked", acked])
        sink.await_spans(sent["ok"] * row.spans, 60)
        peak_kib = sut.memory("VmHWM")
    finally:
        sut.stop()
        sink.stop()
    lost = lost_spans(acked, seen, requests, row.spans)
    goodput = sent["ok"] * row.spans / sent["seconds"] / (offered // 2)
    return figure(
        f"2 × overload, {'HTTP' if row.http else 'gRPC'}, memory_limiter {LIMIT_MIB} MiB",
        f"peak RSS {mib(peak_kib)}; {sent['ok']} of {requests} requests taken, {sent['refused']} "
        f"refused retryably, {sent['rejected']} for good, {sent['broken']} without a response; "
        f"{lost} acknowledged spans lost; {goodput:.0%} of what the sink can take; OK "
        f"after {sent['latency_ms']['p99']:.0f} ms (p99)",
        f"≤ {mib(LIMITED_RSS_KIB_MAX)}, none lost",
        peak_kib <= LIMITED_RSS_KIB_MAX and sent["rejected"] == 0, lost == 0)


def overload(bench):
    plain = {"edits": False, "coding_out": ""}
    return [overload_once(bench, scenario("gateway", **plain)),
            overload_once(bench, scenario("gateway", http=True, connections=64, **plain))]


def stall(bench):
    """The sink sends no response until twice of what the limiter admits has come; refused requests
    are sent again."""
    row = scenario("gateway", edits=False, coding_out="")
    rate = 200
    stalled_s = 2 * LIMIT_MIB * 2**20 / (rate * row.spans * row.span_bytes)
    requests = round(rate * 2 * stalled_s)
    seen, acked = bench.output / "seen.bits", bench.output / "acked.bits"
    sink = Sink(bench.tools, bench.output, "--spans-max", requests * row.spans, "--seen", seen)
    sut = bench.start_collector(bench.spanflame, row, sink, "stall", limit_mib=LIMIT_MIB)
    timers = [threading.Timer(stalled_s * share, sink.control, [verb])
              for share, verb in ((0.25, "stall"), (1.25, "resume"))]
    try:
        for timer in timers:
            timer.start()
        sent = run_load(bench.tools, sut.port,
                        [*row.load_arguments(), "--requests", requests, "--rate", rate,
                         "--retry-ms", 200, "--acked", acked])
        sink.await_spans(sent["ok"] * row.spans, 60)
        peak_kib = sut.memory("VmHWM")
    finally:
        for timer in timers:
            timer.join()
        sut.stop()
        sink.stop()
    lost = lost_spans(acked, seen, requests, row.spans)
    return [figure(
        f"20 000 spans/s, back-end silent for {stalled_s:.0f} s, memory_limiter {LIMIT_MIB} "
        f"MiB", f"peak RSS {mib(peak_kib)}; {sent['ok']} of {requests} requests taken after "
        f"{sent['refused']} refusals; {lost} acknowledged spans lost",
        f"≤ {mib(LIMITED_RSS_KIB_MAX)}, all taken, none lost",
        peak_kib <= LIMITED_RSS_KIB_MAX and sent["ok"] == requests,
        lost == 0 and sent["refused"] > 0)]


def speed_and_cost(bench, sut, row, requests):
    """Requests per second, CPU seconds for all of them, and whether all got OK."""
    before = sum(sut.cpu())
    sent = run_load(bench.tools, sut.port, [*row.load_arguments(), "--requests", requests])
    return sent["ok"] / sent["seconds"], sum(sut.cpu()) - before, sent["ok"] == requests


def lanes(bench):
    """Throughput of two lanes on both cores against one lane on one; work that costs the rig next
    to nothing: gzip both ways, and a sink that only counts requests."""
    row = scenario("gzip", connections=4)
    requests = max(int(row.requests * bench.share), 8)
    sink = Sink(bench.tools, bench.output)
    systems = []
    ratios, costs = [], []
    is_sound = True
    try:
        for count in (1, 2):
            cores = set(CORES[:count])
            systems.append(bench.start_collector(bench.spanflame, row, sink, f"lanes-{count}",
                                                 lanes=count, cores=cores))
        for _ in range(bench.rounds):
            (slow, dear, *first), (fast, cheap, *second) = (
                speed_and_cost(bench, sut, row, requests) for sut in systems)
            is_sound = is_sound and all(first + second)
            ratios.append(fast / slow)
            costs.append(cheap / dear)
    finally:
        for sut in systems:
            sut.stop()
        sink.stop()
    value = bootstrap(ratios)
    return [figure("two lanes against one, gzip both ways", f"{value['median']:.2f} × "
                   f"[{value['low']:.2f}, {value['high']:.2f}] the speed at "
                   f"{statistics.median(costs):.2f} × the cost per span, on {len(CORES)} cores "
                   f"that the generator and the sink share", f"≥ {LANES_RATIO_MIN} ×",
                   value["median"] >= LANES_RATIO_MIN, is_sound)]


FIGURES = {"start": start, "steady": steady, "overload": overload, "stall": stall,
           "lanes": lanes, "profiles": profiles, "join": join,
           "journal": journal}
