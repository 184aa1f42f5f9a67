#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of C are at most 100 columns wide. Prints every breach and ends with 1 when there is one."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "receivers", "processors", "exporters", "connectors", "extensions", "tests")
SUFFIXES = (".c", ".cc", ".h")
WIDTH = 100


def breaches(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line.expandtabs(8)) > WIDTH:
            yield number, f"{len(line)} columns wide; at most {WIDTH}"


def main():
    files = found = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            files += 1
            for number, text in breaches(path):
                found += 1
                print(f"{path.relative_to(ROOT)}:{number}: {text}")
    print(f"{files} files, {found} lines too wide")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
