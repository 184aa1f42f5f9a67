# SPDX-License-Identifier: Apache-2.0
"""Request bodies that are made before a row runs, each in a file whose name is its weight, which is
what the sink must find in it (span_ids.h): OTLP/JSON, zstd, pprof in Pyroscope's Push requests, and
OTLP profiles that name spans of bench_load."""

import gzip
import itertools
import json
import random
import struct
import subprocess
import time

BODIES = 4
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

PPROF_SAMPLES = 1000
OTLP_SAMPLES = 5000
SAMPLES_PER_LINK = 4
# Spans that the profiles name; with `late`, those from KNOWN_SPANS on, which never come, too.
LATE_SPANS = 49500
KNOWN_SPANS = 47000
FUNCTIONS = 2000
DEPTHS = (10, 28)
SERVICE = "checkout"  # as in payload.c


def span_id_of(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & MASK
    return number ^ number >> 31


def weight(number):
    number = number * GOLDEN & MASK
    return number ^ number >> 29


def pseudo_random(seed):
    return span_id_of((seed * GOLDEN + 1) & MASK)


# protobuf


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(field, value):
    return varint(field << 3) + varint(value)


def fixed_field(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def bytes_field(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed_field(field, values):
    return bytes_field(field, b"".join(map(varint, values)))


def read_varint(data, at):
    value = shift = 0
    while data[at] >= 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def read_fields(data):
    """Pairs of number and value: an int, or the bytes of a fixed64 or of what has a length."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = (8, at) if tag & 7 == 1 else read_varint(data, at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


# Traces


ANY_VALUE = {1: ("stringValue", bytes.decode), 3: ("intValue", str)}
PAIR = {1: ("key", bytes.decode), 2: ("value", ANY_VALUE)}
SPAN = {
    1: ("traceId", bytes.hex), 2: ("spanId", bytes.hex), 4: ("parentSpanId", bytes.hex),
    5: ("name", bytes.decode), 6: ("kind", int), 9: ("attributes", [PAIR]),
    7: ("startTimeUnixNano", lambda value: str(int.from_bytes(value, "little"))),
    8: ("endTimeUnixNano", lambda value: str(int.from_bytes(value, "little"))),
}
SCOPE_SPANS = {1: ("scope", {1: ("name", bytes.decode)}), 2: ("spans", [SPAN])}
RESOURCE_SPANS = {1: ("resource", {1: ("attributes", [PAIR])}), 2: ("scopeSpans", [SCOPE_SPANS])}
TRACES = {1: ("resourceSpans", [RESOURCE_SPANS])}


def as_json(message, schema):
    """As SDKs write it; the schema has only what payload.c makes."""
    found = {}
    for field, value in read_fields(message):
        name, kind = schema[field]
        if isinstance(kind, list):
            found.setdefault(name, []).append(as_json(value, kind[0]))
        else:
            found[name] = as_json(value, kind) if isinstance(kind, dict) else kind(value)
    return found


def spans(tools, scenario, *options):
    """Pairs of weight and request, as bench_payload writes it with these options."""
    for first in range(1, BODIES * scenario.spans, scenario.spans):
        argv = [tools / "bench_payload", "--spans", scenario.spans, "--first", first,
                "--span-bytes", scenario.span_bytes, *options]
        body = subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE).stdout
        numbers = range(first, first + scenario.spans)
        yield sum(weight(span_id_of(number)) for number in numbers), body


def json_spans(tools, scenario):
    for total, body in spans(tools, scenario):
        text = json.dumps(as_json(body, TRACES), separators=(",", ":"))
        yield total, text.encode()


def zstd_spans(tools, scenario):
    return spans(tools, scenario, "--zstd")


# Profiles


def function_name(number):
    return f"com.example.module{number % 37}.Class.method_{number}"


def stacks(chance, count):
    """Lists of functions, each a number from 1."""
    return [chance.choices(range(1, FUNCTIONS + 1), k=chance.randint(*DEPTHS))
            for _ in range(count)]


def pprof(chance, values):
    texts = ["", "cpu", "nanoseconds", *map(function_name, range(1, FUNCTIONS + 1))]
    kind = number_field(1, 1) + number_field(2, 2)
    parts = [bytes_field(1, kind)]
    for stack, value in zip(stacks(chance, len(values)), values):
        parts.append(bytes_field(2, packed_field(1, stack) + packed_field(2, [value])))
    for number in range(1, FUNCTIONS + 1):
        line = number_field(1, number) + number_field(2, number % 900 + 1)
        parts.append(bytes_field(4, number_field(1, number) + bytes_field(4, line)))
        parts.append(bytes_field(5, number_field(1, number) + number_field(2, number + 2)))
    parts += [bytes_field(6, text) for text in texts]
    parts += [number_field(9, time.time_ns()), number_field(10, 10 * 10**9),
              bytes_field(11, kind), number_field(12, 10**7)]
    return b"".join(parts)


def sample_values(chance, count):
    values = [chance.randint(1, 50) * 10**7 for _ in range(count)]
    return values, sum(map(weight, values))


def push_profiles(_tools, _scenario):
    for number in range(BODIES):
        chance = random.Random(number)
        values, total = sample_values(chance, PPROF_SAMPLES)
        labels = {"__name__": "process_cpu", "service_name": SERVICE, "region": "eu-west-1"}
        series = [bytes_field(1, bytes_field(1, name) + bytes_field(2, value))
                  for name, value in labels.items()]
        raw = bytes_field(1, gzip.compress(pprof(chance, values), 6))
        yield total, bytes_field(1, b"".join(series) + bytes_field(2, raw))


def link(number, spans_per_request):
    """Of a span that bench_load makes: the ids of a request's traces repeat, those of spans not."""
    trace = pseudo_random(((number - 1) % spans_per_request + 1) // 8)
    trace_id = struct.pack("<QQ", trace, pseudo_random(trace))
    return bytes_field(1, trace_id) + bytes_field(2, struct.pack("<Q", span_id_of(number)))


def dictionary(chance, links):
    tables = [(1, [b""]), (4, [b"", *links]),
              (2, [b""]), (3, [b""]), (5, ["", "cpu", "nanoseconds"]), (6, [b""]), (7, [b""])]
    for number in range(1, FUNCTIONS + 1):
        line = number_field(1, number) + number_field(2, number % 900 + 1)
        tables += [(2, [number_field(2, 0x400000 + number * 64) + bytes_field(3, line)]),
                   (3, [number_field(1, number + 2)]), (5, [function_name(number)])]
    tables.append((7, [packed_field(1, stack) for stack in stacks(chance, OTLP_SAMPLES // 2)]))
    tables.sort(key=lambda pair: pair[0])  # as every library writes fields
    return b"".join(bytes_field(table, entry) for table, entries in tables for entry in entries)


def otlp_profiles(_tools, scenario):
    for number in range(BODIES):
        chance = random.Random(number)
        values, total = sample_values(chance, OTLP_SAMPLES)
        now = time.time_ns()
        last = LATE_SPANS if scenario.late else KNOWN_SPANS
        named = chance.sample(range(1, last + 1), OTLP_SAMPLES // SAMPLES_PER_LINK)
        links = [link(span, scenario.link_spans) for span in named]
        indices = itertools.count(1)
        kind = number_field(1, 1) + number_field(2, 2)
        parts = [bytes_field(1, kind)]
        for at, value in enumerate(values):
            linked = number_field(3, next(indices)) if at % SAMPLES_PER_LINK == 0 else b""
            stamp = bytes_field(5, struct.pack("<Q", now + at * 10**6))
            stack = number_field(1, 1 + at % (OTLP_SAMPLES // 2))
            parts.append(bytes_field(2, stack + linked + packed_field(4, [value]) + stamp))
        parts += [fixed_field(3, now), number_field(4, 10 * 10**9), bytes_field(5, kind),
                  number_field(6, 10**7)]
        service = bytes_field(1, "service.name") + bytes_field(2, bytes_field(1, SERVICE))
        whole = bytes_field(1, bytes_field(1, service)) + \
            bytes_field(2, bytes_field(2, b"".join(parts)))
        yield total, bytes_field(1, whole) + bytes_field(2, dictionary(chance, links))


MAKERS = {"json": json_spans, "zstd": zstd_spans, "push": push_profiles, "profiles": otlp_profiles}


def make(tools, scenario, folder):
    """Fills the folder with what scenario.bodies names."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for total, body in MAKERS[scenario.bodies](tools, scenario):
        (folder / f"{total & MASK:016x}").write_bytes(body)
