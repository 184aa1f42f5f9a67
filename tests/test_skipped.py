#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Skips are distinguished from passes: by skipped.py, by run-test, by the runner of the end-to-end tests."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import skipped

HERE = pathlib.Path(__file__).resolve().parent
JUNIT = """<testsuite>
<testcase name="a" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" status="run"><system-out>x
SKIPPED: test_one (__main__.Class.test_one): peer go: none
y</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>SKIPPED: no python</system-out></testcase>
<testcase name="d" status="notrun"><skipped message="Fixture dependency failed"/></testcase>
</testsuite>"""


class Skipped(unittest.TestCase):
    def test_what_was_skipped_and_why(self):
        found, ran = skipped.skipped(JUNIT)
        self.assertEqual(ran, 2)
        self.assertEqual(found, [("b", ["test_one: peer go: none"], False),
                                 ("c", ["no python"], True),
                                 ("d", ["Fixture dependency failed"], True)])

    def test_a_cmocka_program_of_which_all_was_skipped_is_skipped(self):
        none, one = "[  PASSED  ] 0 test(s).", "[  PASSED  ] 1 test(s)."
        some = "[  SKIPPED ] 2 test(s), listed below:"
        for lines, code, expected in (((none, some), 0, 77), ((one, some), 0, 0), ((one,), 0, 0),
                                      ((none, some), 3, 3), ((none, some, one), 0, 0)):
            script = "".join(f"echo '{line}'; " for line in lines) + f"exit {code}"
            done = subprocess.run([HERE / "run-test", "sh", "-c", script], capture_output=True)
            self.assertEqual(done.returncode, expected, lines)
            self.assertEqual(done.stdout.decode().splitlines(), list(lines))

    def end_to_end(self, body):
        """The exit code of an end-to-end file with these tests, run without its client libraries."""
        source = (HERE / "e2e" / "support" / "case.py").read_text(encoding="utf-8")
        runner = source[source.index("class Result("):]
        text = (f"import sys, unittest\nSKIPPED = 77\n{runner}\n\n"
                f"class Some(unittest.TestCase):\n{body}\n\nmain()\n")
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "test.py")
            path.write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, path], capture_output=True).returncode

    def test_an_end_to_end_file_of_which_all_was_skipped_is_skipped(self):
        skip = "    def test_a(self):\n        self.skipTest('none')\n"
        run = "    def test_b(self):\n        pass\n"
        fail = "    def test_c(self):\n        self.fail()\n"
        parts = ("    def test_d(self):\n        for i in range(3):\n            with self.subTest(i):\n"
                 "                {}self.skipTest('none')\n")
        whole = "    @classmethod\n    def setUpClass(cls):\n        raise unittest.SkipTest('none')\n"
        for body, code in ((skip, 77), (run, 0), (skip + run, 0), (skip + fail, 1), (whole + run, 77),
                           (parts.format(""), 77), (parts.format("if i: "), 0), ("    pass\n", 1)):
            self.assertEqual(self.end_to_end(body), code, body)


if __name__ == "__main__":
    unittest.main()
