# SPDX-License-Identifier: Apache-2.0
"""The pages of the zpages and pprof extensions, over a running service."""

import socket
import ssl
import subprocess
import tempfile

from support import case, certificates, client, compare, otlp, peers, process
from support.compare import Question
from support.ports import free_port

CONFIG = """
extensions:
  zpages:
    endpoint: 127.0.0.1:{pages}
  pprof:
    endpoint: 127.0.0.1:{pprof}
"""


PAGE = "http://app.example.com"
MISMATCH = b"provided authorization does not match expected scheme or token\n"
MISSING = b"missing or empty authorization header: Authorization\n"
BROKEN = "health_check of 0.155 takes the key and then drops what it makes of it"


class ServerOptions(compare.SideBySide):
    """TLS, authentication, CORS and headers of extensions that listen."""

    def start(self, executable):
        self.files = certificates.Certificates(self)
        names = ["health_check", "zpages"] + ([] if executable else ["pprof"])
        self.ports = {name: free_port() for name in names}
        pair = f"cert_file: {self.files.path('server.pem')}, key_file: {self.files.path('server.key')}"
        text = "extensions:\n  bearertokenauth: {token: sesame}\n" + "".join(
            f"  {name}:\n    endpoint: 127.0.0.1:{self.ports[name]}\n    tls: {{{pair}}}\n"
            "    auth: {authenticator: bearertokenauth}\n"
            "    cors: {allowed_origins: ['http://*.example.com'], max_age: 60}\n"
            "    response_headers: {X-Extension: always, content-type: text/never}\n"
            for name in names
        )
        return self.server(
            text + "receivers:\n  nop:\nexporters:\n  nop:\nservice:\n"
            f"  extensions: [bearertokenauth, {', '.join(names)}]\n{case.QUIET}"
            "  pipelines:\n    traces:\n      receivers: [nop]\n      exporters: [nop]\n",
            executable=executable,
        ).wait_until_ready()

    def ask(self, name, path, method="GET", **headers):
        """Status, headers that matter, and the page unless it says 200."""

        def asking(_):
            context = ssl.create_default_context(cafile=self.files.path("ca.pem"))
            lines = "".join(f"{key.replace('_', '-')}: {value}\r\n" for key, value in headers.items())
            with socket.create_connection(("127.0.0.1", self.ports[name]), 30) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as stream:
                    stream.sendall(
                        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                        f"Connection: close\r\n{lines}\r\n".encode()
                    )
                    received = b"".join(iter(lambda: stream.recv(65536), b""))
            head, _, body = received.partition(b"\r\n\r\n")
            first, *rest = head.decode().split("\r\n")
            found = dict(line.lower().split(": ", 1) for line in rest)
            status = int(first.split()[1])
            seen = {
                key: found[key]
                for key in ("access-control-allow-origin", "access-control-max-age", "x-extension")
                if key in found
            }
            return status, seen, found.get("content-type"), b"" if status == 200 else body

        return asking

    def questions(self):
        always, plain = {"x-extension": "always"}, "text/plain; charset=utf-8"
        cors = {"access-control-allow-origin": PAGE, **always}
        preflight = {"Origin": PAGE, "Access_Control_Request_Method": "GET"}
        rows = []
        for name, path, media in (
            ("zpages", "/debug/servicez", "text/html; charset=utf-8"),
            ("pprof", "/debug/pprof/", plain),
            ("health_check", "/", "application/json"),
        ):
            if name not in self.ports:
                continue  # the collector's pprof has no such keys
            go = {"go": (200, {}, media, b""), "why": BROKEN} if name == "health_check" else {}
            rows += [
                Question(f"{name}: {asked}", self.ask(name, path, **headers), expected, **go)
                for asked, headers, expected in (
                    ("no token", {}, (401, always, plain, MISSING)),
                    ("wrong token", {"Authorization": "Bearer x"}, (401, always, plain, MISMATCH)),
                    ("the token", {"Authorization": "Bearer sesame"}, (200, always, media, b"")),
                    (
                        "a page with the token",
                        {"Authorization": "Bearer sesame", "Origin": PAGE},
                        (200, cors, media, b""),
                    ),
                    (
                        "a preflight request",
                        {"method": "OPTIONS", **preflight},
                        (204, {**cors, "access-control-max-age": "60"}, "text/never", b""),
                    ),
                )
            ]
        return rows


