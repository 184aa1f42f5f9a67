#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point inward: components -> src/, src/{net,otlp,config} -> base modules, base -> base.

The base modules are those that src/CMakeLists.txt links into spanflame_base, and a few headers
without a source file. Prints every breach and ends with 1 when there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS_ONLY = ("component", "limits", "slice")
# What option tables are made of: declarations that every layer may fill in.
VOCABULARY = ("src/config/field.h",)
COMPONENTS = ("receivers", "processors", "exporters", "extensions")
AREAS = ("src/config", "src/join", "src/net", "src/otlp", "src/pprof", "src/pyroscope", "src/tools")
# pprof is translated from and to OTLP: it stands above; the tools read and write both.
BELOW = {
    "src/join": ("src/otlp", "src/pprof"),
    "src/pprof": ("src/net", "src/otlp"),
    "src/pyroscope": ("src/net", "src/otlp", "src/pprof"),
    "src/tools": ("src/net", "src/otlp", "src/pprof"),
}
INCLUDE = re.compile(r'^#\s*include\s+"([^"]+)"', re.M)
OURS = re.compile(r"^(src|receivers|processors|exporters|extensions|tests)/")


def base_modules():
    """Names of headers directly below src/ that everybody may include."""
    lists = (ROOT / "src/CMakeLists.txt").read_text(encoding="utf-8")
    linked = re.search(r"add_library\(spanflame_base STATIC([^)]*)\)", lists).group(1)
    return {pathlib.PurePath(name).stem for name in linked.split()}.union(HEADERS_ONLY)


def breach(source, included, base):
    """Why the file at `source` may not include `included`; None when it may."""
    folder, _, name = included.rpartition("/")
    if not OURS.match(included) or included in VOCABULARY:
        return None
    if included.endswith(".c"):
        return "a source file is never included"
    here = source.parent.as_posix()
    if folder in COMPONENTS and folder != here:
        return "components have no headers that others use"
    if here in COMPONENTS:
        return None
    is_base_header = folder == "src" and name.removesuffix(".h") in base
    is_base = source.stem in base and (source.suffix == ".h" or source.stem not in HEADERS_ONLY)
    if here in AREAS:
        if folder == here or is_base_header or folder in BELOW.get(here, ()):
            return None
        return f"{here} may use its own headers and the base modules of src/ only"
    if here == "src" and is_base and not is_base_header:
        return "a base module may use base modules only"
    return None


def sources():
    for folder in ("src", *AREAS, *COMPONENTS):
        for path in sorted((ROOT / folder).iterdir()):
            if path.suffix in (".c", ".h", ".cc"):
                yield path.relative_to(ROOT)


def main():
    base = base_modules()
    files = breaches = 0
    for source in sources():
        files += 1
        text = (ROOT / source).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            reason = breach(source, match.group(1), base)
            if reason:
                breaches += 1
                line = text.count("\n", 0, match.start()) + 1
                print(f'{source}:{line}: includes "{match.group(1)}": {reason}')
    print(f"{files} files, {breaches} includes in the wrong direction")
    return 1 if breaches or not files else 0


if __name__ == "__main__":
    sys.exit(main())
