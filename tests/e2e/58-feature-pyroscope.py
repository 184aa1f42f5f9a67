# SPDX-License-Identifier: Apache-2.0
"""Profiles on their way into a real Pyroscope server, and what its queries then find."""

import uuid

from support import async_profiler, case, certificates, client, example, profiles, pyroscope
from support.ports import free_port

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SLOW = (bytes.fromhex("0af7651916cd43dd8448eb211c80319c"), bytes.fromhex("b7ad6b7169203331"))
FAST = (bytes.fromhex("0af7651916cd43dd8448eb211c80319d"), bytes.fromhex("00f067aa0ba902b7"))
MS = 10**6


def config(http, exporters):
    """otlp in, each of these exporters (YAML) out."""
    return (
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{http}\n"
        "processors:\n  batch:\n    timeout: 100ms\n"
        f"exporters:\n{exporters}service:\n{case.QUIET}  pipelines:\n    profiles:\n"
        "      receivers: [otlp]\n      processors: [batch]\n      exporters: [out]\n"
    ).replace("exporters: [out]", f"exporters: [{exporters.split(':')[0].strip()}]")


class Stored(case.Case):
    """The same profiles by every exporter and mode that can reach the server."""

    ROADS = {
        "push": "  pyroscope:\n    endpoint: {url}\n",
        "otlp": "  pyroscope:\n    endpoint: {url}\n    mode: otlp\n",
        "ingest": "  pyroscope:\n    endpoint: {url}\n    mode: ingest\n",
        "otlp_http": "  otlp_http:\n    endpoint: {url}\n",
    }

    def setUp(self):
        url = pyroscope.need()
        self.pyroscope = pyroscope.Pyroscope(url)
        self.service = f"shop-{uuid.uuid4().hex[:12]}"
        self.selector = f'{{service_name="{self.service}"}}'

    def send(self, road, body):
        http = free_port()
        text = self.ROADS[road].format(url=self.pyroscope.url)
        daemon = self.daemon(config(http, text))
        response = client.request(
            http, "POST", profiles.PATH, body, {"Content-Type": client.PROTOBUF}
        )
        self.assertEqual(response.status, 200)
        partial = profiles.RESPONSE.FromString(response.body).partial_success
        self.assertEqual(partial.error_message, "")
        return daemon

    def builder(self, **resource):
        return profiles.Builder({"service.name": self.service, **resource})

    def cpu(self):
        builder = self.builder(**{"deployment.environment": "test"})
        builder.profile("samples:count", ("cpu:nanoseconds", 10 * MS))
        builder.sample(["render", "main"], 70, link=SLOW)
        builder.sample(["parse", "main"], 20, link=FAST)
        builder.sample(["idle", "main"], 5)
        return builder.bytes()

    def check_cpu(self, road):
        self.send(road, self.cpu())
        ask = self.pyroscope.wait_for
        everything = {"render": 700 * MS, "parse": 200 * MS, "idle": 50 * MS}
        self.assertEqual(ask(CPU, self.selector, 950 * MS), everything)
        slow = ask(CPU, self.selector, 700 * MS, spanSelector=[SLOW[1].hex()])
        self.assertEqual(slow, {"render": 700 * MS})
        fast = ask(CPU, self.selector, 200 * MS, traceIdSelector=[FAST[0].hex()])
        self.assertEqual(fast, {"parse": 200 * MS})
        other = self.pyroscope.functions(CPU, self.selector, spanSelector=["00000000000000aa"])
        self.assertEqual(other, {})

    def test_cpu_with_links_by_push(self):
        self.check_cpu("push")
        labelled = f'{{service_name="{self.service}", deployment_environment="test"}}'
        self.pyroscope.wait_for(CPU, labelled, 950 * MS)

    def test_cpu_with_links_by_otlp(self):
        self.check_cpu("otlp")

    def test_cpu_with_links_by_ingest(self):
        self.check_cpu("ingest")

    def test_cpu_with_links_by_otlp_http(self):
        self.check_cpu("otlp_http")

    def test_every_type_has_its_canonical_name(self):
        rows = {
            ("alloc_space:bytes", None): "memory:alloc_space:bytes:space:bytes",
            ("inuse_objects:count", None): "memory:inuse_objects:count:space:bytes",
            ("off_cpu:nanoseconds", None): "off_cpu:off_cpu:nanoseconds::",
            ("samples:count", ("cpu:nanoseconds", 10 * MS)): CPU,
            ("wall:nanoseconds", ("wall:nanoseconds", 1)): "wall:wall:nanoseconds:wall:nanoseconds",
            ("goroutine:count", None): "goroutine:goroutine:count:goroutine:count",
        }
        builder = self.builder()
        for kind, period in rows:
            builder.profile(kind, period).sample(["work", "main"], 5)
        self.send("push", builder.bytes())
        for (kind, period), canonical in rows.items():
            with self.subTest(kind):
                total = 5 * period[1] if kind == "samples:count" else 5
                found = self.pyroscope.wait_for(canonical, self.selector, total)
                self.assertEqual(found, {"work": total})

    def test_noise_makes_no_series(self):
        builder = self.builder().profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS))
        for thread in range(40):
            noise = {"thread.id": thread, "thread.name": f"worker-{thread}"}
            builder.sample(["work", "main"], MS, **noise)
        self.send("push", builder.bytes())
        self.assertEqual(self.pyroscope.wait_for(CPU, self.selector, 40 * MS), {"work": 40 * MS})
        self.assertEqual(
            self.pyroscope.series(self.selector, ["service_name"]), [(self.service,)]
        )

    def test_more_samples_than_the_server_takes_at_once(self):
        builder = self.builder().profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS))
        for number in range(20_000):
            builder.sample([f"leaf-{number}", "main"], MS)
        self.send("push", builder.bytes())
        found = self.pyroscope.wait_for(CPU, self.selector, 20_000 * MS, maxNodes=32768)
        self.assertEqual(sum(found.values()), 20_000 * MS)

    def test_async_profiler_by_push(self):
        rows = {
            ("itimer", ""): "process_cpu:samples:count:cpu:nanoseconds",
            ("itimer", ",total"): CPU,
            ("wall", ""): "wall:samples:count:wall:nanoseconds",
        }
        for version in async_profiler.VERSIONS:
            for (event, more), canonical in rows.items():
                with self.subTest(version=version, event=event + more):
                    self.service = f"java-{uuid.uuid4().hex[:12]}"
                    self.selector = f'{{service_name="{self.service}"}}'
                    body = async_profiler.record(version, event, more, self.service)
                    self.send("push", body)
                    found = self.pyroscope.wait_for(canonical, self.selector, 1)
                    self.assertIn("peer/Busy.hot", found)

    def test_async_profiler_by_otlp_http(self):
        """The server's OTLP endpoint cannot name these profiles; the exporter finds that out."""
        for version in async_profiler.VERSIONS:
            with self.subTest(version=version):
                self.service = f"java-{uuid.uuid4().hex[:12]}"
                self.selector = f'{{service_name="{self.service}"}}'
                self.send("otlp_http", async_profiler.record(version, "itimer", "", self.service))
                canonical = "process_cpu:samples:count:cpu:nanoseconds"
                found = self.pyroscope.wait_for(canonical, self.selector, 1)
                self.assertIn("peer/Busy.hot", found)

    def test_the_example_configuration(self):
        certificate, key = certificates.self_signed(self)
        traces = self.sink(certificate=certificate, key=key)
        port = free_port()
        text = example.CONFIG.format(
            grpc=free_port(),
            http=free_port(),
            profiles=port,
            traces=traces.url,
            pyroscope=self.pyroscope.url,
        )
        self.daemon(text, environment={"BACKEND_TOKEN": "unused"})
        response = self.grpc(port).export("profiles", self.cpu(), method=profiles.SERVICE)
        self.assertEqual(response, ("OK", ""))
        self.pyroscope.wait_for(CPU, self.selector, 950 * MS)


if __name__ == "__main__":
    case.main()
