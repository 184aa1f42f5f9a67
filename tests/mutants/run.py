#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: breaks one promise at a time and looks whether a test notices.

Each mutant of mutants.py replaces one piece of the product's source, in a copy of the tree, builds
the tests that are named with it, and runs them. At least one must fail, twice in a row: a mutant
that passes them all has survived, and a test is missing. A mutant that does not build, and tests
that are absent, skipped, too slow or flaky, prove nothing: such a mutant is "unjudged". Before the
first mutant and after the last one all tests must pass. It takes a few seconds for each mutant, and
up to minutes where only an end-to-end test can notice, so it is run by hand or at night; that every
mutant still fits the source is a test of its own (--check).

usage: run.py --build DIR [--only PREFIX;PREFIX…] [--jobs N]
       run.py --check
Ends with 1 when a mutant survived or could not be judged, or a test fails without any mutant."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD_SECONDS_MAX = 900
TEST_SECONDS_MAX = 600
BUILD = "build-dev"  # in the copy, where the preset has it: so a compiler cache knows the objects
# How ctest ends the line of a test; "Not Run", "Timeout" and "Skipped" say nothing about the code.
RESULT = re.compile(r"^\s*1/1 Test +#\d+: .*?(Passed|\*\*\*Failed|\*\*\*Exception|\*\*\*[\w ]+)",
                    re.M)


class Unjudged(Exception):
    """Why nothing can be said about a mutant."""


def misfits():
    """What is wrong with the list: each piece must be found once, and be changed."""
    names = [mutant.name for mutant in MUTANTS]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"{name}: two mutants have this name"
    for mutant in MUTANTS:
        path = ROOT / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else 0
        if count != 1:
            yield f"{mutant.name}: its piece is in {mutant.file} {count} times, not once"
        if mutant.old == mutant.new:
            yield f"{mutant.name}: it changes nothing"
        if not mutant.tests:
            yield f"{mutant.name}: it names no test"


def copy_tree(target):
    """Every file of the checkout, as it is; only what differs is written, so that builds are
    short."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for old in target.rglob("*"):
        name = str(old.relative_to(target))
        if old.is_file() and name not in names and not name.startswith(BUILD + "/"):
            old.unlink()
    for name in names:
        source, copy = ROOT / name, target / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


class Copy:
    """A copy of the tree's files as they are, built with the sanitizers as the tests are."""

    def __init__(self, folder, jobs):
        self.tree = folder / "tree"
        self.build = self.tree / BUILD
        self.jobs = str(jobs)
        self.tree.mkdir(parents=True, exist_ok=True)
        copy_tree(self.tree)
        self.output(["cmake", "--preset", "dev", f"-DSPANFLAME_PEERS={ROOT / 'build-peers'}"])
        self.targets = set(re.findall(r"^(\S+): phony", self.output(
            ["cmake", "--build", str(self.build), "--target", "help"]), re.M))

    def output(self, argv):
        return subprocess.run(argv, cwd=self.tree, check=True, capture_output=True,
                              text=True).stdout

    def command(self, argv, seconds):
        """Whether it ended well; what it printed."""
        with subprocess.Popen(argv, cwd=self.tree, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                text, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Unjudged(f"{argv[0]} did not end within {seconds} s") from None
        return process.returncode == 0, text

    def make(self, tests):
        """Unit tests are targets by their names; end-to-end tests need the daemon."""
        targets = {test if test in self.targets else "spanflame" for test in tests}
        is_built, text = self.command(["cmake", "--build", str(self.build), "-j", self.jobs,
                                       "--target", *sorted(targets)], BUILD_SECONDS_MAX)
        if not is_built:
            wrong = [line for line in text.splitlines() if " error: " in line]
            raise Unjudged("it does not build: " + " ".join((wrong or text.splitlines())[-8:]))

    def is_passed(self, test):
        _, text = self.command(
            ["ctest", "--test-dir", str(self.build), "-R", f"^{re.escape(test)}$",
             "--fixture-exclude-any", ".*", "--timeout", str(TEST_SECONDS_MAX)],
            TEST_SECONDS_MAX + 60)
        results = RESULT.findall(text)
        if results == ["Passed"]:
            return True
        if results in (["***Failed"], ["***Exception"]):
            return False
        raise Unjudged(f"{test} ended as {results or 'a test that is not there'}")

    def failed(self, tests):
        """The first of the tests that fails; None when all pass."""
        for test in tests:
            if not self.is_passed(test):
                return test
        return None


def judge(copy, mutant):
    """Killed by a test, survived, or why neither can be said."""
    path = copy.tree / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        copy.make(mutant.tests)
        failed = copy.failed(mutant.tests)
        if failed is None:
            return "SURVIVED"
        if copy.is_passed(failed):
            raise Unjudged(f"{failed} failed, then passed")
        return f"killed by {failed}"
    except Unjudged as error:
        return f"unjudged: {error}"
    finally:
        path.write_text(text, encoding="utf-8")


def choose(only):
    """The mutants whose names begin with one of the prefixes; all when there are none."""
    prefixes = tuple(filter(None, only.split(";")))
    for prefix in prefixes:
        if not any(mutant.name.startswith(prefix) for mutant in MUTANTS):
            sys.exit(f"no mutant's name begins with '{prefix}'")
    return [mutant for mutant in MUTANTS if not prefixes or mutant.name.startswith(prefixes)]


def expect_passes(copy, tests):
    """Ends the run when a test does not pass without any mutant."""
    try:
        copy.make(tests)
        failed = copy.failed(tests)
    except Unjudged as error:
        sys.exit(f"without any mutant: {error}")
    if failed:
        sys.exit(f"{failed} fails without any mutant: no verdict of this run counts")


def main():
    parser = argparse.ArgumentParser(description="Mutation testing.")
    parser.add_argument("--build", type=pathlib.Path, help="where the copy is made and built")
    parser.add_argument("--only", default="", help="beginnings of names, with semicolons")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="only: do they fit the source?")
    arguments = parser.parse_args()
    wrong = list(misfits())
    print("\n".join(wrong) if wrong else f"{len(MUTANTS)} mutants fit the source")
    if wrong:
        print("The source has changed: mend these in tests/mutants/mutants.py, so that each breaks "
              "its promise again; look with run.py --build DIR --only NAME.")
    if wrong or arguments.check:
        return 1 if wrong else 0
    if arguments.build is None:
        parser.error("--build is needed")
    chosen = choose(arguments.only)
    copy = Copy(arguments.build.resolve(), arguments.jobs)
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    expect_passes(copy, tests)
    verdicts = []
    for mutant in chosen:
        started = time.monotonic()
        verdicts.append(judge(copy, mutant))
        print(f"{mutant.name}: {verdicts[-1]} ({time.monotonic() - started:.0f} s)", flush=True)
    killed = sum(verdict.startswith("killed") for verdict in verdicts)
    print(f"{len(verdicts)} mutants, {killed} killed, {verdicts.count('SURVIVED')} survived, "
          f"{sum(verdict.startswith('unjudged') for verdict in verdicts)} unjudged")
    expect_passes(copy, tests)
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
