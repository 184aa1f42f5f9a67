#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes from the house style: functions <= 60 lines, .c <= 500, .h <= 150, width <= 100.

Tests are tables and many small cases: there a file may have 1000 lines, and a function any number.
An exception is a comment above the function, or on top of the file, that says "Longer than" and
why. Prints every breach and ends with 1 when there is one.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "receivers", "processors", "exporters", "extensions", "tests")
FILE_LINES = {".c": 500, ".cc": 500, ".h": 150}
TESTS_FILE_LINES = 1000
FUNCTION_LINES = 60
WIDTH = 100


def functions(lines):
    """(first line, length) of each function: clang-format puts its braces alone in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield start, number - start - 1
            start = None


def is_excused(lines):
    return any("Longer than" in line for line in lines)


def breaches(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    is_test = path.is_relative_to(ROOT / "tests")
    limit = TESTS_FILE_LINES if is_test else FILE_LINES[path.suffix]
    if len(lines) > limit and not is_excused(lines[:10]):
        yield 1, f"{len(lines)} lines; a {path.suffix} file has at most {limit}"
    for number, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > WIDTH:
            yield number, f"{len(line)} columns wide; at most {WIDTH}"
    for number, length in functions(lines):
        if not is_test and length > FUNCTION_LINES and not is_excused(lines[number - 12 : number]):
            yield number, f"a function of {length} lines; at most {FUNCTION_LINES}"


def main():
    files = found = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in FILE_LINES or not path.is_file():
                continue
            files += 1
            for number, text in breaches(path):
                found += 1
                print(f"{path.relative_to(ROOT)}:{number}: {text}")
    print(f"{files} files, {found} sizes out of bounds")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
