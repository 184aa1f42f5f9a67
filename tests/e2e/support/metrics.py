# SPDX-License-Identifier: Apache-2.0
"""The daemon's own metrics, read as Prometheus reads them."""

import re

from . import client

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.M)


class Metrics:
    """One scrape."""

    def __init__(self, port):
        response = client.get(port, "/metrics")
        assert response.status == 200, response
        self.content_type = response.headers["content-type"]
        text = response.body.decode()
        self.types = dict(TYPE.findall(text))
        self.samples = []
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                self.samples.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def names(self):
        return {name for name, _, _ in self.samples}

    def sum(self, name, **labels):
        """Over all series that have these labels; 0 when there are none."""
        return sum(
            value
            for sample, found, value in self.samples
            if sample == name and labels.items() <= found.items()
        )

    def has(self, name, **labels):
        return any(
            sample == name and labels.items() <= found.items() for sample, found, _ in self.samples
        )

    def conservation(self, signal):
        """(received, delivered, rejected, dropped, in flight); the first is the others' sum."""
        parts = ("received", "delivered", "rejected", "dropped", "in_flight")
        return tuple(int(self.sum(f"spanflame_items_{part}", signal=signal)) for part in parts)


def assert_conserved(test, port, signal):
    """received = delivered + rejected + dropped + in flight; returns the five."""
    figures = Metrics(port).conservation(signal)
    test.assertEqual(figures[0], sum(figures[1:]), f"{signal}: {figures}")
    return figures
