# SPDX-License-Identifier: Apache-2.0
"""Programs that Pyroscope's SDKs profile while OpenTelemetry's trace them (tests/peers/README.md)."""

import json
import os
import pathlib
import subprocess

from . import peers

SDKS = ("python", "go", "node")
WITHIN_S = 180


def python():
    """The Python that has both SDKs."""
    peers.need("pyroscope-python")
    return _built("python") / "venv" / "bin" / "python"


def _built(sdk):
    return pathlib.Path(os.environ.get("SPANFLAME_PEERS", "")) / f"pyroscope-{sdk}"


def run(sdk, spans, profiles, service, work="requests", **more):
    """To its end; returns its spans by name. `spans` and `profiles` are ports of the daemon, `more`
    options that not every program has."""
    peers.need(f"pyroscope-{sdk}")
    sources = pathlib.Path(__file__).resolve().parents[2] / "peers"
    command = {
        "python": [_built(sdk) / "venv/bin/python", sources / "pyroscope-python" / "profiled.py"],
        "go": [_built(sdk) / "pyroscope-go"],
        "node": ["node", _built(sdk) / "profiled.js"],
    }[sdk]
    options = {
        "spans": f"http://127.0.0.1:{spans}",
        "profiles": f"http://127.0.0.1:{profiles}",
        "service": service,
        "work": work,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S)
    if done.returncode != 0:
        raise AssertionError(f"the {sdk} program failed: {done.stderr}")
    return {span["name"]: span for span in json.loads(done.stdout)["spans"]}
