# SPDX-License-Identifier: Apache-2.0
"""The same requests to spanflame and to the real Go collector."""

from dataclasses import dataclass
from typing import Any, Callable

from . import peers
from .case import Case


@dataclass
class Question:
    """`ask(server)` gives what can be compared. `go` is the collector's result where we differ on
    purpose; `why` then says so."""

    name: str
    ask: Callable
    expected: Any
    go: Any = None
    why: str = ""

    def __post_init__(self):
        if (self.go is None) != (not self.why):
            raise ValueError(f"{self.name}: a difference needs the collector's result and a reason")


class SideBySide(Case):
    """Subclasses make servers with start(executable) and list questions()."""

    def start(self, executable):
        raise NotImplementedError

    def questions(self):
        raise NotImplementedError

    def test_spanflame_responds_as_the_table_says(self):
        server = self.start(None)
        for question in self.questions():
            with self.subTest(question.name):
                self.assertEqual(question.ask(server), question.expected)
        self._stop_cleanly(server)

    def test_go_collector_responds_as_the_table_says(self):
        executable = peers.otelcol()
        server = self.start(executable)
        for question in self.questions():
            with self.subTest(question.name):
                expected = question.expected if question.go is None else question.go
                self.assertEqual(question.ask(server), expected)
