# SPDX-License-Identifier: Apache-2.0
"""explore: what arrives over OTLP is shown as JSON, to those who may see it."""

import contextlib
import gzip
import http.client
import json
import pathlib
import re
import signal
import socket
import tempfile
import urllib.parse

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from support import case, client, otlp, process, profiles
from support.metrics import Metrics
from support.ports import free_port

WITHIN_S = 30
TIME_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def config(ports, host="127.0.0.1", keys=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{ports['http']}\n"
        "exporters:\n  explore:\n"
        f"extensions:\n  explore:\n    endpoint: {host}:{ports['page']}\n{keys}"
        f"service:\n  lanes: 2\n  extensions: [explore]\n{case.metrics_service(ports['own'])}  pipelines:\n"
        "    traces:\n      receivers: [otlp]\n      exporters: [explore]\n"
        "    profiles:\n      receivers: [otlp]\n      exporters: [explore]\n"
    )


def trace(serial, spans=3, error=False):
    """A root of `spans` * 10 ms with children one after the other."""
    request = ExportTraceServiceRequest()
    for service in ("front", "cart"):
        group = request.resource_spans.add()
        otlp.add_attributes(group.resource.attributes, {"service.name": service})
        scope = group.scope_spans.add()
        scope.scope.name = "lib"
        for index in [0] if service == "front" else range(1, spans):
            span = scope.spans.add(
                trace_id=serial.to_bytes(16, "big"),
                span_id=(serial * 1000 + index + 1).to_bytes(8, "big"),
                parent_span_id=(serial * 1000 + 1).to_bytes(8, "big") if index else b"",
                name="query" if index else "GET /",
                start_time_unix_nano=TIME_NS + serial * MS + index * 10 * MS,
                end_time_unix_nano=TIME_NS + serial * MS + (index + 1 if index else spans) * 10 * MS,
            )
            otlp.add_attributes(span.attributes, {"user": serial, "text": "<img src=x onerror=alert(1)>"})
            if error and index == 1:
                span.status.code = Status.STATUS_CODE_ERROR
            span.events.add(name="begun", time_unix_nano=span.start_time_unix_nano + MS)
    return request.SerializeToString()


