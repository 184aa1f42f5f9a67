# SPDX-License-Identifier: Apache-2.0
"""Profiles from socket to socket: gRPC and HTTP in, merged and split, every sample the same at the
back-end; async-profiler's files of every layout; the public example configuration."""

from support import async_profiler, case, certificates, client, example, metrics, otlp, peers, profiles
from support.ports import free_port
from support.sink import Reply

LINK = (bytes(range(1, 17)), bytes(range(1, 9)))
BATCH = "    timeout: 200ms\n    send_batch_size: {size}\n    send_batch_max_size: {size}\n"


def config(grpc, http, backend, batch="", service=case.QUIET):
    """otlp in, batch, otlp_http out."""
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"processors:\n  batch:\n{batch}"
        f"exporters:\n  otlp_http:\n    endpoint: {backend}\nservice:\n{service}"
        "  pipelines:\n    profiles:\n      receivers: [otlp]\n"
        "      processors: [batch]\n      exporters: [otlp_http]\n"
    )


def request(number, samples=50):
    """Requests differ in some functions and share others, as those of one program do."""
    builder = profiles.Builder({"service.name": "shop", "process.pid": 7})
    builder.profile("samples:count", ("cpu:nanoseconds", 10_000_000), at_ns=10**18 + number)
    for index in range(samples):
        frames = [f"leaf-{number}-{index % 7}", f"shared-{index % 5}", "main"]
        link = LINK if index % 3 == 0 else None
        builder.sample(frames, index + 1, link, worker=f"w{index % 4}", cpu=index % 2)
    builder.profile("alloc_space:bytes", at_ns=10**18 + number)
    builder.sample([f"alloc-{number}", "main"], 4096)
    return builder.bytes()


class Whole(case.Case):
    def exchange(self, size, bodies, over):
        sink = self.sink()
        grpc, http = free_port(), free_port()
        batch = BATCH.format(size=size)
        daemon = self.daemon(config(grpc, http, sink.url, batch))
        wanted = profiles.samples_of(bodies)
        if over == "grpc":
            connection = self.grpc(grpc)
            for number, body in enumerate(bodies):
                response = connection.export(
                    "profiles", body, compressed=number % 2 == 1, method=profiles.SERVICE
                )
                self.assertEqual(response, ("OK", ""))
        else:
            for body in bodies:
                self.assertEqual(self.post(http, body).status, 200)

        def is_whole(requests):
            found = profiles.samples_of(r.payload for r in requests)
            return sum(found.values()) >= sum(wanted.values())

        requests = sink.wait(is_whole)
        self.assertEqual({r.path for r in requests}, {profiles.PATH})
        self.assertEqual(profiles.samples_of(r.payload for r in requests), wanted)
        return daemon, [r.payload for r in requests]

    def post(self, http, body):
        return client.request(
            http, "POST", profiles.PATH, body, {"Content-Type": client.PROTOBUF}
        )

    def test_many_requests_become_few(self):
        bodies = [request(number) for number in range(20)]
        _, payloads = self.exchange(10_000, bodies, "grpc")
        self.assertLess(len(payloads), len(bodies))
        self.assertLess(sum(map(len, payloads)), sum(map(len, bodies)))

    def test_one_request_becomes_many(self):
        _, payloads = self.exchange(30, [request(1, samples=300)], "http")
        self.assertGreaterEqual(len(payloads), 10)
        for payload in payloads:
            self.assertLessEqual(sum(profiles.samples_of([payload]).values()), 30)
            self.check_nothing_is_unused(payload)

    def check_nothing_is_unused(self, payload):
        """Each table holds what samples refer to and the zero value, and each entry once."""
        dictionary = profiles.REQUEST.FromString(payload).dictionary
        functions = {f.name_strindex for f in dictionary.function_table}
        self.assertEqual(len(functions), len(dictionary.function_table))
        self.assertEqual(len(set(dictionary.string_table)), len(dictionary.string_table))
        used = {
            line.function_index for place in dictionary.location_table for line in place.lines
        }
        self.assertEqual(used | {0}, set(range(len(dictionary.function_table))))
        used = {index for stack in dictionary.stack_table for index in stack.location_indices}
        self.assertEqual(used | {0}, set(range(len(dictionary.location_table))))

    def test_a_request_larger_than_grpc_takes_by_itself(self):
        builder = profiles.Builder().profile("samples:count", ("cpu:nanoseconds", 1))
        for number in range(5):
            builder.sample([f"{number}" * 2**20, "main"], 1)
        body = builder.bytes()
        self.assertGreater(len(body), 4 * 2**20)
        self.exchange(1000, [body], "grpc")

    def test_a_broken_profile_is_rejected_and_its_neighbours_arrive(self):
        sink = self.sink()
        grpc, http, figures = free_port(), free_port(), free_port()
        self.daemon(config(grpc, http, sink.url, service=case.metrics_service(figures)))
        good, bad = request(1), profiles.REQUEST.FromString(request(2))
        bad.resource_profiles[0].scope_profiles[0].profiles[0].samples[3].stack_index = 10**6
        response = self.post(http, bad.SerializeToString())
        self.assertEqual(response.status, 200)
        partial = profiles.RESPONSE.FromString(response.body).partial_success
        self.assertEqual(partial.rejected_profiles, 1)
        self.assertIn("stack", partial.error_message)
        self.assertEqual(metrics.Metrics(figures).sum("spanflame_profiles_rejected"), 1)
        self.assertEqual(self.post(http, good).status, 200)
        self.assertEqual(metrics.Metrics(figures).sum("spanflame_profiles_rejected"), 1)
        wanted = profiles.samples_of([good]).total() + 1
        requests = sink.wait(
            lambda requests: profiles.samples_of(r.payload for r in requests).total() >= wanted
        )
        self.assertEqual(profiles.samples_of(r.payload for r in requests).total(), wanted)


