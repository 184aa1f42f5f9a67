# SPDX-License-Identifier: Apache-2.0
"""The explore page in a real browser: what a person does with it, with data of real SDKs."""

import base64
import gzip
import json
import pathlib
import re
import tempfile
import time
import urllib.request
import uuid

from support import case, client, otlp, process, profiled, profiles
from support.browser import NARROW, WIDE, Browser, need
from support.ports import free_port

MS = 10**6
SECOND = 10**9
PAYLOADS = [
    "<script>window.canary = 1</script>",
    "<img src=x onerror='window.canary = 1'>",
    "\"'><svg onload=window.canary=1>",
    "javascript:window.canary=1",
    "</style><style>*{display:none}</style>",
    "{{constructor.constructor('window.canary=1')()}}",
    "\u202egnp.exe\u202c\u200f\u2066",
    "Z\u0351\u036b\u0343\u036a\u0302" * 60,
    "\n\r\t\x00\x07\x1b[31m",
    "W" * 3000,
]
EVERYWHERE = 50  # of each payload: 500 in all


def config(ports, host="localhost"):
    return (
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{ports['otlp']}\n"
        f"  pyroscope:\n    endpoint: 127.0.0.1:{ports['pyroscope']}\n"
        "processors:\n  trace_profile_join:\n"
        "exporters:\n  explore:\n"
        f"extensions:\n  explore:\n    endpoint: {host}:{ports['page']}\n"
        "service:\n  extensions: [explore]\n  telemetry: {metrics: {level: none}}\n  pipelines:\n"
        "    traces:\n      receivers: [otlp]\n      processors: [trace_profile_join]\n"
        "      exporters: [explore]\n"
        "    profiles:\n      receivers: [otlp, pyroscope]\n"
        "      processors: [trace_profile_join]\n      exporters: [explore]\n"
    )


def spans_request(service, rows, attributes=None):
    """rows: (trace id, span id, parent id or b"", name, start, end)."""
    request = otlp.REQUESTS["traces"]()
    resource = request.resource_spans.add()
    otlp.add_attributes(resource.resource.attributes, {"service.name": service})
    scope = resource.scope_spans.add()
    for trace_id, span_id, parent, name, start, end in rows:
        span = scope.spans.add(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent,
            name=name,
            start_time_unix_nano=start,
            end_time_unix_nano=end,
        )
        otlp.add_attributes(span.attributes, attributes or {})
    return request


class Page(case.Case):
    """A daemon with the page, and a window on it."""

    host = "localhost"

    def setUp(self):
        need()
        self.ports = {name: free_port() for name in ("otlp", "pyroscope", "page")}
        self.url = f"http://localhost:{self.ports['page']}/"
        self.server_log = self.daemon(config(self.ports, self.host)).log
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def send(self, request, path="/v1/traces"):
        headers = {"Content-Type": client.PROTOBUF}
        body = request.SerializeToString()
        response = client.request(self.ports["otlp"], "POST", path, body, headers)
        self.assertEqual(response.status, 200, response.body)

    def api(self, path):
        with urllib.request.urlopen(f"{self.url}api/v1/{path}", timeout=30) as response:
            return json.load(response)

    def wait_for(self, what, path, check):
        got = None

        def look():
            nonlocal got
            got = self.api(path)
            return check(got)

        try:
            process.poll_until(look, 30, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the answer was {json.dumps(got)[:2000]}")

    def open(self, route):
        self.browser.open(f"{self.url}#/{route}")

    def shop(self):
        """A small trace with its profile, without an SDK."""
        now = time.time_ns() - SECOND
        trace, root, child = uuid.uuid4().bytes, b"\1" * 8, b"\2" * 8
        request = spans_request(
            "shop",
            [
                (trace, root, b"", "checkout", now, now + 900 * MS),
                (trace, child, root, "invoice", now + 100 * MS, now + 800 * MS),
            ],
            {"http.route": "/checkout"},
        )
        self.send(request)
        builder = profiles.Builder({"service.name": "shop"})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), now)
        builder.sample(["render", "invoice", "main"], 400 * MS, link=(trace, child))
        builder.sample(["parse", "main"], 100 * MS, link=(trace, root))
        self.send(builder.request, profiles.PATH)
        self.wait_for("the trace is kept", "traces", lambda got: got["traces"])
        self.wait_for("the profile is kept", "status", lambda got: got["samples"])
        return trace.hex(), root.hex(), child.hex(), request, builder.request

    def views(self, trace):
        yield "traces", ".traces tbody tr"
        yield f"trace/{trace}", ".row .bar"
        yield f"trace/{trace}?view=top", ".top-table tbody tr"
        yield f"trace/{trace}?view=sandwich&fn=render", ".sandwich"
        yield f"trace/{trace}?tab=details&span={'02' * 8}", ".drawer"
        yield "services", ".names tbody tr"
        yield "service/shop", ".names tbody tr"
        yield "pipelines", ".node"
        yield "pipelines?node=receiver%2Fotlp", ".yaml"


