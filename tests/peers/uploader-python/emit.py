# SPDX-License-Identifier: Apache-2.0
"""Works for a while under Pyroscope's Python SDK, inside a span, and uploads what it saw.

Usage: emit.py ENDPOINT SERVICE SECONDS
"""

import sys
import time

import pyroscope

SPAN = {"span_id": "051a1b6c441acd00", "trace_id": "5b8aa5a2d2c872e8321cf37308d69df2"}


def work(until):
    total = 0
    while time.time() < until:
        total += sum(range(1000))
    return total


endpoint, service, seconds = sys.argv[1:]
pyroscope.configure(
    application_name=service, server_address=endpoint, tags={"region": "eu"}, sample_rate=100
)
with pyroscope.tag_wrapper(SPAN):
    work(time.time() + float(seconds))
pyroscope.shutdown()
