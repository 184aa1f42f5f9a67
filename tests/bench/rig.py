# SPDX-License-Identifier: Apache-2.0
"""The moving parts of the benchmark: pinned processes, their cost as the kernel counts it, one
fixed piece of work with its correctness gate, and the arithmetic of paired rounds."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import time
from dataclasses import dataclass

HOST = "127.0.0.1"
CPU_CLOCK = 2  # CPUCLOCK_SCHED of all threads of a process
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))
SUT_CORE = CORES[0]
RIG_CORE = CORES[-1]


class BenchError(Exception):
    """What went wrong, for the person at the terminal."""


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    """(user, system) of a process with its threads and the children that it has waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    utime, _, cutime, cstime = (int(field) for field in fields[11:15])
    # The ticks are coarse; the sum is known to the nanosecond by the process's own clock, whose
    # number is made of the pid as clock_getcpuclockid() does.
    user = (utime + cutime) / TICKS_PER_S
    total = time.clock_gettime(~pid << 3 | CPU_CLOCK) + (cutime + cstime) / TICKS_PER_S
    return user, total - user


def memory_kib(pid, key):
    """A line of /proc/PID/status, such as VmRSS, VmHWM or RssAnon."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    raise BenchError(f"/proc/{pid}/status has no {key}")


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


class Process:
    """A program pinned to cores that listens on a port when it is ready."""

    def __init__(self, argv, port, cores, log_path):
        self.argv = [str(argument) for argument in argv]
        self.port = port
        with open(log_path, "w", encoding="utf-8") as log:
            started = time.monotonic()
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.log_path = log_path
        self.pid = self.child.pid
        self._wait_ready()
        self.ready_s = time.monotonic() - started

    def _wait_ready(self):
        deadline = time.monotonic() + 20
        while not is_listening(self.port):
            if self.child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                with open(self.log_path, encoding="utf-8", errors="replace") as log:
                    raise BenchError(f"{' '.join(self.argv)} does not listen on port {self.port}:\n"
                                     f"{log.read()[-2000:]}")
            time.sleep(0.0005)

    def cpu(self):
        return cpu_seconds(self.pid)

    def memory(self, key):
        return memory_kib(self.pid, key)

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(timeout=40)
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class Sink(Process):
    """bench_sink, and its control requests."""

    def __init__(self, tools, work, *options):
        self.port = free_port()
        self.notes_ids = "--spans-max" in options
        argv = [tools / "bench_sink", "--port", self.port, *options]
        super().__init__(argv, self.port, {RIG_CORE}, work / "sink.log")

    def control(self, verb):
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            connection.request("GET", f"/{verb}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def await_spans(self, spans, seconds):
        """The figures once so many spans have come, or when that takes too long."""
        deadline = time.monotonic() + seconds
        while True:
            stats = self.control("stats")
            if stats["spans"] >= spans or time.monotonic() > deadline:
                return stats
            time.sleep(0.02)


def run_load(tools, port, arguments):
    """bench_load to its end; what it printed."""
    argv = [str(tools / "bench_load"), "--port", str(port), *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, {RIG_CORE}))
    if not done.stdout:
        raise BenchError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Contender:
    """A system under test in one row of the table."""

    process: Process
    scenario: object
    divisor: int = 1  # of the round's work, for slow ones
    keeps_bytes: bool = True  # the Go collector writes every span anew, two bytes longer
    is_relay: bool = False  # it neither edits nor joins
    folder: object = None  # of bodies that were made before

    def requests(self, requests):
        return max(requests // self.divisor, 1)

    def load(self, tools, requests):
        return run_load(tools, self.process.port,
                        [*self.scenario.load_arguments(self.folder), "--requests", requests])


def check_proofs(scenario, requests, got):
    """Was the work of this row done? A system that does nothing must not look fast."""
    return [f"the sink found {text!r} {found} times in {requests} requests, not {count * requests}"
            for (text, count), found in zip(scenario.proofs.items(), got["found"])
            if found != count * requests]


def check_delivery(contender, sink, sent, got):
    """The correctness gate: every request got OK and arrived once, and nothing else did."""
    scenario = contender.scenario
    wrong = []
    expected = {"spans": sent["spans"], "ids_sum": sent["ids_sum"], "malformed": 0, "unknown": 0}
    if sink.notes_ids:
        expected |= {"unique": sent["spans"], "duplicates": 0}
    if scenario.keeps_bytes and contender.keeps_bytes:
        expected["body_bytes"] = sent["body_bytes"]
    if not contender.is_relay:
        wrong += check_proofs(scenario, sent["requests"], got)
    if scenario.batches and sent["requests"] > 1000 and got["requests"] * 2 > sent["requests"]:
        wrong.append(f"{sent['requests']} requests came in {got['requests']}: none was batched")
    if scenario.coding_out and got["wire_bytes"] >= got["body_bytes"]:
        wrong.append("the bodies came uncompressed")
    if sent["ok"] != sent["requests"]:
        wrong.append(f"{sent['ok']} of {sent['requests']} requests got OK")
    wrong += [f"{key}: sent {value}, the sink has {got[key]}"
              for key, value in expected.items() if got[key] != value]
    return wrong


def one_round(tools, contender, sink, requests):
    """Fixed work through one system; its cost per span and whether all arrived."""
    sut, scenario = contender.process, contender.scenario
    before_sink = sink.control("reset")
    user_before, system_before = sut.cpu()
    sent = contender.load(tools, requests)
    got = sink.await_spans(sent["spans"], 20)
    user_after, system_after = sut.cpu()
    user, system = user_after - user_before, system_after - system_before
    items = sent["requests"] * scenario.items
    return {
        "us_per_item": (user + system) * 1e6 / items,
        "user_us_per_item": user * 1e6 / items,
        "ns_per_byte": (user + system) * 1e9 / sent["body_bytes"],
        "spans_per_s": sent["spans"] / sent["seconds"],
        "sut_load": (user + system) / sent["seconds"],
        "generator_load": sent["cpu_ns"] / 1e9 / sent["seconds"],
        "sink_load": (got["cpu_ns"] - before_sink["cpu_ns"]) / 1e9 / sent["seconds"],
        "latency_ms": sent["latency_ms"],
        "wrong": check_delivery(contender, sink, sent, got),
    }


def bootstrap(values, repetitions=2000):
    """Median, and its bootstrap 95 % interval."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values)))
                     for _ in range(repetitions))
    return {
        "median": statistics.median(values),
        "low": medians[int(repetitions * 0.025)],
        "high": medians[int(repetitions * 0.975) - 1],
    }
