# SPDX-License-Identifier: Apache-2.0
"""The journal, on the disk that holds the output folder: how long an OK takes beside a bare loop of
pwrite and fdatasync, what it costs beside the same pipeline without it, and an outage of the
back-end."""

import dataclasses
import json
import shutil
import statistics
import subprocess
import tempfile
import threading

from rig import Sink, run_load
from scenarios import SCENARIOS

RATE = 1000
ROUNDS = 3
WARM_UP = 1000  # requests, until the journal has its files, as the bare loop has
P50_RATIO_MAX, P99_RATIO_MAX = 1.2, 2.5
CPU_RATIO_MAX = 1.2
MIB_PER_S_MIN = 900
SAME_SHARE = 0.95  # of the bare loop, to count as the same
OUTAGE_SPANS_PER_S = 20000
OUTAGE_BUDGET_MIB = 64
OUTAGE_RSS_KIB_MAX = OUTAGE_BUDGET_MIB * 1024 * 115 // 100


def scenario(**changes):
    row = next(row for row in SCENARIOS if row.name == "gateway")
    return dataclasses.replace(row, edits=False, coding_out="", **changes)


def bare_loop(bench, size, writes, rate=0):
    """The disk alone."""
    argv = [bench.tools / "bench_disk", "--file", bench.output / "bare", "--bytes", size,
            "--writes", writes, "--rate", rate]
    return json.loads(subprocess.run([str(word) for word in argv], capture_output=True, text=True,
                                     check=True).stdout)


