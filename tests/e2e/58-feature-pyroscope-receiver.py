# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's own SDKs against the pyroscope receiver; with PYROSCOPE_URL also into a real server."""

import os
import subprocess
import uuid

from support import case, peers, profiles, pyroscope
from support.ports import free_port

WORK_WITHIN_S = 120


def config(port, exporter, name):
    """pyroscope in, this exporter out."""
    return (
        f"receivers:\n  pyroscope:\n    endpoint: 127.0.0.1:{port}\n"
        f"exporters:\n  {name}:\n{exporter}"
        f"service:\n{case.QUIET}  pipelines:\n    profiles:\n"
        f"      receivers: [pyroscope]\n      exporters: [{name}]\n"
    )


def command(sdk, endpoint, service, seconds):
    """How a peer is run, and with which environment."""
    built = os.path.join(os.environ.get("SPANFLAME_PEERS", ""), f"pyroscope-{sdk}")
    sources = os.path.join(os.path.dirname(__file__), "..", "peers", f"pyroscope-{sdk}")
    arguments = [endpoint, service, str(seconds)]
    agent = {
        "PYROSCOPE_APPLICATION_NAME": service,
        "PYROSCOPE_SERVER_ADDRESS": endpoint,
        "PYROSCOPE_FORMAT": "jfr",
        "PYROSCOPE_UPLOAD_INTERVAL": "2s",
        "PYROSCOPE_LABELS": "region=eu",
    }
    return {
        "go": (
            [f"{built}/pyroscope-go", "-endpoint", endpoint, "-service", service]
            + ["-seconds", str(seconds)],
            {},
        ),
        "node": (["node", f"{built}/emit.js", *arguments], {}),
        "python": ([f"{built}/venv/bin/python", f"{sources}/emit.py", *arguments], {}),
        "java": (
            ["java", f"-javaagent:{built}/target/lib/agent-2.1.2.jar", "-cp"]
            + [f"{built}/target/peer-pyroscope-java-1.jar", "peer.Work", str(seconds)],
            agent,
        ),
    }[sdk]


def work(sdk, port, service, seconds):
    """Runs a peer to its end."""
    peers.need(f"pyroscope-{sdk}")
    line, more = command(sdk, f"http://127.0.0.1:{port}", service, seconds)
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=WORK_WITHIN_S, env={**os.environ, **more}
    )
    if done.returncode != 0:
        raise AssertionError(f"the {sdk} SDK failed: {done.stderr}")


def found(requests):
    """Of every Profile: its service, its type, its labels and whether samples have links."""
    rows = []
    for received in requests:
        request = profiles.REQUEST.FromString(received.payload)
        texts = request.dictionary.string_table
        for resource in request.resource_profiles:
            labels = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    kind = texts[profile.sample_type.type_strindex]
                    linked = any(sample.link_index for sample in profile.samples)
                    rows.append((labels.get("service.name"), kind, labels, linked))
    return rows


class Sdks(case.Case):
    """What an SDK sends becomes OTLP profiles of its service."""

    def received(self, sdk, kinds, seconds=5):
        sink = self.sink()
        port = free_port()
        self.daemon(config(port, f"    endpoint: {sink.url}\n", "otlp_http"))
        work(sdk, port, "shop", seconds)
        requests = sink.wait(lambda all: kinds <= {kind for _, kind, _, _ in found(all)})
        rows = found(requests)
        self.assertEqual({service for service, _, _, _ in rows}, {"shop"})
        self.assertEqual({labels["region"] for _, _, labels, _ in rows}, {"eu"})
        return rows

    def test_go(self):
        kinds = {"cpu", "samples", "alloc_space", "inuse_space", "goroutine"}
        rows = self.received("go", kinds)
        self.assertEqual({labels["host.name"] for _, _, labels, _ in rows}, {"h"})
        self.assertEqual({labels["pyroscope_spy"] for _, _, labels, _ in rows}, {"gospy"})

    def test_node(self):
        self.received("node", {"wall", "cpu", "samples"})

    def test_python_inside_a_span(self):
        rows = self.received("python", {"cpu"}, 13)
        self.assertTrue(any(linked for _, _, _, linked in rows))

    def test_java_is_passed_on_as_jfr(self):
        sink = self.sink()
        port = free_port()
        self.daemon(config(port, f"    endpoint: {sink.url}\n", "pyroscope"))
        work("java", port, "shop", 6)
        requests = sink.wait(lambda all: any(r.path.startswith("/ingest?") for r in all))
        upload = next(r for r in requests if r.path.startswith("/ingest?"))
        self.assertIn("format=jfr", upload.path)
        self.assertIn("region%3Deu", upload.path)
        self.assertIn(b'name="jfr"', upload.payload)


class Stored(case.Case):
    """The same into a real server, which then has every type under its own name."""

    def setUp(self):
        self.pyroscope = pyroscope.Pyroscope(pyroscope.need())
        self.service = f"shop-{uuid.uuid4().hex[:12]}"
        self.selector = f'{{service_name="{self.service}"}}'

    def check(self, sdk, kind, seconds=5):
        port = free_port()
        self.daemon(config(port, f"    endpoint: {self.pyroscope.url}\n", "pyroscope"))
        work(sdk, port, self.service, seconds)
        self.pyroscope.wait_for(kind, self.selector, 1)
        self.assertEqual(self.pyroscope.series(self.selector, ["region"]), [("eu",)])

    def test_go(self):
        self.check("go", "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
        self.pyroscope.wait_for("goroutines:goroutine:count:goroutine:count", self.selector, 1)

    def test_node(self):
        self.check("node", "wall:wall:nanoseconds:wall:nanoseconds")

    def test_python(self):
        self.check("python", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 13)

    def test_java(self):
        self.check("java", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 6)


if __name__ == "__main__":
    case.main()
