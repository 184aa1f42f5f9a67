#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The end of `make test`: how many tests were skipped, and why.

usage: skipped.py JUNIT...
Reads what ctest --output-junit left. A test says "SKIPPED: REASON" for each part that it skipped,
whether or not the rest of it passed."""

import re
import sys
import xml.etree.ElementTree as tree

REASON = re.compile(r"^SKIPPED: *(.+)$", re.M)


def skipped(text):
    """(test, reasons) of each test of this report that skipped something, and how many tests ran."""
    found, ran = [], 0
    for test in tree.fromstring(text).iter("testcase"):
        output = test.findtext("system-out") or ""
        reasons = [re.sub(r"\s*\(__main__\.[\w.]+\)", "", words) for words in REASON.findall(output)]
        is_whole = test.get("status") in ("notrun", "disabled")
        ran += not is_whole
        if is_whole and not reasons:
            element = test.find("skipped")
            reasons = [element.get("message") if element is not None else "no reason given"]
        if reasons:
            found.append((test.get("name"), reasons, is_whole))
    return found, ran


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found, ran = [], 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", errors="replace") as file:
            more, count = skipped(file.read())
        found += more
        ran += count
    whole = sum(is_whole for *_, is_whole in found)
    parts = sum(len(reasons) for _, reasons, is_whole in found if not is_whole)
    for name, reasons, is_whole in found:
        print(f"  {name}{'' if is_whole else ' (in part)'}:")
        for reason in sorted(set(reasons)):
            print(f"    {reason}")
    print(f"{ran} tests ran; {whole} were skipped, and {parts} parts of others")


if __name__ == "__main__":
    main()
