#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point down: a folder may include the folders below it in FLOORS and itself.

Modules (a .c file and its header) do not include each other in a circle. `check_includes.py --picture` prints the floors for docs/architecture.md; without
arguments it prints every breach, compares the page, and fails if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/architecture.md"
BEGIN, END = "<!-- floors: begin -->\n", "<!-- floors: end -->\n"

# From the ground up.
FLOORS = (
    ("src/base", "memory, bytes, time, the event loop, logs, counters"),
    ("src/follow", "files that grow: patterns, what was read of each, their lines"),
    ("src/core", "what flows: batches, receipts, the ledger; the contract of components"),
    ("src/journal", "requests on disk until they are delivered"),
    ("src/codec", "gzip, zlib, deflate, zstd, snappy, lz4"),
    ("src/config", "YAML to checked structs, by option tables"),
    ("src/config/shared", "option tables that several components have: tls, sending_queue, retry"),
    ("src/net/socket", "addresses and listeners"),
    ("src/net/tls", "TLS over libssl"),
    ("src/net/syntax", "URLs, paths, media types, status codes: pure functions"),
    ("src/net/server", "HTTP/1.1, HTTP/2 and gRPC, accepted"),
    ("src/net/client", "HTTP/1.1, HTTP/2 and gRPC, sent"),
    ("src/otlp", "OTLP as bytes: check, split, merge"),
    ("src/otlp/json", "OTLP/JSON both ways"),
    ("src/otlp/attributes", "edits of attributes"),
    ("src/otlp/metrics", "metrics and their data points, read one at a time"),
    ("src/ottl", "OTTL: statements over encoded OTLP"),
    ("src/ottl/functions", "OTTL's editors and converters"),
    ("src/prometheus", "names, expositions and relabeling as Prometheus has them"),
    ("src/thrift", "Thrift's binary protocol"),
    ("src/zipkin", "what Zipkin's clients send"),
    ("src/jaeger", "what Jaeger's clients send"),
    ("src/profiles/otlp", "OTLP profiles in every layout: check, merge, split, limit"),
    ("src/profiles/pprof", "pprof both ways"),
    ("src/profiles/pyroscope", "what Pyroscope's clients send"),
    ("src/otlp/text", "telemetry as text, for debug"),
    ("src/pipeline", "how components become pipelines; queues, batching, retries"),
    ("src/join", "the join: its settings"),
    ("src/join/index", "the join: what is known of spans and processes"),
    ("src/join/spans", "the join: reading and marking spans"),
    ("src/join/profiles", "the join: reading and rewriting profiles"),
    ("src/records", "edits of spans, log records and data points"),
    ("src/listen", "what components with servers share: addresses, TLS, CORS, logins"),
    ("src/service", "builds, starts, reloads and stops it all; its own telemetry"),
    ("src/explore", "what the explore page shows: kept traces and profiles, and answers about them"),
    ("receivers/shared", "what receivers share"),
    ("receivers/scrape", "what receivers that scrape share: targets and how they are asked"),
    ("receivers", "nop"),
    ("receivers/otlp", "otlp: gRPC, HTTP, JSON"),
    ("receivers/otlp_json_file", "otlp_json_file"),
    ("receivers/pyroscope", "pyroscope: push and /ingest"),
    ("receivers/prometheus", "prometheus: scrapes targets"),
    ("receivers/pprof", "pprof: scrapes profiles"),
    ("receivers/zipkin", "zipkin"),
    ("receivers/jaeger", "jaeger: gRPC, Thrift over HTTP and UDP"),
    ("connectors/shared", "what connectors share"),
    ("connectors/span_metrics", "span_metrics"),
    ("connectors", "forward"),
    ("connectors/exceptions", "exceptions: counted and logged"),
    ("connectors/count", "count: records that conditions hold for, counted"),
    ("connectors/profile_metrics", "profile_metrics: what samples measure, as metrics"),
    ("connectors/routing", "routing: items to pipelines by conditions"),
    ("connectors/service_graph", "service_graph: requests between services, counted and timed"),
    ("processors/shared", "what processors share"),
    ("processors", "attributes, batch, filter, memory_limiter, profile_limits, resource, transform"),
    ("processors/resource_detection", "resource_detection"),
    ("processors/tail_sampling", "tail_sampling"),
    ("processors/trace_profile_join", "trace_profile_join"),
    ("exporters/shared", "what exporters share"),
    ("exporters/pyroscope", "pyroscope: push, ingest and OTLP"),
    ("exporters/prometheus", "prometheus"),
    ("exporters/prometheus_remote_write", "prometheus_remote_write"),
    ("exporters/zipkin", "zipkin"),
    ("exporters/otlp_http", "otlp_http"),
    ("exporters/otlp_grpc", "otlp_grpc"),
    ("exporters/file", "file"),
    ("exporters", "debug, explore, nop"),
    ("extensions/explore", "explore: the page and its data"),
    ("extensions", "health_check, zpages, pprof, authenticators, file_storage"),
    ("src/cli/arguments", "verbs and flags of commands that have verbs"),
    ("src/cli/profile", "spanflame profile: show, convert, merge, diff"),
    ("src/cli/journal", "spanflame journal: list, verify, export"),
    ("src/cli/explore", "spanflame traces and spanflame flame: asks a running daemon"),
    ("src/cli", "the command line"),
)
ORDER = {folder: number for number, (folder, _) in enumerate(FLOORS)}
# Components know the floors below them and nothing of each other.
COMPONENTS = ("receivers", "processors", "exporters", "connectors", "extensions")
SHARED = (
    "connectors/shared", "exporters/shared", "exporters/pyroscope", "processors/shared", "receivers/scrape", "receivers/shared"
)
INCLUDE = re.compile(r'^#\s*include\s+"([^"]+)"', re.M)
OURS = re.compile(r"^(src|receivers|processors|exporters|connectors|extensions|tests)/")


