# SPDX-License-Identifier: Apache-2.0
"""Queries to a real Pyroscope server at PYROSCOPE_URL."""

import json
import os
import time
import unittest
import urllib.error
import urllib.request

from . import process

STORED_WITHIN_S = 60
ASK_WITHIN_S = 30
HOUR_MS = 3600 * 1000


def need():
    """The server's URL; skips the test where there is none."""
    url = os.environ.get("PYROSCOPE_URL", "")
    if not url:
        raise unittest.SkipTest("PYROSCOPE_URL names no Pyroscope server to try against")
    return url.rstrip("/")


def _own_times(response):
    graph = response.get("flamegraph", {})
    names = graph.get("names", [])
    found = {}
    for level in graph.get("levels", []):
        numbers = [int(number) for number in level.get("values", [])]
        for i in range(0, len(numbers), 4):
            _, _, own, name = numbers[i : i + 4]
            if own:
                found[names[name]] = found.get(names[name], 0) + own
    return found


class Pyroscope:
    """One server's query side. Times are the hour that ends now."""

    def __init__(self, url):
        self.url = url

    def ask(self, call, **fields):
        now = int(time.time() * 1000)
        body = {"start": now - HOUR_MS, "end": now + HOUR_MS // 60, **fields}
        request = urllib.request.Request(
            f"{self.url}/querier.v1.QuerierService/{call}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Accept": "*/*;allow-utf8-labelnames=true"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ASK_WITHIN_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{call} {fields}: {error.code} {error.read().decode()}")

    def types(self, selector):
        """The profile types of the series that the selector names."""
        labels = self.ask("Series", matchers=[selector], labelNames=["__profile_type__"])
        return sorted(
            {
                label["value"]
                for series in labels.get("labelsSet", [])
                for label in series.get("labels", [])
            }
        )

    def series(self, selector, names):
        """The values of these labels, one tuple per series."""
        response = self.ask("Series", matchers=[selector], labelNames=list(names))
        rows = []
        for one in response.get("labelsSet", []):
            values = {label["name"]: label["value"] for label in one.get("labels", [])}
            rows.append(tuple(values.get(name) for name in names))
        return sorted(rows, key=str)

    def all_types(self):
        """The profile types that the server has, of whatever service."""
        return {one["ID"] for one in self.ask("ProfileTypes").get("profileTypes", [])}

    def functions(self, kind, selector, **more):
        """What each function took by itself, from a flame graph."""
        fields = {"profileTypeID": kind, "labelSelector": selector, **more}
        return _own_times(self.ask("SelectMergeStacktraces", **fields))

    def span_profile(self, kind, selector, spans):
        """The same of some spans, as Grafana asks beside a trace."""
        fields = {"profileTypeID": kind, "labelSelector": selector, "spanSelector": spans}
        return _own_times(self.ask("SelectMergeSpanProfile", **fields))

    def totals(self, kind, selector, label):
        """What the profiles add up to, by a label's value."""
        fields = {"profileTypeID": kind, "labelSelector": selector, "groupBy": [label]}
        response = self.ask("SelectSeries", step=HOUR_MS // 1000, **fields)
        return {
            one["labels"][0]["value"]: sum(point["value"] for point in one["points"])
            for one in response.get("series", [])
        }

    def wait_for(self, kind, selector, total, **more):
        """Until the flame graph has this total: a push is visible a moment after its response."""
        found = {}

        def is_stored():
            found.clear()
            found.update(self.functions(kind, selector, **more))
            return sum(found.values()) >= total

        process.poll_until(is_stored, STORED_WITHIN_S, f"{total} of {kind} {selector} {more}")
        return dict(found)
