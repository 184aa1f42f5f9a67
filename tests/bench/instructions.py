#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate that other load cannot disturb: instructions and system calls per request.

Each workload runs twice, with N and with 2N requests, one at a time; what the second run took more,
divided by N, is the cost of one request without start and stop. callgrind counts the instructions
(of user mode), strace the system calls. The baseline beside this file holds for the release and the
compiler that it names; elsewhere the figures are printed and nothing fails.

usage: instructions.py --tools DIR (--spanflame FILE | --relay) [--output DIR] [--update]"""

import argparse
import dataclasses
import json
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

from rig import CORES, BenchError, Process, Sink, free_port, run_load
from scenarios import SCENARIOS, configuration

BASELINE = pathlib.Path(__file__).with_name("instructions.json")
GROWTH_MAX = {"instructions": 0.03, "syscalls": 0.15}
# How many reads a larger body takes is chance; their system calls are printed, not judged.
JUDGED_BODY_BYTES_MAX = 100000
REQUESTS = {"grpc": 400, "http": 400, "gzip": 20, "edit": 400, "single": 2000, "gateway": 100}
# How a large body falls into reads is chance, and so is what of it is read in its place; these come
# whole.
SPANS = {"grpc": 50, "http": 50, "edit": 50}
# Flushed by count alone, so that the clock decides nothing.
BATCH = {"single": "{send_batch_size: 500, timeout: 60s}",
         "gateway": "{send_batch_size: 5000, timeout: 60s}"}


def workloads():
    return [dataclasses.replace(row, requests=REQUESTS[row.name], batch=BATCH.get(row.name, ""),
                                spans=SPANS.get(row.name, row.spans), connections=1, in_flight=1)
            for row in SCENARIOS if row.name in REQUESTS]


def callgrind(output):
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]


def count_instructions(output):
    match = re.search(r"^(?:summary|totals): (\d+)", output.read_text(encoding="utf-8"), re.M)
    if match is None:
        raise BenchError(f"callgrind left no total in {output}")
    return int(match[1])


def strace(output):
    """-D: the process that we start and stop is the daemon, strace watches from aside."""
    return ["strace", "-D", "-f", "-c", "-o", output]


def count_syscalls(output):
    """The row of the totals: share, seconds, µs per call, calls, errors if any, 'total'. It comes
    soon after the end of the daemon."""
    for _ in range(100):
        text = output.read_text(encoding="utf-8") if output.exists() else ""
        for line in text.splitlines():
            fields = line.split()
            if fields and fields[-1] == "total":
                return int(fields[3])
        time.sleep(0.05)
    raise BenchError(f"strace left no total in {output}")


TOOLS = {"instructions": (callgrind, count_instructions), "syscalls": (strace, count_syscalls)}


class Gate:
    """The arguments, made ready."""

    def __init__(self, arguments):
        self.tools = arguments.tools.resolve()
        self.spanflame = None if arguments.relay else arguments.spanflame.resolve()
        self.output = arguments.output.resolve()
        self.output.mkdir(parents=True, exist_ok=True)

    def command(self, row, port, sink_port):
        if self.spanflame is None:
            return [self.tools / "bench_relay", *row.relay_arguments(port, sink_port)]
        path = self.output / f"instructions-{row.name}.yaml"
        path.write_text(configuration(row, port, sink_port), encoding="utf-8")
        return [self.spanflame, "--config", path]

    def count(self, row, tool, requests):
        """What the program does from exec to exit for so many requests."""
        wrap, read = TOOLS[tool]
        result = self.output / f"{tool}-{row.name}.out"
        result.unlink(missing_ok=True)
        sink = Sink(self.tools, self.output, "--count-spans")
        try:
            port = free_port()
            argv = [*wrap(result), *self.command(row, port, sink.port)]
            sut = Process(argv, port, set(CORES), self.output / f"{tool}.log")
            try:
                sent = run_load(self.tools, port, [*row.load_arguments(), "--requests", requests])
                got = sink.await_spans(sent["spans"], 60)
            finally:
                sut.stop()
        finally:
            sink.stop()
        if sent["ok"] != requests or got["spans"] != sent["spans"]:
            raise BenchError(f"{row.name} under {tool}: {sent['ok']} of {requests} requests "
                             f"got OK, {got['spans']} of {sent['spans']} spans arrived")
        return read(result)

    def per_request(self, row, tool):
        """How a large body falls into reads is chance: of three tries the least is taken."""
        tries = []
        for _ in range(3):
            once = self.count(row, tool, row.requests)
            tries.append((self.count(row, tool, 2 * row.requests) - once) / row.requests)
        return min(tries)


def conditions():
    compiler = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True,
                              check=False).stdout.strip()
    release = platform.freedesktop_os_release()
    return f"{release['ID']} {release.get('VERSION_ID', '')}, cc {compiler}, {platform.machine()}"


def compare(row, tool, value, baseline):
    """One line, and whether the figure has grown too much."""
    expected = baseline.get(row.name, {}).get(tool)
    if expected is None:
        return f"{row.name}: {value:.1f} {tool} per request (no baseline)", False
    growth = value / expected - 1
    is_judged = tool != "syscalls" or row.spans * row.span_bytes <= JUDGED_BODY_BYTES_MAX
    is_worse = is_judged and growth > GROWTH_MAX[tool]
    return (f"{row.name}: {value:.1f} {tool} per request, baseline {expected:.1f}, {growth:+.1%}"
            f"{' TOO MUCH' if is_worse else ''}"), is_worse


def read_arguments():
    parser = argparse.ArgumentParser(description="Instructions and system calls per request.")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where bench_load is")
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--spanflame", type=pathlib.Path, help="the release build of the daemon")
    system.add_argument("--relay", action="store_true", help="the relay instead; nothing can fail")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--update", action="store_true", help="write the baseline")
    parser.add_argument("--only", default="", help="workloads, by name, with commas")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    gate = Gate(arguments)
    stored = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    is_comparable = stored.get("conditions") == conditions() and not arguments.relay
    if not is_comparable and not arguments.update:
        print(f"The baseline is for {stored.get('conditions', 'nothing yet')}; this is "
              f"{conditions()}: nothing is judged.")
    baseline = stored.get("workloads", {}) if is_comparable else {}
    measured = dict(baseline)
    failures = 0
    for row in workloads():
        if arguments.only and row.name not in arguments.only.split(","):
            continue
        measured[row.name] = {}
        for tool in TOOLS:
            if shutil.which(TOOLS[tool][0]("")[0]) is None:
                print(f"{row.name}: SKIPPED, {TOOLS[tool][0]('')[0]} is not installed")
                continue
            value = gate.per_request(row, tool)
            line, is_worse = compare(row, tool, value, baseline)
            print(line, flush=True)
            measured[row.name][tool] = round(value, 1)
            failures += is_worse
    if arguments.update and not arguments.relay:
        stored = {"conditions": conditions(), "workloads": measured}
        BASELINE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        return 0
    return 1 if failures else 0


if __name__ == "__main__":
    # Whatever ends us, the processes that we started end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"instructions.py: {error}")