def sources():
    for top in ("src", *COMPONENTS):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".c", ".h", ".cc", ".def"):
                yield path.relative_to(ROOT)


def breach(source, included):
    """Why the file at `source` may not include `included`; None when it may."""
    here, there = source.parent.as_posix(), included.rpartition("/")[0]
    if not OURS.match(included) or here == there:
        return None
    if included.endswith(".c"):
        return "a source file is never included"
    for folder in (here, there):
        if folder not in ORDER:
            return f"{folder} has no floor yet: add it to FLOORS"
    if ORDER[there] > ORDER[here]:
        return f"{there} is above {here}"
    if there.split("/")[0] in COMPONENTS and there not in SHARED and not here.startswith("src/cli"):
        return "components have no headers that others use"
    return None


def circles(edges):
    """Groups of modules of which each reaches each other (Tarjan's algorithm)."""
    numbers, lows, stack, found = {}, {}, [], []

    def visit(module):
        numbers[module] = lows[module] = len(numbers)
        stack.append(module)
        for other in sorted(edges.get(module, ())):
            if other not in numbers:
                visit(other)
            if other in stack:
                lows[module] = min(lows[module], lows[other])
        if lows[module] == numbers[module]:
            group = []
            while not group or group[-1] != module:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for module in sorted(edges):
        if module not in numbers:
            visit(module)
    return found


def picture():
    width = max(len(folder) for folder, _ in FLOORS)
    lines = [f"{folder:<{width}}  {what}" for folder, what in reversed(FLOORS)]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def main():
    if sys.argv[1:] == ["--picture"]:
        print(picture(), end="")
        return 0
    files = breaches = 0
    edges = {}
    for source in sources():
        files += 1
        text = (ROOT / source).read_text(encoding="utf-8")
        module = source.with_suffix("").as_posix()
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            reason = breach(source, included)
            if reason:
                breaches += 1
                line = text.count("\n", 0, match.start()) + 1
                print(f'{source}:{line}: includes "{included}": {reason}')
            other = included.rpartition(".")[0]
            if OURS.match(included) and other != module:
                edges.setdefault(module, set()).add(other)
    for group in circles(edges):
        breaches += 1
        print("modules that include each other in a circle: " + ", ".join(group))
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    if BEGIN + picture() + END not in page:
        breaches += 1
        print(f"{PAGE}: the floors are not those of tests/check_includes.py; "
              "print them with --picture")
    print(f"{files} files, {breaches} breaches")
    return 1 if breaches or not files else 0


if __name__ == "__main__":
    sys.exit(main())
