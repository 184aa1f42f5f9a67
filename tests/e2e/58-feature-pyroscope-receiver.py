# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's own SDKs against the pyroscope receiver; with PYROSCOPE_URL also into a real server."""

import gzip
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from support import case, client, metrics, peers, pprof_sketch, profiles, pyroscope
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
    built = os.path.join(os.environ.get("SPANFLAME_PEERS", ""), f"uploader-{sdk}")
    sources = os.path.join(os.path.dirname(__file__), "..", "peers", f"uploader-{sdk}")
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
            [f"{built}/uploader-go", "-endpoint", endpoint, "-service", service]
            + ["-seconds", str(seconds)],
            {},
        ),
        "node": (["node", f"{built}/emit.js", *arguments], {}),
        "python": ([f"{built}/venv/bin/python", f"{sources}/emit.py", *arguments], {}),
        "rust": ([f"{built}/target/debug/uploader-rust", *arguments], {}),
        "java": (
            ["java", f"-javaagent:{built}/target/lib/agent-2.1.2.jar", "-cp"]
            + [f"{built}/target/peer-uploader-java-1.jar", "peer.Work", str(seconds)],
            agent,
        ),
    }[sdk]


def work(sdk, port, service, seconds):
    """Runs a peer to its end."""
    peers.need(f"uploader-{sdk}")
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

    def test_rust(self):
        self.received("rust", {"cpu"}, 13)

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

    def test_rust(self):
        self.check("rust", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 13)

    def test_java(self):
        self.check("java", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 6)


SPAN = {"span_id": "051a1b6c441acd00", "trace_id": "5b8aa5a2d2c872e8321cf37308d69df2"}
PUSH = "/push.v1.PusherService/Push"
PERIOD = ("cpu:nanoseconds", 10)


class Waiting(case.Case):
    """Uploads without room wait for it, count once, and go only where they were not taken."""

    def test_one_of_two_pipelines_has_no_room(self):
        sink, port, figures = self.sink(), free_port(), free_port()
        exporters = (
            f"  pyroscope/fine:\n    endpoint: {sink.url}\n"
            f"  pyroscope/full:\n    endpoint: http://127.0.0.1:{free_port()}\n"
            "    sending_queue: {queue_size: 1, num_consumers: 1}\n"
        )
        self.daemon(
            f"receivers:\n  pyroscope:\n    endpoint: 127.0.0.1:{port}\nexporters:\n{exporters}"
            f"service:\n{case.metrics_service(figures)}  pipelines:\n"
            "    profiles/fine: {receivers: [pyroscope], exporters: [pyroscope/fine]}\n"
            "    profiles/full: {receivers: [pyroscope], exporters: [pyroscope/full]}\n"
        )
        sketch = pprof_sketch.Sketch().sample(["work", "main"], [1])
        profile = sketch.bytes(["cpu:nanoseconds"], PERIOD, time.time_ns())
        body = pprof_sketch.push({"__name__": "process_cpu"}, profile)
        responses = [
            client.request(port, "POST", PUSH, body, {"content-type": "application/proto"}).status
            for _ in range(3)
        ]
        self.assertEqual(responses, [200, 503, 503])
        sink.wait_for_requests(3)
        received, _, rejected, _, _ = metrics.assert_conserved(self, figures, "profiles")
        self.assertEqual((received, rejected, len(sink.requests)), (6, 2, 3))