class People(Page):
    """From an empty page to the function that a slow request ran."""

    def test_an_empty_page_says_what_to_send(self):
        self.open("traces")
        self.browser.until("it says so", "return document.body.innerText.includes('No traces yet')")
        self.assertTrue(any("OTEL_EXPORTER_OTLP_ENDPOINT" in text for text in self.browser.texts("code")))
        self.browser.screenshot("empty")
        self.shop()
        self.browser.until(
            "the first trace appears by itself",
            "return document.querySelectorAll('.traces tbody tr').length",
        )

    def test_a_slow_request_leads_to_its_function(self):
        browser = self.browser
        had = profiled.run("python", self.ports["otlp"], self.ports["pyroscope"], "shop")
        self.wait_for("all requests are kept", "traces", lambda got: len(got["traces"]) >= len(had))
        self.wait_for("a profile is kept", "status", lambda got: got["samples"])
        self.open("traces")
        browser.until("rows", f"return document.querySelectorAll('.traces tbody tr').length >= {len(had)}")
        browser.screenshot("traces")

        browser.press("/")
        browser.press("checkout")
        browser.until(
            "the filter is applied",
            "const rows = [...document.querySelectorAll('.traces tbody tr')];"
            "return rows.length === 1 && rows[0].innerText.includes('checkout')",
        )
        self.assertIn("name=checkout", browser.driver.current_url)
        browser.press("ESCAPE", "j", "ENTER")
        browser.until("the trace is open", "return document.querySelector('.row .bar')")
        self.assertIn(had["checkout"]["trace_id"], browser.driver.current_url)
        browser.press("ENTER")
        browser.until("a span is selected", "return location.hash.includes('span=')")
        browser.until("there is a flame graph", "return document.querySelector('.has-profile .flame')")
        browser.screenshot("trace")

        top = [one for one in browser.all("[data-show]") if one.text == "Top"][0]
        browser.click(top)
        rows = browser.until("functions", lambda: browser.texts(".top-table tbody tr td:first-child"))
        self.assertIn("render", " ".join(rows[:3]))
        self.assertNotIn("parse", " ".join(rows))

        address = browser.driver.current_url
        browser.open(address)
        again = browser.until("the same again", lambda: browser.texts(".top-table tbody tr td:first-child"))
        self.assertEqual(again[0], rows[0])
        self.assertEqual(len(browser.all(".row[aria-selected=true]")), 1)

        browser.open(f"{self.url}#/service/shop")
        link = browser.until(
            "names", "return [...document.querySelectorAll('.names a')].find((one) => one.textContent === 'slow against fast')"
        )
        browser.click(link)
        browser.until("a comparison", "return location.hash.startsWith('#/diff') && document.querySelector('.flame-panel')")

    def test_keys(self):
        browser = self.browser
        trace, root, child, *_ = self.shop()
        self.open(f"trace/{trace}")
        browser.until("two rows", "return document.querySelectorAll('.row:not([hidden]) .bar').length === 2")
        browser.press("?")
        browser.until("the list of keys", "return document.getElementById('keys').open")
        browser.press("ESCAPE")
        browser.until("it is closed", "return !document.getElementById('keys').open")
        browser.press("j", "ENTER")
        browser.until("the child", f"return location.hash.includes('span={child}')")
        browser.press("k", "x")
        browser.until("both", f"return decodeURIComponent(location.hash).includes('{child},{root}')")
        browser.press("ARROW_LEFT")
        browser.until("it is collapsed", "return document.querySelectorAll('.row:not([hidden])').length === 1")
        browser.press("ARROW_RIGHT")
        browser.until("it is not", "return document.querySelectorAll('.row:not([hidden])').length === 2")
        browser.run("document.querySelector('.flame').focus()")
        browser.press("ARROW_DOWN", "ARROW_DOWN", "ENTER")
        browser.until("zoomed", "return location.hash.includes('zoom=')")
        said = browser.run("return document.querySelector('.flame [role=treeitem]').textContent")
        self.assertRegex(said, r"^(invoice|parse), ")
        browser.press("g", "s")
        browser.until("services", "return location.hash === '#/services'")

    def test_newer_traces_do_not_move_what_is_read(self):
        browser = self.browser
        self.shop()
        self.open("traces")
        browser.until("a row", "return document.querySelectorAll('.traces tbody tr').length === 1")
        self.shop()
        pill = browser.find(".pill")
        self.assertRegex(pill.text, r"^\d+ new$")
        self.assertEqual(len(browser.all(".traces tbody tr")), 1)
        browser.click(pill)
        browser.until("both", "return document.querySelectorAll('.traces tbody tr').length === 2")

    def test_one_trace_against_the_others(self):
        browser = self.browser
        self.shop()
        trace, *_ = self.shop()
        self.wait_for("both are kept", "traces", lambda got: len(got["traces"]) == 2)
        self.open(f"trace/{trace}")
        browser.click(browser.find(".trace-tools a.button"))
        browser.until("two sides", "return document.querySelectorAll('.side-of').length === 2")
        browser.until("a flame graph of both", "return document.querySelector('.has-profile .flame')")
        browser.screenshot("comparison")