class AsyncProfiler(case.Case):
    """Two layouts from one program."""

    def setUp(self):
        peers.need("async-profiler")

    def test_every_release_arrives_in_the_native_layout(self):
        sink = self.sink()
        grpc, http, figures = free_port(), free_port(), free_port()
        text = config(grpc, http, sink.url, service=case.metrics_service(figures))
        self.daemon(text)
        for version in async_profiler.VERSIONS:
            with self.subTest(version):
                body = async_profiler.record(version, "itimer", service=f"java-{version}")
                before = len(sink.requests)
                response = client.request(
                    http, "POST", profiles.PATH, body, {"Content-Type": client.PROTOBUF}
                )
                self.assertEqual(response.status, 200)
                payload = sink.wait_for_requests(before + 1)[before].payload
                samples = profiles.samples_of([payload])
                stacks = [names for _, names, *_ in samples]
                self.assertTrue(any("peer/Busy.hot" in names for names in stacks), stacks)
                kinds = {kind for kind, *_ in samples}
                self.assertLessEqual(kinds, {"itimer:count", "itimer:ns"})
        seen = metrics.Metrics(figures)
        for layout in ("1.7", "1.9"):
            self.assertEqual(seen.sum("spanflame_profiles_received", layout=layout), 2, layout)

    def test_every_release_reaches_a_pyroscope_by_otlp_http(self):
        """Its OTLP endpoint refuses profiles without a period type; they then go to its Push API."""
        words = b"push series with index 0 failed: invalid labels '{}' with error: invalid metric name"
        refusal = Reply(400, {"Content-Type": "text/plain; charset=utf-8"}, words)
        for version in async_profiler.VERSIONS:
            with self.subTest(version):
                sink = self.sink(by_path={profiles.PATH: refusal})
                grpc, http = free_port(), free_port()
                daemon = self.daemon(config(grpc, http, sink.url))
                body = async_profiler.record(version, "itimer")
                for wanted in (2, 3):  # refused, then pushed; then it is known
                    response = client.request(
                        http, "POST", profiles.PATH, body, {"Content-Type": client.PROTOBUF}
                    )
                    self.assertEqual(response.status, 200)
                    requests = sink.wait_for_requests(wanted)
                pushes = [r for r in requests if r.path == "/push.v1.PusherService/Push"]
                self.assertEqual(len(pushes), 2, [r.path for r in requests])
                for push in pushes:
                    self.assertIn(b"process_cpu", push.payload)
                    self.assertIn(b"peer/Busy.hot", push.payload)
                daemon.wait_for_line("The back-end is a Pyroscope server")


class Appendix(case.Case):
    """The example configuration that people start from, with other hosts and ports only."""

    def test_traces_and_profiles_arrive(self):
        certificate, key = certificates.self_signed(self)
        back_end = self.sink(certificate=certificate, key=key)
        profiles_sink = self.sink()
        grpc, http, third = free_port(), free_port(), free_port()
        text = example.CONFIG.format(
            grpc=grpc,
            http=http,
            profiles=third,
            traces=back_end.url.replace("127.0.0.1", "localhost"),
            pyroscope=profiles_sink.url,
        )
        self.daemon(text, environment={"BACKEND_TOKEN": "t0k3n", "SSL_CERT_FILE": certificate})
        self.assertEqual(self.grpc(grpc).export("traces", otlp.traces(3).SerializeToString())[0], "OK")
        body = request(1)
        response = self.grpc(third).export("profiles", body, method=profiles.SERVICE)
        self.assertEqual(response, ("OK", ""))
        (spans,) = back_end.wait_for_requests(1)
        self.assertEqual(spans.headers["x-token"], "t0k3n")
        self.assertEqual(len(otlp.spans_of([spans.payload])), 3)
        (sent,) = profiles_sink.wait_for_requests(1)
        self.assertEqual(profiles.samples_of([sent.payload]), profiles.samples_of([body]))


if __name__ == "__main__":
    case.main()
