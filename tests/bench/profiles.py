# SPDX-License-Identifier: Apache-2.0
"""Profiles: what normalizing and merging cost per byte, in one process without sockets, beside the Go
collector's own library, which its exporters' batcher merges with."""

import json
import os
import subprocess
import tempfile

from rig import SUT_CORE

NS_MAX = 1.5
MEMORY_MAX = 3.0


def run(argv):
    """What it printed, on the core of the system under test."""
    return subprocess.run([str(part) for part in argv], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=600,
                          preexec_fn=lambda: os.sched_setaffinity(0, {SUT_CORE})).stdout


def peer_text(bench, folder, row):
    if not bench.pprofile:
        return ""
    name = f"{row['samples']}-{row['functions']}-{row['stacks']}"
    files = [f"{folder}/{name}-{number}.pb" for number in range(row["requests"])]
    found = json.loads(run([bench.pprofile, *files]))
    cost = found["check_ns"] + found["merge_ns"]
    return (f"; the Go collector's pprofile {found['check_ns']:.1f} + {found['merge_ns']:.1f} = "
            f"{cost:.0f} ns/B, {found['memory']:.0f} ×")


def figure(bench, folder, row):
    cost = row["check_ns"] + row["merge_ns"]
    stacks = "the same stacks" if row["stacks"] == "same" else "stacks of their own"
    return {
        "title": f"profiles, {row['requests']} requests of {row['samples']} samples over "
                 f"{row['functions']} functions, {stacks}, {row['bytes_per_sample']:.0f} B/sample",
        "text": f"check {row['check_ns']:.2f} + merge {row['merge_ns']:.2f} = {cost:.2f} ns/B, "
                f"{row['memory']:.1f} × the batch's bytes{peer_text(bench, folder, row)}",
        "required": f"≤ {NS_MAX} ns/B, ≤ {MEMORY_MAX:g} ×",
        "is_met": cost <= NS_MAX and row["memory"] <= MEMORY_MAX,
        "is_sound": True,
    }


def profiles(bench):
    tool = bench.tools / "bench_profile_merge"
    with tempfile.TemporaryDirectory(dir=bench.output) as folder:
        run([tool, "--write", folder])
        return [figure(bench, folder, json.loads(line))
                for line in run([tool, "--json"]).splitlines()]