class Explore(case.Case):
    def setUp(self):
        self.ports = {name: free_port() for name in ("http", "page", "own")}

    def ask(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["page"], timeout=WITHIN_S)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            received = connection.getresponse()
            names = {name.lower(): value for name, value in received.getheaders()}
            return client.Response(received.status, names, received.read())

    def get(self, path, **query):
        reply = self.ask(f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
        self.assertEqual(reply.status, 200, reply.body)
        return json.loads(reply.body)

    def start(self, count):
        self.server(config(self.ports)).wait_until_ready()
        for serial in range(1, count + 1):
            body = trace(serial, spans=serial + 2, error=serial == 2)
            self.assertEqual(client.post(self.ports["http"], "traces", body).status, 200)
        process.poll_until(
            lambda: self.get("status")["traces"] == count, WITHIN_S, f"{count} traces are shown"
        )

    def test_lists_and_filters(self):
        self.start(5)
        listed = self.get("traces")
        self.assertEqual(listed["total"], 5)
        # By arrival; that of what came at once over several lanes is not known.
        cursors = [int(one["cursor"]) for one in listed["traces"]]
        self.assertEqual(cursors, [5, 4, 3, 2, 1])
        self.assertEqual(listed["traces"][0]["root"], {"service": "front", "name": "GET /", "kind": "unspecified"})
        ids = lambda **query: sorted(int(one["id"], 16) for one in self.get("traces", **query)["traces"])
        self.assertEqual(ids(error=1), [2])
        self.assertEqual(ids(attr="user=3"), [3])
        self.assertEqual(ids(min="55ms"), [4, 5])
        self.assertEqual(ids(max="30ms"), [1])
        self.assertEqual(ids(service="cart", name="query"), [1, 2, 3, 4, 5])
        self.assertEqual(ids(service="front", name="query"), [])
        self.assertEqual(ids(service="unknown"), [])
        self.assertEqual(ids(profile=1), [])
        page = self.get("traces", limit=2)
        self.assertTrue(page["more"])
        rest = self.get("traces", before=page["traces"][-1]["cursor"])["traces"]
        self.assertEqual(cursors, [int(one["cursor"]) for one in page["traces"] + rest])
        services = {one["name"]: one for one in self.get("services")["services"]}
        self.assertEqual(services["front"]["spans"], 5)
        self.assertEqual(services["cart"]["errors"], 1)
        names = {one["name"]: one for one in self.get("spans", service="cart")["names"]}
        self.assertAlmostEqual(names["query"]["p50"], 10 * MS, delta=0.5 * MS)
        self.assertEqual(len(self.get("scatter")["points"]), 5)
        self.assertIn("no profiles", self.get("flame", service="cart")["why"])

    def test_shows_a_trace(self):
        self.start(3)
        name = f"traces/{3:032x}"
        head = self.get(name)
        self.assertEqual((head["spans"], head["duration"]), (5, 50 * MS))
        window = self.get(f"{name}/rows", **{"from": 1, "count": 2})
        self.assertEqual((window["from"], window["total"], len(window["rows"])), (1, 5, 2))
        self.assertEqual([row[6] for row in window["rows"]], ["query", "query"])
        self.assertEqual(window["events"]["1"], [[MS, "begun"]])
        self.assertEqual(self.get(f"{name}/find", q="ONERROR")["rows"], [0, 1, 2, 3, 4])
        span = self.get(f"{name}/spans/{3001:016x}")
        self.assertEqual(span["span"]["name"], "GET /")
        self.assertEqual(span["bar"], {"onCpu": 0, "children": 40 * MS, "unexplained": 10 * MS})
        saved = self.ask(f"/api/v1/download?trace={3:032x}")
        self.assertEqual(len(json.loads(saved.body)["resourceSpans"]), 2)
        for path, status in (
            ("traces/xyz", 400), (f"traces/{9:032x}", 404), (f"{name}/spans/{1:016x}", 404), ("nothing", 404),
            ("traces?min=soon", 400), ("traces?limit=1000000", 400), ("traces?attr=novalue", 400), ("traces?a=%2", 400),
            ("flame?trace=1", 400), ("diff?a=x%3D1", 400), ("flame?view=sandwich", 400),
        ):
            with self.subTest(path):
                reply = self.ask(f"/api/v1/{path}")
                self.assertEqual(reply.status, status)
                self.assertGreater(len(json.loads(reply.body)["error"]), 10)

    def profile(self, serial, shares):
        """CPU profile of the spans of a trace: {span number: [(stack, milliseconds)]}."""
        builder = profiles.Builder({"service.name": "cart"})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), TIME_NS)
        ids = serial.to_bytes(16, "big")
        for number, stacks in shares.items():
            span = (serial * 1000 + number).to_bytes(8, "big")
            for stack, ms in stacks:
                builder.sample(stack, ms * MS, link=(ids, span))
        reply = client.request(
            self.ports["http"], "POST", profiles.PATH, builder.request.SerializeToString(),
            {"Content-Type": client.PROTOBUF},
        )
        self.assertEqual(reply.status, 200, reply.body)
        process.poll_until(
            lambda: self.get("flame", trace=f"{serial:032x}").get("samples"), WITHIN_S, "the profile is kept"
        )

    def tool(self, *words, **environment):
        environment = {"SPANFLAME_EXPLORE_URL": f"http://127.0.0.1:{self.ports['page']}/", **environment}
        done = process.run(*words, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_commands_print_tables_and_json(self):
        self.start(3)
        self.profile(3, {1: [(["parse", "main"], 100)], 2: [(["render", "main"], 300)]})
        self.profile(1, {1: [(["parse", "main"], 50)]})
        name = f"{3:032x}"
        listed = json.loads(self.tool("traces", "list", "--attr", "user=3", "--json"))
        self.assertEqual([one["id"] for one in listed["traces"]], [name])
        table = self.tool("traces", "list", "--min=35ms", "--profile")
        self.assertIn(name, table)
        self.assertIn("front GET /", table)
        self.assertIn("50.00ms", table)
        self.assertIn("1 in all", table)
        shown = self.tool("traces", "show", name)
        self.assertRegex(shown, f"(?m)^ *0 +50.00ms +10.00ms .* {3001:016x}  front GET /$")
        self.assertRegex(shown, f"(?m) {3002:016x}    cart query$")
        self.assertIn("2 of 5 spans", self.tool("traces", "show", name, "--limit", "2"))
        self.assertRegex(self.tool("traces", "services"), "(?m)yes  cart$")
        self.assertRegex(self.tool("traces", "names", "--service=cart"), "(?m)^ +9 .* 33.33ms  cart query$")
        names = {one["service"]: one for one in self.get("spans")["names"]}
        # 300 ms in 9 calls; 150 ms in 3.
        self.assertAlmostEqual(names["cart"]["cpuPerCall"], 300 * MS / 9, delta=1)
        self.assertEqual(names["front"]["cpuPerCall"], 50 * MS)
        self.assertEqual((names["cart"]["samples"], names["front"]["samples"]), (30, 15))
        self.assertEqual(len(json.loads(self.tool("traces", "save", name))["resourceSpans"]), 2)
        top = self.tool("flame", "top", "--trace", name)
        self.assertRegex(top, r"(?m)^cpu: 400.00ms, \d+ samples, ± \d+ %$")
        self.assertRegex(top, r"(?m)^ +300.00ms   75.0% .* render$")
        tree = self.tool("flame", "tree", "--trace", name, "--span", f"{3001:016x}")
        self.assertRegex(tree, r"(?m)^ +100.00ms  100.0% +0    main$")
        self.assertRegex(tree, r"(?m)^ +100.00ms  100.0% +100.00ms      parse$")
        self.assertNotIn("render", tree)
        difference = self.tool("flame", "diff", f"trace={name}", f"not-trace={name}")
        self.assertRegex(difference, r"(?m)\+75.0%  parse$")
        self.assertIn("main;render 300000000", self.tool("flame", "folded", "--trace", name))
        self.assertIn("No samples: ", self.tool("flame", "top", "--trace", f"{2:032x}"))

    def test_saves_pprof(self):
        self.start(3)
        self.profile(3, {1: [(["parse", "main"], 100)], 2: [(["render", "main"], 300)]})
        self.profile(1, {1: [(["parse", "main"], 50)]})
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cart.pb.gz"
            for words, wanted in (
                (("--trace", f"{3:032x}"), {"parse": 100, "render": 300}),
                (("--trace", f"{3:032x}", "--span", f"{3001:016x}"), {"parse": 100}),
                (("--service", "cart"), {"parse": 150, "render": 300}),
                (("--not-trace", f"{3:032x}"), {"parse": 50}),
            ):
                with self.subTest(words):
                    self.tool("flame", "pprof", "-o", path, *words)
                    shown = json.loads(process.run("profile", "show", path, "--json").stdout)
                    (cpu,) = shown["types"]
                    flat = {one["name"]: one["flat"] for one in cpu["functions"] if one["flat"]}
                    self.assertEqual(flat, {name: ms * MS for name, ms in wanted.items()})
        for query in ("service=nobody", f"trace={2:032x}"):
            reply = self.ask(f"/api/v1/download?format=pprof&{query}")
            self.assertEqual(reply.status, 404, reply.body)

    def test_commands_say_what_is_wrong(self):
        self.server(config(self.ports)).wait_until_ready()
        url = f"--url=http://127.0.0.1:{self.ports['page']}"
        for words, text in (
            (("traces", "list", "--min=soon", url), "status 400: min"), (("traces", "show", url), "found 0 words"),
            (("traces", "show", "12", url), "32 hexadecimal digits"), (("traces", "list", "--url=localhost"), "http://"),
            (("traces", "show", f"{9:032x}", url), "no such trace"), (("flame", "top", "--min=1", url), "unknown flag"),
            (("flame", "top", f"--url=http://127.0.0.1:{free_port()}"), "no answer from"),
            (("traces", "list", f"--url=http://127.0.0.1:{self.ports['own']}/metrics"), "status 404"),
        ):
            with self.subTest(words):
                done = process.run(*words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(text, done.stderr)

    def test_commands_log_in(self):
        server = self.server(config(self.ports, host="0.0.0.0")).wait_until_ready()
        address = f"http://127.0.0.1:{self.ports['page']}/"
        refused = process.run("traces", "services", environment={"SPANFLAME_EXPLORE_URL": address})
        self.assertIn("401: a token is required", refused.stderr)
        printed = address + re.findall(r"#token=[0-9a-f]{32}", server.log())[-1]
        done = process.run("traces", "services", "--url", printed)
        self.assertEqual(done.returncode, 0, done.stderr)
        session = re.search(r"SPANFLAME_EXPLORE_TOKEN=([0-9a-f]{32})", done.stderr)[1]
        self.assertIn("SERVICE", self.tool("traces", "services", SPANFLAME_EXPLORE_TOKEN=session))
        self.assertIn("401", process.run("traces", "services", "--url", printed).stderr)

    def ids(self):
        return sorted(int(one["id"], 16) for one in self.get("traces", limit=1000)["traces"])

    def flat(self):
        top = self.get("flame", service="cart", view="top")
        return {top["names"][row[0]]: row[2] for row in top.get("top", [])}

    def kept_in(self, folder, count):
        """A daemon whose page has `count` traces, each with a profile."""
        text = config(self.ports, keys=f"    directory: {folder}/kept\n")
        server = self.server(text).wait_until_ready()
        for serial in range(1, count + 1):
            self.assertEqual(client.post(self.ports["http"], "traces", trace(serial)).status, 200)
        process.poll_until(lambda: self.get("status")["traces"] == count, WITHIN_S, f"{count} traces are shown")
        self.profile(1, {1: [(["parse", "main"], 50)]})
        return server, text

    def test_keeps_its_directory_over_restarts(self):
        with tempfile.TemporaryDirectory() as folder:
            server, text = self.kept_in(folder, 5)
            shown = self.get(f"traces/{1:032x}/spans/{1002:016x}")
            for round in range(2):
                self.assertEqual(server.stop(), 0)
                names = sorted(path.name for path in pathlib.Path(folder, "kept").iterdir())
                self.assertEqual([name.split(".", 1)[1] for name in names], ["traces", "profiles"])
                server = self.server(text).wait_until_ready()
                process.poll_until(lambda: self.ids() == [1, 2, 3, 4, 5], WITHIN_S, "the traces are back")
                self.assertEqual(self.flat(), {"parse": 50 * MS, "main": 0})
            self.assertEqual(self.get(f"traces/{1:032x}/spans/{1002:016x}")["span"], shown["span"])
            self.assertEqual(self.get(f"traces/{1:032x}")["spans"], 3)
            second = process.run("--config", server.config_path)
            self.assertEqual(second.returncode, 1)

    def test_keeps_its_directory_after_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            server, text = self.kept_in(folder, 5)
            kept = pathlib.Path(folder, "kept")
            opened = lambda: {path.name.split(".")[1] for path in kept.iterdir() if path.name.endswith(".open")}
            process.poll_until(lambda: opened() == {"traces", "profiles"}, WITHIN_S, "what is open is saved")
            server.process.kill()
            server.process.wait()
            # A torn write, half a record, and a stranger's file.
            (kept / "0000000000000009.traces.open.part").write_bytes(b"spanf")
            whole = next(kept.glob("*.traces.open")).read_bytes()
            (kept / "0000000000000010.traces").write_bytes(whole[: len(whole) // 2])
            (kept / "0000000000000011.traces").write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
            (kept / "notes.txt").write_text("mine")
            server = self.server(text).wait_until_ready()
            process.poll_until(lambda: self.ids() == [1, 2, 3, 4, 5], WITHIN_S, "the traces are back")
            self.assertEqual(self.get(f"traces/{1:032x}")["spans"], 3)
            self.assertEqual(self.flat(), {"parse": 50 * MS, "main": 0})
            self.assertIn("are broken", server.log())
            self.assertTrue((kept / "notes.txt").exists())
            self.assertFalse((kept / "0000000000000009.traces.open.part").exists())

    def test_a_reload_keeps_what_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            for keys in ("", f"    directory: {folder}/kept\n"):
                with self.subTest(keys):
                    server = self.server(config(self.ports, keys=keys)).wait_until_ready()
                    for serial in (1, 2):
                        self.assertEqual(client.post(self.ports["http"], "traces", trace(serial)).status, 200)
                    process.poll_until(lambda: self.get("status")["traces"] == 2, WITHIN_S, "two traces are shown")
                    self.profile(1, {1: [(["parse", "main"], 50)]})
                    server.signal(signal.SIGHUP)
                    process.poll_until(lambda: server.log().count(process.READY) == 2, WITHIN_S, "it is reloaded")
                    self.assertEqual(self.ids(), [1, 2])
                    self.assertEqual(self.flat(), {"parse": 50 * MS, "main": 0})
                    self.assertEqual(client.post(self.ports["http"], "traces", trace(3)).status, 200)
                    process.poll_until(lambda: self.ids() == [1, 2, 3], WITHIN_S, "and the next one")
                    self.assertEqual(server.stop(), 0, server.log())
            server = self.server(config(self.ports, keys=keys)).wait_until_ready()
            process.poll_until(lambda: self.ids() == [1, 2, 3], WITHIN_S, "the traces are back")
            self.assertEqual(self.get(f"traces/{1:032x}")["spans"], 3)
            self.assertEqual(self.flat(), {"parse": 50 * MS, "main": 0})

    @contextlib.contextmanager
    def events(self, query, headers=None, address="127.0.0.1"):
        """Yields a function that returns the next event of a stream: its fields by name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["page"], timeout=WITHIN_S, source_address=(address, 0))
        with contextlib.closing(connection):
            connection.request("GET", f"/api/v1/live?{query}", headers=headers or {})
            received = connection.getresponse()
            self.assertEqual(received.status, 200)
            self.assertEqual(received.getheader("content-type"), "text/event-stream; charset=utf-8")
            self.assertEqual(received.getheader("transfer-encoding"), "chunked")

            def event():
                lines = iter(lambda: received.readline().decode().rstrip("\n"), "")
                return dict(line.split(": ", 1) for line in lines)

            yield event

    def test_many_events_come_on_one_response(self):
        self.start(1)
        ids = []
        with self.events("service=front") as event:
            self.assertEqual(json.loads(event()["data"])["traces"], 1)
            for serial in (2, 3):
                self.assertEqual(client.post(self.ports["http"], "traces", trace(serial)).status, 200)
                news = event()
                self.assertEqual(news["event"], "new")
                self.assertEqual(json.loads(news["data"])["count"], 1)
                ids.append(news["id"])
        # A browser that comes back says what it has seen.
        with self.events("service=front", {"Last-Event-ID": ids[0]}) as event:
            self.assertEqual(event()["event"], "status")
            self.assertEqual(json.loads(event()["data"])["count"], 1)

    def open_stream(self, stack, address):
        event = stack.enter_context(self.events("", address=address))
        self.assertEqual(event()["event"], "status")
        return event

    def assert_ends(self, event):
        """The stream is over, and the browser shall not come back at once."""
        self.assertEqual(event(), {"retry": "60000"})
        self.assertEqual(event(), {})

    def test_no_client_keeps_others_from_live_updates(self):
        self.start(1)
        with contextlib.ExitStack() as stack:
            greedy = [self.open_stream(stack, "127.0.0.2") for _ in range(16)]
            others = [self.open_stream(stack, "127.0.0.1") for _ in range(8)]
            for event in greedy[:8]:
                self.assert_ends(event)
            # Each has eight: the newest of a client takes the place of its own oldest one.
            others.append(self.open_stream(stack, "127.0.0.1"))
            self.assert_ends(others[0])
            greedy.append(self.open_stream(stack, "127.0.0.2"))
            self.assert_ends(greedy[8])
            self.assertEqual(client.post(self.ports["http"], "traces", trace(2)).status, 200)
            for event in greedy[9:] + others[1:]:
                self.assertEqual(event()["event"], "new")

    def test_streams_are_bounded_and_end_with_their_readers(self):
        self.start(1)
        with contextlib.ExitStack() as stack:
            for host in range(2, 18):
                self.open_stream(stack, f"127.0.0.{host}")
            refused = self.ask("/api/v1/live")
            self.assertEqual((refused.status, refused.headers["retry-after"]), (503, "1"))
        head = lambda: self.ask("/api/v1/live", method="HEAD").status
        self.assertEqual(head(), 200)

        def is_free():
            with contextlib.suppress(AssertionError):
                with self.events("") as event:
                    return event()["event"] == "status"
            return False

        process.poll_until(is_free, WITHIN_S, "the streams of those that have gone are free")

    def test_the_whole_page_is_small(self):
        self.start(1)
        sizes, todo = {}, ["/"]
        while todo:
            path = todo.pop()
            reply = self.ask(path, {"Accept-Encoding": "gzip"})
            self.assertEqual((reply.status, reply.headers.get("content-encoding")), (200, "gzip"), path)
            sizes[path] = len(reply.body)
            text = gzip.decompress(reply.body).decode()
            named = re.findall(r"""(?:href|src|from|import\(|import|url\()[ =]*["'(]?(?:\./)?([\w-]+\.(?:js|css|svg))""", text)
            todo += [f"/{name}" for name in named if f"/{name}" not in sizes and f"/{name}" not in todo]
        self.assertLessEqual({"/app.js", "/pprof.js", "/local.js", "/page.css"}, set(sizes))
        self.assertLessEqual(sum(sizes.values()), 100 * 1024, sizes)

    def test_refuses_strangers(self):
        self.start(1)
        port = self.ports["page"]
        for headers, status in (
            ({"Host": "evil.example.com"}, 421), ({"Host": f"localhost:{port}"}, 200), ({"Host": f"[::1]:{port}"}, 200),
            ({"Host": f"localhost.evil.example.com:{port}"}, 421),
            ({"Host": f"127.evil.example.com:{port}"}, 421), ({"Host": f"127.0.0.1.evil.example.com:{port}"}, 421),
            ({"Origin": "http://evil.example.com"}, 403),
            ({"Origin": f"http://127.0.0.1:{port}"}, 200), ({"Origin": "null"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
        ):
            with self.subTest(headers):
                self.assertEqual(self.ask("/api/v1/status", headers).status, status)
        self.assertEqual(self.ask("/api/v1/status", method="POST").status, 405)
        page = self.ask("/")
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'none'", page.headers["content-security-policy"])
        self.assertEqual(page.headers["x-content-type-options"], "nosniff")
        self.assertEqual(self.ask("/", {"If-None-Match": page.headers["etag"]}).status, 304)

    def test_demands_a_token_beyond_loopback(self):
        server = self.server(config(self.ports, host="0.0.0.0")).wait_until_ready()
        self.assertEqual(self.ask("/").status, 200)
        self.assertEqual(self.ask("/api/v1/status").status, 401)
        token = re.findall(r"#token=([0-9a-f]{32})", server.log())[-1]
        wrong = {"Authorization": f"Bearer {token[::-1]}"}
        self.assertEqual(self.ask("/api/v1/session", wrong).status, 401)
        reply = self.ask("/api/v1/session", {"Authorization": f"Bearer {token}"})
        self.assertEqual(reply.status, 200)
        cookie = reply.headers["set-cookie"]
        self.assertIn("SameSite=Strict", cookie)
        self.assertIn("HttpOnly", cookie)
        self.assertEqual(self.ask("/api/v1/status", {"Cookie": cookie.split(";")[0]}).status, 200)
        # Used once.
        self.assertEqual(self.ask("/api/v1/session", {"Authorization": f"Bearer {token}"}).status, 401)

    def test_needs_its_extension(self):
        text = config(self.ports).replace("  extensions: [explore]\n", "")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            result = process.run("validate", "--config", file.name)
        self.assertEqual(result.returncode, 1)
        self.assertIn("service::extensions", result.stderr)

    def test_a_reload_that_adds_a_directory_saves_what_there_is(self):
        with tempfile.TemporaryDirectory() as folder:
            keeping = config(self.ports, keys=f"    directory: {folder}/kept\n")
            server = self.server(config(self.ports)).wait_until_ready()
            for serial in (1, 2):
                self.assertEqual(client.post(self.ports["http"], "traces", trace(serial)).status, 200)
            process.poll_until(lambda: self.ids() == [1, 2], WITHIN_S, "two traces are shown")
            self.profile(1, {1: [(["parse", "main"], 50)]})
            pathlib.Path(server.config_path).write_text(keeping, encoding="utf-8")
            server.signal(signal.SIGHUP)
            process.poll_until(lambda: server.log().count(process.READY) == 2, WITHIN_S, "it is reloaded")
            self.assertEqual(self.ids(), [1, 2])
            self.assertEqual(server.stop(), 0, server.log())
            self.server(keeping).wait_until_ready()
            process.poll_until(lambda: self.ids() == [1, 2], WITHIN_S, "the traces are back")
            self.assertEqual(self.flat(), {"parse": 50 * MS, "main": 0})

    def test_pictures_the_pipelines(self):
        self.start(2)
        picture = self.get("pipelines")
        nodes = {node["id"]: node for node in picture["nodes"]}
        self.assertEqual(set(nodes), {"receiver/otlp", "exporter/explore"})
        self.assertEqual(nodes["receiver/otlp"]["metrics"]["items"], 7)
        self.assertEqual(nodes["exporter/explore"]["metrics"]["items"], 7)
        self.assertEqual(nodes["receiver/otlp"]["line"], 2)
        edge = {"from": "receiver/otlp", "to": "exporter/explore"}
        edges = [{**edge, "pipeline": signal, "signal": signal} for signal in ("traces", "profiles")]
        self.assertCountEqual(picture["edges"], edges)
        self.assertEqual(set(picture["series"]["nodes"]), set(nodes))
        self.assertNotIn("join", picture)
        self.assertNotIn("journal", picture)

    def test_answers_what_still_waits_while_it_stops(self):
        """More questions on one connection than their answers fit in its buffers, read after SIGTERM."""
        server = self.server(config(self.ports)).wait_until_ready()
        question = b"GET /api/v1/pipelines HTTP/1.1\r\nHost: localhost\r\n\r\n"
        count = 4000
        connection = socket.create_connection(("127.0.0.1", self.ports["page"]), timeout=WITHIN_S)
        with contextlib.closing(connection):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, count * len(question))
            connection.sendall(question * count)
            connection.recv(1, socket.MSG_PEEK)
            server.signal(signal.SIGTERM)
            process.poll_until(lambda: not self.listens("page"), WITHIN_S, "it stops listening")
            # It may close before it has read all questions.
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(1 << 20):
                    pass
        self.assertEqual(server.wait(), 0, server.last_lines())

    def listens(self, name):
        try:
            socket.create_connection(("127.0.0.1", self.ports[name]), timeout=WITHIN_S).close()
            return True
        except OSError:
            return False

    def test_shows_what_the_join_and_the_journal_hold(self):
        with tempfile.TemporaryDirectory() as folder:
            text = config(self.ports).replace(
                "exporters:\n  explore:\n",
                "processors:\n  trace_profile_join: {hold: 60s}\n"
                "exporters:\n  explore:\n"
                f"  otlp_http:\n    endpoint: http://user:hush@127.0.0.1:{free_port()}\n"
                "    headers: {authorization: hush}\n    sending_queue: {storage: file_storage}\n",
            ).replace("exporters: [explore]", "exporters: [explore, otlp_http]", 1)
            text = text.replace("extensions: [explore]", "extensions: [explore, file_storage]").replace(
                "extensions:\n", f"extensions:\n  file_storage: {{directory: {folder}, create_directory: true}}\n", 1
            )
            text = text.replace("      exporters: [explore]", "      processors: [trace_profile_join]\n      exporters: [explore]")
            text = text.replace("    traces:\n      receivers: [otlp]", "    traces:\n      receivers: [otlp]\n      processors: [trace_profile_join]")
            self.server(text).wait_until_ready()
            self.assertEqual(client.post(self.ports["http"], "traces", trace(1)).status, 200)
            process.poll_until(lambda: self.get("status")["traces"] == 1, WITHIN_S, "the trace is shown")
            builder = profiles.Builder({"service.name": "cart"})
            builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), TIME_NS)
            builder.sample(["main"], 10 * MS, link=(b"\7" * 16, b"\7" * 8))
            body = builder.request.SerializeToString()
            self.assertEqual(client.request(self.ports["http"], "POST", profiles.PATH, body, {"Content-Type": client.PROTOBUF}).status, 200)
            process.poll_until(lambda: self.get("pipelines")["join"]["held"] == 1, WITHIN_S, "the join holds it")
            picture = self.get("pipelines")
            self.assertGreater(picture["join"]["heldBytes"], 100)
            self.assertEqual(picture["journal"]["backlogRecords"], 1)
            self.assertGreater(picture["journal"]["backlogBytes"], 100)
            why = self.get("flame", trace=f"{1:032x}")["why"]
            self.assertIn("trace_profile_join holds 1 request", why)
            self.assertTrue(self.get("status")["joinConfigured"])
            detail = self.get("pipelines", node="exporter/otlp_http")
            self.assertIn("authorization: '[REDACTED]'", detail["yaml"])
            self.assertIn("endpoint: '[REDACTED]'", detail["yaml"])
            self.assertNotIn("hush", detail["yaml"])
            detail = self.get("pipelines", node="receiver/otlp")
            self.assertIn(f"endpoint: 127.0.0.1:{self.ports['http']}", detail["yaml"])
            counters = {(one["name"], *one["labels"].values()): one["value"] for one in detail["counters"]}
            self.assertEqual(counters["otelcol_receiver_accepted_spans", "http"], 3)
            detail = self.get("pipelines", node="processor/trace_profile_join@traces")
            self.assertTrue(detail["yaml"].startswith("trace_profile_join:"))
            self.assertEqual(self.ask("/api/v1/pipelines?node=receiver/none").status, 404)

    def test_counts_what_is_not_kept(self):
        self.start(1)
        page = Metrics(self.ports["own"])
        self.assertEqual(page.sum("spanflame_explore_not_kept_total", reason="ring_full"), 0)


if __name__ == "__main__":
    case.main()