class Pages(case.Case):
    def start(self, environment=None, exporter=""):
        self.pages, self.pprof, self.http = free_port(), free_port(), free_port()
        self.back_end = self.sink()
        service = "  extensions: [zpages, pprof]\n" + case.QUIET
        text = case.otlp_config(
            free_port(), self.http, self.back_end.url, exporter=exporter, service=service
        )
        extensions = CONFIG.format(pages=self.pages, pprof=self.pprof)
        return self.daemon(text + extensions, environment=environment)

    def page(self, name):
        response = client.get(self.pages, f"/debug/{name}")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["content-type"], "text/html; charset=utf-8")
        return response.body.decode()

    def test_pipelines_rings_budget_and_items(self):
        self.start(exporter=case.DIRECT)
        body = otlp.traces(7).SerializeToString()
        self.assertEqual(client.post(self.http, "traces", body).status, 200)
        service = self.page("servicez")
        self.assertIn("<tr><th>traces</th><td>7</td><td>7</td><td>0</td><td>0</td><td>0</td>", service)
        for text in ("ready", "Budget", "High water"):
            self.assertIn(text, service)
        pipelines = self.page("pipelinez")
        for text in ("<th>traces</th>", "<td>otlp</td>", "<td>otlphttp</td>", "sending_queue"):
            self.assertIn(text, pipelines)
        self.assertIn("<li>zpages</li>", self.page("extensionz"))
        self.assertIn("service.profilesSupport", self.page("featurez"))
        self.assertEqual(client.get(self.pages, "/debug/other").status, 404)

    def test_the_last_errors_are_shown_and_cannot_break_the_page(self):
        daemon = self.start(exporter=case.NO_RETRY)
        self.back_end.close()
        body = otlp.traces(1).SerializeToString()
        self.assertEqual(client.post(self.http, "traces", body).status, 200)
        daemon.wait_for_line("Exporting failed")
        page = self.page("servicez")
        self.assertIn("Exporting failed", page)
        self.assertIn("&quot;", page)

    def test_the_heap_profile_is_read_by_go(self):
        peers.need("pprof")
        self.start({"MALLOC_CONF": "prof:true,lg_prof_sample:10"})
        response = client.get(self.pprof, "/debug/pprof/heap")
        if process.is_sanitized():
            self.assertEqual(response.status, 501)
            self.assertIn(b"MALLOC_CONF=prof:true", response.body)
            return
        self.assertEqual(response.status, 200)
        with tempfile.NamedTemporaryFile(suffix=".pb") as file:
            file.write(response.body)
            file.flush()
            done = subprocess.run(
                [peers.pprof(), "describe", file.name], capture_output=True, text=True, check=True
            )
        self.assertIn("inuse_space", done.stdout)
        self.assertIn("spanflame", done.stdout)
        text = client.get(self.pprof, "/debug/pprof/heap?debug=1").body
        self.assertTrue(text.startswith(b"heap_v2/1024"), text[:40])

    def test_without_sampling_it_says_what_to_do(self):
        self.start({"MALLOC_CONF": ""})
        response = client.get(self.pprof, "/debug/pprof/heap")
        self.assertEqual(response.status, 501)
        self.assertIn(b"MALLOC_CONF=prof:true", response.body)
        self.assertIn(b"--config", client.get(self.pprof, "/debug/pprof/cmdline").body)
        self.assertEqual(client.get(self.pprof, "/debug/pprof/").status, 200)
        self.assertEqual(client.get(self.pprof, "/debug/pprof/profile").status, 404)


if __name__ == "__main__":
    case.main()
