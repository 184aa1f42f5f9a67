#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A soak of the explore page: spans at a steady rate, the page's questions all the while, and, where
the peer `browser` is built, the page itself open in Chromium. Fails if memory grows in the last third
of the time, in which the store must be full, if an answer is late, or if spans are not kept.

usage: soak_explore.py --spanflame FILE [--seconds 600] [--rate 5000] [--max-bytes 67108864]
    [--browser]
With --browser: the Python of the peers (build-peers/python/venv/bin/python), SPANFLAME_PEERS set."""

import argparse
import http.client
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

E2E = pathlib.Path(__file__).resolve().parent.parent / "e2e"
sys.path.insert(0, str(E2E))
from support.ports import free_port  # noqa: E402

SPANS = 250  # of a request
SPANS_PER_TRACE = 10
LATE_S = 5.0
GROWTH_MAX = 1.10


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed64(number, value):
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def attribute(key, value):
    return field(9, field(1, key.encode()) + field(2, field(1, value.encode())))


def request():
    """Spans of some 672 bytes, ten to a trace."""
    now = time.time_ns()
    spans = b""
    for i in range(SPANS):
        if i % SPANS_PER_TRACE == 0:
            trace, root = random.randbytes(16), random.randbytes(8)
        span = field(1, trace) + field(2, root if i % SPANS_PER_TRACE == 0 else random.randbytes(8))
        if i % SPANS_PER_TRACE:
            span += field(4, root)
        span += field(5, f"operation {i % 40}".encode()) + fixed64(7, now) + fixed64(8, now + i * 10000)
        span += attribute("user.id", f"user-{random.randrange(100000)}")
        span += attribute("url.query", random.randbytes(40).hex())
        span += attribute("http.route", "/api/v2/orders/{order}/items" * 12)
        spans += field(2, span)
    resource = field(1, field(1, b"service.name") + field(2, field(1, b"soak")))
    return field(1, field(1, resource) + field(2, spans))


def rss_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def ask(port, path):
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/api/v1/{path}", headers={"Host": f"localhost:{port}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status not in (200, 503):
        raise SystemExit(f"{path}: status {answer.status}: {body[:200]!r}")
    return json.loads(body), time.monotonic() - begin, answer.status


def start(spanflame, folder, otlp, page, max_bytes):
    config = pathlib.Path(folder) / "config.yaml"
    config.write_text(
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{otlp}\n"
        "exporters:\n  explore:\n"
        f"extensions:\n  explore:\n    endpoint: localhost:{page}\n    max_bytes: {max_bytes}\n"
        "service:\n  extensions: [explore]\n  telemetry: {metrics: {level: none}}\n  pipelines:\n"
        "    traces:\n      receivers: [otlp]\n      exporters: [explore]\n",
        encoding="utf-8",
    )
    daemon = subprocess.Popen([spanflame, f"--config={config}"], stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            ask(page, "status")
            return daemon
        except OSError:
            time.sleep(0.05)
    daemon.terminate()
    raise SystemExit("the daemon does not answer")


def soak(arguments, daemon, otlp, page):
    sizes, slowest, sent, refused = [], {}, 0, 0
    begin = report = time.monotonic()
    sender = http.client.HTTPConnection("127.0.0.1", otlp, timeout=30)
    questions = ["status", "traces?limit=50", "services", "scatter", "traces?attr=user.id%3Duser-7"]
    asked = 0
    while (passed := time.monotonic() - begin) < arguments.seconds:
        if sent < passed * arguments.rate:
            sender.request("POST", "/v1/traces", request(), {"Content-Type": "application/x-protobuf"})
            answer = sender.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"a request was answered with {answer.status}")
            sent += SPANS
        else:
            time.sleep(0.005)
        if passed > asked:
            path = questions[asked % len(questions)]
            _, seconds, status = ask(page, path)
            refused += status == 503
            slowest[path] = max(slowest.get(path, 0), seconds)
            sizes.append(rss_mib(daemon.pid))
            asked += 1
        if time.monotonic() - report > 30:
            report = time.monotonic()
            status = ask(page, "status")[0]
            print(f"{passed:6.0f} s  {sent} sent, {status['spans']} spans kept, RSS {sizes[-1]:.0f} MiB, "
                  f"not kept {status['notKept']}", flush=True)
    return sizes, slowest, sent, refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spanflame", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--max-bytes", type=int, default=64 * 2**20)
    parser.add_argument("--browser", action="store_true")
    arguments = parser.parse_args()
    otlp, page = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(arguments.spanflame, folder, otlp, page, arguments.max_bytes)
        browser = None
        try:
            if arguments.browser:
                from support.browser import Browser

                browser = Browser()
                browser.open(f"http://localhost:{page}/#/traces")
            sizes, slowest, sent, refused = soak(arguments, daemon, otlp, page)
            status = ask(page, "status")[0]
            if browser:
                browser.until("the list", "return document.querySelector('.traces tbody tr')")
        finally:
            if browser:
                browser.close()
            daemon.terminate()
            daemon.wait(30)
    third = max(1, len(sizes) // 3)
    middle, last = max(sizes[third:-third] or sizes), max(sizes[-third:])
    lost = sum(status["notKept"].values())
    print(f"{sent} spans sent, {lost} not kept; RSS at most {middle:.0f} MiB in the middle, {last:.0f} MiB at the "
          f"end; answers at most {max(slowest.values()) * 1000:.0f} ms, {refused} refused")
    is_full = status["evictedTraces"] > 0
    failures = [
        not is_full and "the store is not full yet: take a longer time, or fewer --max-bytes",
        last > GROWTH_MAX * middle and "memory grows",
        max(slowest.values()) > LATE_S and "an answer was late",
        lost > 0.01 * sent and "spans were not kept",
    ]
    print("\n".join(f"FAILED: {one}" for one in failures if one) or "ok")
    return 1 if any(failures) else 0


if __name__ == "__main__":
    os.environ.setdefault("SPANFLAME_PEERS", str(E2E.parent.parent / "build-peers"))
    sys.exit(main())