class Login(Page):
    """Beyond loopback: the address that the start prints lets its browser in, once."""

    host = "0.0.0.0"

    def tearDown(self):
        """What is refused is in the console, as it should be."""
        others = [one for one in self.browser.complaints() if "401" not in str(one)]
        self.assertEqual(others, [])

    def printed(self):
        tokens = re.findall(r"#token=[0-9a-f]{32}", self.server_log())
        return self.url + tokens[-1], len(tokens)

    def test_the_printed_address_lets_in_once(self):
        self.browser.open(self.url)
        self.browser.until("a login is asked for", "return document.body.textContent.includes('asks for a login')")
        address, count = self.printed()
        self.browser.open("about:blank")
        self.browser.open(address)
        self.browser.until("it lets in", "return document.body.textContent.includes('OTEL_EXPORTER_OTLP_ENDPOINT')")
        # The token is neither in the address, where others may read it, nor is the session in reach of a script.
        self.assertEqual(self.browser.run("return location.hash"), "#/traces")
        self.assertEqual(self.browser.run("return document.cookie"), "")
        cookie = self.browser.driver.get_cookie("spanflame_session")
        self.assertTrue(cookie["httpOnly"])
        self.assertEqual(cookie["sameSite"], "Strict")
        self.browser.driver.refresh()
        self.browser.until("it still does", "return document.body.textContent.includes('OTEL_EXPORTER_OTLP_ENDPOINT')")
        process.poll_until(lambda: self.printed()[1] == count + 1, 30, "the next token is printed")
        self.browser.driver.delete_all_cookies()
        self.browser.open("about:blank")
        self.browser.open(address)
        self.browser.until("a used token is refused", "return document.body.textContent.includes('has been used')")
        self.browser.open("about:blank")
        self.browser.open(self.printed()[0])
        self.browser.until("the next one lets in", "return document.body.textContent.includes('OTEL_EXPORTER_OTLP_ENDPOINT')")