class Stored:
    """spanflame with a journal of its own, or without one, in front of a sink."""

    def __init__(self, bench, row, requests, is_stored, name, **options):
        self.directory = tempfile.mkdtemp(dir=bench.output) if is_stored else ""
        self.sink = Sink(bench.tools, bench.output, *row.sink_arguments(requests))
        self.process = bench.start_collector(bench.spanflame, row, self.sink, name,
                                             storage=self.directory, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.sink.stop()
        if self.directory:
            shutil.rmtree(self.directory)


def once(bench, row, requests, is_stored, *arguments):
    """What bench_load printed, and the CPU seconds of the daemon until all had arrived."""
    with Stored(bench, row, requests, is_stored, "journal") as run:
        load = [*row.load_arguments(), *arguments, "--requests"]
        warm_up = run_load(bench.tools, run.process.port, [*load, WARM_UP])
        run.sink.await_spans(warm_up["spans"], 30)
        run.sink.control("reset")
        before = sum(run.process.cpu())
        sent = run_load(bench.tools, run.process.port, [*load, requests])
        got = run.sink.await_spans(sent["spans"], 30)
        cpu = sum(run.process.cpu()) - before
    return sent, cpu, sent["ok"] == requests and got["spans"] >= sent["spans"]


def latency(bench):
    row = scenario(http=True, spans=100, connections=16, batch="{}")
    requests = RATE * bench.seconds
    rounds = []
    is_sound = True
    for _ in range(ROUNDS):
        bare = bare_loop(bench, row.spans * row.span_bytes, requests, RATE)["latency_ms"]
        sent, _, is_whole = once(bench, row, requests, True, "--rate", RATE)
        rounds.append((sent["latency_ms"], bare))
        is_sound &= is_whole
    without = once(bench, row, requests, False, "--rate", RATE)[0]["latency_ms"]
    p50, p99 = (statistics.median(ours[share] / bare[share] for ours, bare in rounds)
                for share in ("p50", "p99"))
    ours, bare = rounds[0]
    return {"title": f"journal, {RATE} requests/s of 100 spans: responses beside a bare loop of "
                     f"pwrite and fdatasync",
            "text": f"p50 {p50:.2f} ×, p99 {p99:.2f} × (in the first of three rounds "
                    f"{ours['p50']:.2f} and {ours['p99']:.2f} ms beside {bare['p50']:.2f} and "
                    f"{bare['p99']:.2f}; without a journal {without['p50']:.2f} and "
                    f"{without['p99']:.2f})",
            "required": f"p50 ≤ {P50_RATIO_MAX} ×, p99 ≤ {P99_RATIO_MAX} ×", "is_sound": is_sound,
            "is_met": p50 <= P50_RATIO_MAX and p99 <= P99_RATIO_MAX}


def cost(bench, title, row, requests, *arguments):
    ratios = []
    is_sound = True
    for _ in range(ROUNDS):
        _, with_journal, is_whole = once(bench, row, requests, True, *arguments)
        _, without, is_whole_without = once(bench, row, requests, False, *arguments)
        ratios.append(with_journal / without)
        is_sound &= is_whole and is_whole_without
    ratio = statistics.median(ratios)
    return {"title": f"journal, CPU per span beside the same without it, 100 spans a request, "
                     f"{title}",
            "text": f"{ratio:.2f} × ({min(ratios):.2f} to {max(ratios):.2f})",
            "required": f"≤ {CPU_RATIO_MAX} ×", "is_sound": is_sound,
            "is_met": ratio <= CPU_RATIO_MAX}


def closed_loop_cost(bench):
    """As fast as the responses come: commits in groups. The exporter has its defaults."""
    row = scenario(spans=100, connections=64, batch="{}", queued=True)
    return cost(bench, "as fast as 64 clients can", row, 2000 * bench.seconds)


def open_loop_cost(bench):
    """Nearly each request has a commit of its own, and nothing is compressed."""
    row = scenario(spans=100, batch="{}")
    return cost(bench, f"{RATE} requests/s, not compressed", row, RATE * bench.seconds, "--rate",
                RATE)


def throughput(bench):
    """In groups of 8 MiB: the journal alone, and as fast as 64 clients can."""
    alone = []
    for _ in range(ROUNDS):
        bare = bare_loop(bench, 8 << 20, 20 * bench.seconds)["mib_per_s"]
        with tempfile.TemporaryDirectory(dir=bench.output) as directory:
            argv = [bench.tools / "bench_journal", "--directory", directory, "--writes",
                    240 * bench.seconds]
            done = subprocess.run([str(word) for word in argv], capture_output=True, text=True,
                                  check=True)
        alone.append((json.loads(done.stdout)["mib_per_s"], bare))
    rate, bare = sorted(alone, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]
    required = min(MIB_PER_S_MIN, bare)
    row = scenario(http=True, spans=1000, connections=64, batch="{}")
    sent, _, is_sound = once(bench, row, 200 * bench.seconds, True)
    whole = sent["ok"] * row.spans * row.span_bytes / sent["seconds"] / 2**20
    bound = f"≥ {MIB_PER_S_MIN} MiB/s or {SAME_SHARE} of the bare loop"
    return [{"title": "journal, committed in groups, nothing else running",
             "text": f"{rate:.0f} MiB/s, the bare loop {bare:.0f}", "required": bound,
             "is_sound": True, "is_met": rate >= required * SAME_SHARE},
            {"title": "journal, 64 clients with 1000 spans a request: the whole daemon on one core",
             "text": f"{whole:.0f} MiB/s, the bare loop {bare:.0f}", "required": bound,
             "is_sound": is_sound, "is_met": whole >= required * SAME_SHARE}]


def outage(bench):
    """The back-end takes nothing for a while."""
    row = scenario(batch="{}")
    rate = OUTAGE_SPANS_PER_S // row.spans
    requests = rate * bench.seconds * 6
    with Stored(bench, row, requests, True, "journal-outage",
                budget_mib=OUTAGE_BUDGET_MIB) as run:
        run.sink.control("stall")
        back = threading.Timer(bench.seconds * 5, run.sink.control, ["resume"])
        back.start()
        sent = run_load(bench.tools, run.process.port,
                        [*row.load_arguments(), "--requests", requests, "--rate", rate])
        back.join()
        got = run.sink.await_spans(sent["spans"], 60)
        peak_kib = run.process.memory("VmHWM")
    lost = sent["ok"] * row.spans - min(got["spans"], sent["ok"] * row.spans)
    return {"title": f"journal, back-end away for {bench.seconds * 5} s at {OUTAGE_SPANS_PER_S} "
                     f"spans/s, budget {OUTAGE_BUDGET_MIB} MiB",
            "text": f"{lost} of {sent['ok'] * row.spans} acknowledged spans lost, "
                    f"{sent['refused']} requests refused, peak RSS {peak_kib / 1024:.1f} MiB",
            "required": f"none lost, ≤ {OUTAGE_RSS_KIB_MAX / 1024:.1f} MiB",
            "is_sound": lost == 0, "is_met": peak_kib <= OUTAGE_RSS_KIB_MAX}


def journal(bench):
    return [latency(bench), closed_loop_cost(bench), open_loop_cost(bench), *throughput(bench),
            outage(bench)]
