# SPDX-License-Identifier: Apache-2.0
"""The peers that tests/peers/build made, or the reason why one is missing."""

import json
import os
import subprocess
import unittest

EMIT_WITHIN_S = 120


def _directory():
    return os.environ.get("SPANFLAME_PEERS", "")


def status(peer):
    try:
        with open(os.path.join(_directory(), f"{peer}.status"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "skipped: tests/peers/build has not run"


def is_ready(peer):
    return status(peer).startswith("ready")


def need(peer):
    """For a test that cannot do without: skips it, with the reason."""
    if not is_ready(peer):
        raise unittest.SkipTest(f"peer {peer}: {status(peer)}")


def otelcol():
    """The Go collector's path."""
    need("otelcol")
    return os.path.join(_directory(), "otelcol", "otelcol")


def systems():
    """For tests of spanflame and of the Go collector, by executable: None is spanflame, which comes
    first; where the Go collector is missing the test is skipped after that."""
    yield None
    yield otelcol()


def pprof():
    """Go's own reader of pprof files."""
    need("pprof")
    return os.path.join(_directory(), "pprof", "pprof")


def jaeger_agent():
    """Jaeger's own agent."""
    need("jaeger-agent")
    return os.path.join(_directory(), "jaeger-agent", "jaeger-agent")


def zipkin_server():
    """The command of Zipkin's own server."""
    need("zipkin-server")
    jar = os.path.join(_directory(), "zipkin-server", "target", "zipkin.jar")
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", jar]


def python():
    """The Python that has the SDK."""
    need("python")
    return os.path.join(_directory(), "python", "venv", "bin", "python")


def _command(sdk):
    sources = os.path.join(os.path.dirname(__file__), "..", "..", "peers", sdk)
    built = os.path.join(_directory(), sdk)
    return {
        "python": [python(), os.path.join(sources, "emit.py")],
        "node": ["node", os.path.join(built, "emit.js")],
        "go": [os.path.join(built, "go")],
        "java": [
            "java",
            "-cp",
            f"{built}/target/peer-java-1.jar:{built}/target/lib/*",
            "peer.Emit",
        ],
        "jaeger-go": [os.path.join(built, "jaeger-go")],
        "jaeger-node": ["node", os.path.join(built, "emit.js")],
        "zipkin-java": [
            "java",
            "-cp",
            f"{built}/target/peer-zipkin-java-1.jar:{built}/target/lib/*",
            "peer.Emit",
        ],
        "zipkin-node": ["node", os.path.join(built, "emit.js")],
    }[sdk]


def emit(sdk, tls=None, headers=None, **options):
    """Runs an SDK peer to its end; returns what it says it sent. `tls` has the SDK's environment
    variables for certificates; `headers` is as in OTEL_EXPORTER_OTLP_HEADERS."""
    need(sdk)
    command = _command(sdk) + (["--tls"] if tls else [])
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    environment.update(tls or {})
    if headers:
        environment["OTEL_EXPORTER_OTLP_HEADERS"] = headers
    return _run(sdk, command, environment)


def send(client, form, port, service):
    """Runs a client of Jaeger or Zipkin to its end; returns what it says it sent. `form` is a transport or
    an encoding that it knows: see tests/peers/README.md."""
    need(client)
    command = _command(client) + [form, f"127.0.0.1:{port}", service]
    return _run(client, command, os.environ)["spans"]


def _run(peer, command, environment):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=EMIT_WITHIN_S, env=environment
    )
    if done.returncode != 0:
        raise AssertionError(f"the peer {peer} failed: {done.stderr}")
    return json.loads(done.stdout)