class Equal(case.Case):
    """Every query gives the same for an upload through the daemon as for a direct one."""

    def setUp(self):
        self.pyroscope = pyroscope.Pyroscope(pyroscope.need())
        port = free_port()
        self.daemon(config(port, f"    endpoint: {self.pyroscope.url}\n", "pyroscope"))
        self.roads = {"direct": self.pyroscope.url, "daemon": f"http://127.0.0.1:{port}"}
        self.at_ns = time.time_ns() - 10**10

    def cpu(self, at_ns=None):
        sketch = pprof_sketch.Sketch()
        sketch.sample(["work", "main"], [3, 30], **SPAN, span_name="GET /", thread="7")
        sketch.sample(["idle", "main"], [1, 10], profile_id="051a1b6c441acd01")
        sketch.sample(["idle", "main"], [1, 0])
        kinds = ["samples:count", "cpu:nanoseconds"]
        return sketch.bytes(kinds, PERIOD, at_ns or self.at_ns)

    def post(self, url, body, content_type):
        request = urllib.request.Request(url, body, {"Content-Type": content_type})
        with urllib.request.urlopen(request, timeout=WORK_WITHIN_S) as response:
            self.assertEqual(response.status, 200)

    def stored(self, service, total):
        """Every series without its service, and each type's functions, whole and by span."""
        selector = f'{{service_name="{service}"}}'
        rows = self.pyroscope.ask("Series", matchers=[selector], labelNames=[])["labelsSet"]
        labels = [{label["name"]: label["value"] for label in row["labels"]} for row in rows]
        found = {}
        for kind in sorted({row["__profile_type__"] for row in labels}):
            self.pyroscope.wait_for(kind, selector, 1)
            found[kind] = self.pyroscope.functions(kind, selector)
            for name, ids in (("spanSelector", "span_id"), ("traceIdSelector", "trace_id")):
                more = {name: [SPAN[ids]]}
                found[kind, name] = self.pyroscope.functions(kind, selector, **more)
        self.assertEqual(sum(sum(each.values()) for each in found.values()), total)
        plain = [{key: text for key, text in row.items() if text != service} for row in labels]
        return sorted(map(str, map(sorted, map(dict.items, plain)))), found

    def check(self, send, first_kind, total):
        results = {}
        for road, url in self.roads.items():
            service = f"{road}-{uuid.uuid4().hex[:12]}"
            send(url, service)
            self.pyroscope.wait_for(first_kind, f'{{service_name="{service}"}}', 1)
            results[road] = self.stored(service, total)
        self.assertEqual(results["direct"], results["daemon"])

    def test_push(self):
        def send(url, service):
            labels = {
                "__name__": "process_cpu",
                "__session_id__": "a",
                "service_name": service,
                "host.name": "h",
                "pyroscope_spy": "pyroscope-rs",
            }
            body = pprof_sketch.push(labels, gzip.compress(self.cpu()))
            self.post(url + PUSH, body, "application/proto")

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 5 + 3 + 3 + 40 + 30 + 30)

    def test_push_of_odd_samples(self):
        """A value below zero, a frame without a name, a key that occurs twice."""

        def send(url, service):
            sketch = pprof_sketch.Sketch()
            sketch.sample(["lost", "main"], [-1, 9])
            sketch.sample(["", "main"], [2, 20])
            sketch.sample(["work", "main"], [1, 10], k="a").sample(["work"], [4, 0], k="b")
            body = sketch.bytes(["samples:count", "cpu:nanoseconds"], PERIOD, self.at_ns)
            labels = {"__name__": "process_cpu", "service_name": service}
            self.post(url + PUSH, pprof_sketch.push(labels, body), "application/proto")

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 7 + 30)

    def error_of(self, url, path, body, content_type):
        """The status and the error's code."""
        request = urllib.request.Request(url + path, body, {"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=WORK_WITHIN_S) as response:
                return response.status, ""
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text)["code"] if text else ""

    def refused_pushes(self):
        """What a server refuses of labels and profiles, by name."""
        named = {"__name__": "process_cpu", "service_name": "refused"}
        fine = self.cpu()
        old = pprof_sketch.Sketch().sample(["a"], [1]).bytes(["a:b"], PERIOD, 1)
        dash = pprof_sketch.Sketch().sample(["a"], [1]).bytes(["a-b:c"], PERIOD, self.at_ns)
        typeless = pprof_sketch.Sketch().bytes([], PERIOD, self.at_ns)
        broken = fine + pprof_sketch.field(6, b"\xff")
        many = pprof_sketch.Sketch().sample(["a"], [1], **{f"k{i}": "v" for i in range(30)})
        yield "no name", {"service_name": "refused"}, fine
        yield "empty service", {**named, "service_name": ""}, fine
        yield "31 labels", {**named, **{f"k{i}": "v" for i in range(29)}}, fine
        yield "long value", {**named, "k": "v" * 2049}, fine
        yield "long name", {**named, "k" * 1025: "v"}, fine
        yield "old", named, old
        yield "dash", named, dash
        yield "no type", named, typeless
        yield "no UTF-8", named, broken
        yield "labels of samples", named, many.bytes(["a:b"], PERIOD, self.at_ns)

    def test_refusals(self):
        service, hour_ago, roads = "refused", self.at_ns // 10**9 - 3700, self.roads.values()
        for what, labels, profile in self.refused_pushes():
            body = pprof_sketch.push(labels, profile)
            responses = [self.error_of(r, PUSH, body, "application/proto") for r in roads]
            self.assertEqual(responses, [(400, "invalid_argument")] * 2, what)
        for what, query, body in (
            ("no name", "", b"a 1"),
            ("ending", f"name={service}.cats", b"a 1"),
            ("old text", f"name={service}&from={hour_ago}", b"a 1"),
            ("count", f"name={service}", b"a x"),
            ("no UTF-8", f"name={service}", b"\xff 1"),
            ("no pprof", f"name={service}&format=pprof", b"xyz"),
            ("old pprof", f"name={service}&format=pprof&from={hour_ago}", self.cpu(1)),
            ("no JFR", f"name={service}&format=jfr", b"xyz"),
        ):
            path = f"/ingest?{query}"
            responses = [self.error_of(r, path, body, "text/plain") for r in roads]
            self.assertEqual(responses[1], responses[0], what)
            self.assertIn(responses[0][0], (400, 422), what)

    def upload(self, url, service, body, content_type="text/plain", **more):
        seconds = self.at_ns // 10**9
        query = {"name": f"{service}{{region=eu}}", "from": seconds, "until": seconds + 10, **more}
        self.post(f"{url}/ingest?{urllib.parse.urlencode(query)}", body, content_type)

    def test_form(self):
        def send(url, service):
            content_type, body = pprof_sketch.form(profile=gzip.compress(self.cpu()))
            self.upload(url, service, body, content_type, spyName="gospy")

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 5 + 3 + 3 + 40 + 30 + 30)

    def test_folded(self):
        def send(url, service):
            self.upload(url, service, b"main;work 3\nmain;idle 4\n;x 1\n", sampleRate=100)

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 8 * 10**7)

    def test_times_that_cannot_be_read(self):
        """Both take the current time instead."""

        def send(url, service):
            query = {"sampleRate": 100, "from": "yesterday", "until": f"{time.time()}"}
            self.upload(url, service, b"main 3\n", **query)

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 3 * 10**7)

    def test_tree(self):
        def send(url, service):
            self.upload(url, service, b"\0\0\1\4main\1\1\4work\5\0", format="tree")

        self.check(send, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 6 * 10**7)


if __name__ == "__main__":
    case.main()