class Files(Page):
    """Files that are dropped stay in the browser."""

    def drop(self, files):
        """As a file manager does it."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, body in files.items():
                path = pathlib.Path(folder) / name
                path.write_bytes(body)
                paths.append(str(path))
            self.browser.run(
                "const input = document.createElement('input'); input.type = 'file'; input.multiple = true;"
                "input.id = 'dropped'; document.body.append(input);"
            )
            self.browser.driver.find_element("id", "dropped").send_keys("\n".join(paths))
            self.browser.run(
                "const input = document.getElementById('dropped'); const data = new DataTransfer();"
                "for (const file of input.files) data.items.add(file); input.remove();"
                "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));"
            )
            self.browser.until("it was read", "return location.hash.includes('file') || document.querySelector('#toast.shown')?.textContent.includes('cannot')")

    def hottest(self):
        self.browser.until("a flame graph", "return document.querySelector('.has-profile .flame')")
        self.browser.click([one for one in self.browser.all("[data-show]") if one.text == "Top"][0])
        return self.browser.until(
            "functions", lambda: self.browser.texts(".top-table tbody tr td:first-child")
        )[0]

    def files(self):
        trace, *_, spans, samples = self.shop()
        return trace, spans.SerializeToString(), samples.SerializeToString()

    def test_protobuf_of_traces_and_profiles(self):
        trace, spans, samples = self.files()
        self.open("pipelines")
        self.browser.run("performance.clearResourceTimings()")
        self.drop({"traces.binpb": spans, "profiles.binpb": gzip.compress(samples)})
        self.browser.until("the trace", f"return location.hash.startsWith('#/trace/{trace}?from=file')")
        self.browser.until("two rows", "return document.querySelectorAll('.row:not([hidden]) .bar').length === 2")
        self.assertEqual(self.hottest(), "render")
        asked = self.browser.run(
            "return performance.getEntriesByType('resource').map((one) => one.name)"
        )
        self.assertEqual([url for url in asked if trace in url or "session" in url], [])
        self.browser.screenshot("file")

    def test_two_profiles_are_compared(self):
        trace, spans, samples = self.files()
        builder = profiles.Builder({"service.name": "shop"})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), 1)
        builder.sample(["parse", "main"], 300 * MS)
        other = builder.request.SerializeToString()
        self.open("pipelines")
        self.drop({"before.binpb": samples, "after.binpb": other})
        self.browser.until("the service", "return location.hash.startsWith('#/service/shop')")
        self.browser.run("document.querySelector('.page-head details').open = true")
        link = self.browser.find(".page-head .menu-items a")
        self.assertEqual(link.text, "after.binpb against before.binpb")
        self.browser.click(link)
        self.assertEqual(self.hottest(), "render")
        rows = [row.text.split() for row in self.browser.all(".top-table tbody tr")]
        parse = next(row for row in rows if row[0] == "parse")
        self.assertIn("+80.0", parse)
        self.assertEqual(self.browser.texts(".side-of"), ["A\nshop in before.binpb", "B\nshop in after.binpb"])

    def test_samples_of_files_are_saved_as_pprof(self):
        _, spans, samples = self.files()
        self.open("pipelines")
        self.drop({"traces.binpb": spans, "profiles.binpb": samples})
        self.browser.until("a flame graph", "return document.querySelector('.has-profile .flame')")
        self.browser.run(
            "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => {"
            " window.saved = btoa(String.fromCharCode(...new Uint8Array(bytes))); }); return 'about:blank#saved'; };"
            "HTMLAnchorElement.prototype.click = () => {};"
            "document.querySelector('.panel-head details').open = true;"
        )
        button = [one for one in self.browser.all(".panel-head .menu-items button") if one.text == "pprof"][0]
        self.browser.click(button)
        saved = self.browser.until("the file", "return window.saved")
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            file.write(base64.b64decode(saved))
            file.flush()
            shown = json.loads(process.run("profile", "show", file.name, "--json").stdout)
        (cpu,) = shown["types"]
        flat = {one["name"]: one["flat"] for one in cpu["functions"] if one["flat"]}
        self.assertEqual(flat, {"render": 400 * MS, "parse": 100 * MS})

    def test_json(self):
        trace, spans, _ = self.files()
        from google.protobuf import json_format

        found = json_format.MessageToDict(otlp.decode("traces", spans))
        for resource in found["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    span["traceId"] = trace
                    span["spanId"] = base64.b64decode(span["spanId"]).hex()
                    parent = base64.b64decode(span.get("parentSpanId", ""))
                    span["parentSpanId"] = parent.hex()
        self.open("traces")
        self.drop({"traces.json": json.dumps(found).encode()})
        self.browser.until("the trace", "return location.hash.includes('from=file')")
        self.browser.until("two rows", "return document.querySelectorAll('.row:not([hidden]) .bar').length === 2")
        said = self.browser.find(".flame-panel .empty").text
        self.assertIn("no profiles", said)

    def test_broken_files_end_in_words(self):
        self.open("traces")
        for name, body in {
            "a.bin": b"\x0a\xff\xff\xff\xff\x0f",
            "b.json": b'{"resourceSpans": [',
            "c.gz": b"\x1f\x8b\x08\x00broken",
            "d.txt": b"hello, this is no telemetry",
            "empty": b"",
        }.items():
            with self.subTest(name):
                self.browser.run("document.getElementById('toast').classList.remove('shown')")
                self.drop({name: body})
                said = self.browser.until("words", "const toast = document.getElementById('toast'); return toast.textContent.includes('cannot be read') && toast.textContent")
                self.assertIn(name, said)


class Looks(Page):
    """Light, dark, wide, narrow; for everybody."""

    def test_every_view(self):
        browser = self.browser
        trace, *_ = self.shop()
        for dark in (False, True):
            browser.driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
            )
            for size in (WIDE, NARROW):
                browser.resize(size)
                for route, selector in self.views(trace):
                    with self.subTest(route, dark=dark, size=size):
                        self.open(route)
                        browser.find(selector)
                        self.assertEqual(browser.axe(), [])
                        wide = browser.run("return document.documentElement.scrollWidth")
                        self.assertLessEqual(wide, size[0])
                        name = route.split("?")[0].replace("/", "-")[:24]
                        name += "-" + route.split("=")[-1][:8] if "?" in route else ""
                        browser.screenshot(
                            f"{name}-{'dark' if dark else 'light'}-{'wide' if size == WIDE else 'narrow'}"
                        )


class Partial(Page):
    """A search that had to end before it had seen all."""

    def test_a_chart_of_a_part_says_so(self):
        self.shop()
        self.open("traces")
        hint = "return document.querySelector('.scatter-box .hint').textContent"
        self.browser.until("the list", "return document.querySelector('.traces tbody tr')")
        self.assertNotIn("Older traces", self.browser.run(hint))
        self.browser.run(
            "const ask = window.fetch; window.fetch = async (...all) => { const got = await ask(...all);"
            " if (!String(all[0]).includes('/scatter')) return got;"
            " return new Response(JSON.stringify({...await got.json(), partial: true})); };"
            "location.hash = '#/traces?min=1ms';"
        )
        self.browser.until("the hint", f"{hint}.startsWith('Older traces have not been searched')")


class Hostile(Page):
    """Names, attributes and functions that want to be code."""

    def test_payloads_in_every_field(self):
        browser = self.browser
        now = time.time_ns() - SECOND
        request = otlp.REQUESTS["traces"]()
        traces = []
        builder = profiles.Builder({"service.name": PAYLOADS[0]})
        builder.profile("cpu:nanoseconds", ("cpu:nanoseconds", 10 * MS), now)
        for number, payload in enumerate(PAYLOADS * EVERYWHERE):
            text = f"{payload}{number}"
            number += 1
            trace, span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
            traces.append(trace.hex())
            resource = request.resource_spans.add()
            otlp.add_attributes(
                resource.resource.attributes, {"service.name": payload, text: text}
            )
            scope = resource.scope_spans.add()
            scope.scope.name, scope.scope.version = text, text
            span = scope.spans.add(
                trace_id=trace, span_id=span_id, name=text, kind=2, trace_state=text,
                start_time_unix_nano=now, end_time_unix_nano=now + number * MS,
            )  # fmt: skip
            span.status.code, span.status.message = 2, text
            otlp.add_attributes(span.attributes, {text: text, "list": text})
            event = span.events.add(time_unix_nano=now + 1, name=text)
            otlp.add_attributes(event.attributes, {text: text})
            link = span.links.add(trace_id=trace, span_id=span_id)
            otlp.add_attributes(link.attributes, {text: text})
            builder.sample([text, "main"], 10 * MS, link=(trace, span_id))
            if number % len(PAYLOADS) == 0:
                # One after the other: what comes faster than the worker can index is left out.
                self.send(request)
                request = otlp.REQUESTS["traces"]()
                self.wait_for("they are kept", "status", lambda got, sent=number: got["traces"] >= sent)
        self.send(builder.request, profiles.PATH)
        self.wait_for("all are kept", "status", lambda got: got["traces"] == len(traces))
        self.wait_for("samples are kept", "status", lambda got: got["samples"])

        def check(width=WIDE[0]):
            self.assertIsNone(browser.run("return window.canary ?? null"))
            self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width)
            self.assertEqual(browser.run("return document.querySelectorAll('main script, main img, main style').length"), 0)

        self.open("traces")
        browser.until("rows", "return document.querySelectorAll('.traces tbody tr').length >= 50")
        for _ in range(len(traces) // 50 - 1):
            shown = browser.run("return document.querySelectorAll('.traces tbody tr').length")
            browser.run("document.querySelector('button.more').click()")
            browser.until("more", f"return document.querySelectorAll('.traces tbody tr').length > {shown}")
        tall = browser.run("return Math.max(...[...document.querySelectorAll('.traces tbody tr')].map((one) => one.offsetHeight))")
        self.assertLessEqual(tall, 34)
        check()
        browser.screenshot("hostile-traces")
        for route in ("services", "pipelines", f"service/{urllib.request.quote(PAYLOADS[0], safe='')}"):
            self.open(route)
            browser.until("it is drawn", "return document.querySelector('main').innerText.length > 20")
            check()
        for trace in traces[: len(PAYLOADS)]:
            self.open(f"trace/{trace}?tab=details&span={trace[16:]}")
            browser.until("a row", "return document.querySelector('.row .bar')")
            browser.until("the span", "return document.querySelector('.drawer')")
            browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            check()
            self.open(f"trace/{trace}?view=top")
            browser.until("functions", "return document.querySelector('.top-table tbody tr')")
            check()
        browser.screenshot("hostile-trace")
        browser.resize(NARROW)
        check(NARROW[0])


if __name__ == "__main__":
    case.main()
