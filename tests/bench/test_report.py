#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's verdicts: a row whose work was not done is void, a missed bound is shown."""

import dataclasses
import types
import unittest

import report
from rig import Contender, check_delivery
from scenarios import SCENARIOS

SENT = {"requests": 10, "ok": 10, "spans": 10000, "ids_sum": "1", "body_bytes": 5000}
GOT = {"requests": 10, "spans": 10000, "ids_sum": "1", "malformed": 0, "unknown": 0, "unique": 10000,
       "duplicates": 0, "body_bytes": 5000, "wire_bytes": 5100, "found": [0, 0, 0, 0]}
SINK = types.SimpleNamespace(notes_ids=True)


def wrong(name, is_relay=False, changes=None, sent=None):
    """What the gate says of this row."""
    row = next(row for row in SCENARIOS if row.name == name)
    contender = Contender(None, row, is_relay=is_relay)
    return check_delivery(contender, SINK, SENT | (sent or {}), GOT | (changes or {}))


class Gate(unittest.TestCase):
    def test_what_arrived_as_it_was_sent_passes(self):
        self.assertEqual(wrong("grpc"), [])

    def test_lost_spans_and_other_bytes_do_not(self):
        for changes in ({"spans": 9999}, {"ids_sum": "2"}, {"duplicates": 1}, {"body_bytes": 4999},
                        {"malformed": 1}):
            self.assertTrue(wrong("grpc", changes=changes), changes)
        self.assertTrue(wrong("grpc", sent={"ok": 9}))

    def test_an_edit_that_does_nothing_fails(self):
        self.assertEqual(wrong("edit", changes={"found": [10, 10, 0, 0]}), [])
        for found in ([0, 10, 0, 0], [10, 0, 0, 0], [10, 10, 10, 0], [9, 10, 0, 0]):
            self.assertTrue(wrong("edit", changes={"found": found}), found)

    def test_the_relay_edits_nothing(self):
        self.assertEqual(wrong("edit", is_relay=True), [])

    def test_a_join_that_does_nothing_fails(self):
        self.assertEqual(wrong("join-marks", changes={"found": [1250, 0, 0, 0]}), [])
        self.assertTrue(wrong("join-marks"))
        self.assertTrue(wrong("join-spans", changes={"found": [1, 0, 0, 0]}))
        self.assertTrue(wrong("join-profiles"))

    def test_a_batch_of_one_request_is_none(self):
        sent = {"requests": 5000, "ok": 5000}
        self.assertTrue(wrong("single", changes={"requests": 5000}, sent=sent))
        self.assertEqual(wrong("single", changes={"requests": 50}, sent=sent), [])

    def test_bodies_that_come_uncompressed_fail(self):
        self.assertEqual(wrong("gzip", changes={"wire_bytes": 900}), [])
        self.assertTrue(wrong("gzip"))


def result(**changes):
    system = {"us_per_item": 0.5, "ns_per_byte": 1, "peak_rss_kib": 1024, "generator_load": 0.1,
              "sink_load": 0.1, "ratio": {"median": 2, "low": 1, "high": 3}}
    return {"name": "grpc", "title": "a row", "wrong": [], "target": "≤ 1", "is_met": True,
            "systems": {"relay": system, "spanflame": system}} | changes


class Report(unittest.TestCase):
    def verdict(self, row):
        return dict(zip(report.HEADINGS, report.table_row(row)))["met"]

    def test_every_row_says_whether_its_bound_is_met(self):
        self.assertEqual(self.verdict(result()), "yes")
        self.assertEqual(self.verdict(result(is_met=False)), "**no**")
        self.assertEqual(report.summary_row(result(is_met=False))[3], "**no**")

    def page(self, results, *names):
        marks = [f"<!-- {name}:begin (x) -->\nold\n<!-- {name}:end -->\nkept\n" for name in names]
        return report.with_figures("".join(marks), {"commit": "1", "conditions": ""} | results)

    def test_a_void_row_is_marked_with_its_reason(self):
        row = result(wrong=["spanflame: none was batched"])
        self.assertEqual(self.verdict(row), "**void**")
        made = self.page({"rows": [row], "figures": []}, "rows", "summary")
        self.assertIn("- **void**, a row: spanflame: none was batched", made)
        self.assertIn("| ≤ 1 | **void** | – | 1 | – |", made)
        self.assertNotIn("old", made)
        self.assertEqual(made.count("kept"), 2)

    def test_a_page_without_marks_or_with_unknown_ones_is_refused(self):
        for text in ("nothing", "<!-- other:begin -->\n<!-- other:end -->",
                     "<!-- rows:begin -->\n<!-- figures:end -->"):
            with self.assertRaises(SystemExit):
                report.with_figures(text, {"rows": [], "figures": []})

    def test_the_summary_shows_missed_bounds(self):
        self.assertGreaterEqual(len(report.SUMMARY_ROWS), 6)
        self.assertLessEqual(set(report.SUMMARY_ROWS), {row.name for row in SCENARIOS})
        made = self.page({"rows": [result(), result(is_met=False)], "figures": []}, "summary")
        self.assertIn("1 of all 2 rows miss their bound", made)

    def test_a_figure_is_met_missed_or_void(self):
        base = {"title": "t", "text": "x", "required": "y", "is_met": True, "is_sound": True}
        lines = report.figure_table([base, base | {"is_met": False}, base | {"is_sound": False}])
        self.assertEqual(lines[2:], ["| t | x | y | yes |", "| t | x | y | **no** |",
                                     "| t | x | y | **void** |"])


class Rows(unittest.TestCase):
    def test_each_has_one_bound(self):
        for row in SCENARIOS:
            bounds = [getattr(row, field.name) for field in dataclasses.fields(row)
                      if field.name.endswith("_max")]
            self.assertEqual(sum(bound is not None for bound in bounds), 1, row.name)


if __name__ == "__main__":
    unittest.main()
