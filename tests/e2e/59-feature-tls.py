# SPDX-License-Identifier: Apache-2.0
"""TLS and unix sockets at the otlp receiver: real clients, and the Go collector for comparison."""

import os
import socket
import ssl
import subprocess
import tempfile
import warnings

from support import case, certificates, client, compare, metrics, otlp, peers, process
from support.ports import free_port

TIMEOUT_S = 30
SPANS = 20
CONNECTION_BYTES = 2560  # in the budget, beside its TLS
CLEARTEXT = (
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
)


def config(grpc, http, tls_grpc, tls_http, exporter="  debug:\n", name="debug"):
    """Ports and tls sections of both protocols; sections are YAML in flow style."""
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n        tls: {tls_grpc}\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n        tls: {tls_http}\n"
        f"exporters:\n{exporter}service:\n{case.QUIET}  pipelines:\n"
        + "".join(
            f"    {signal}: {{receivers: [otlp], exporters: [{name}]}}\n" for signal in case.SIGNALS
        )
    )


def pair(files, name="server", more=""):
    certificate, key = files.path(name + ".pem"), files.path(name + ".key")
    return f"{{cert_file: {certificate}, key_file: {key}{more}}}"


def mutual(files):
    return pair(files, more=f", client_ca_file: {files.path('ca.pem')}")


def client_context(files, name=None, alpn=None, ca="ca.pem"):
    context = ssl.create_default_context(cafile=files.path(ca))
    if name:
        context.load_cert_chain(files.path(name + ".pem"), files.path(name + ".key"))
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


def post(port, context, body=b"", signal="traces"):
    """One request by HTTP/1.1: status, or why there is none."""
    request = (
        f"POST /v1/{signal} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as stream:
                stream.sendall(request.encode() + body)
                return int(stream.recv(4096).split()[1])
    except ssl.SSLError as error:
        return error.reason


def raw(port, data):
    """What the server sends to a cleartext connection."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as stream:
        stream.sendall(data)
        received = b""
        try:
            while part := stream.recv(4096):
                received += part
        except ConnectionResetError:
            pass
        return received


class SideBySide(compare.SideBySide):
    """Handshakes of every kind, with and without client certificates."""

    def start(self, executable):
        self.files = certificates.Certificates(self)
        self.ports = {name: free_port() for name in ("grpc", "http", "mutual")}
        text = config(
            self.ports["grpc"], self.ports["http"], pair(self.files), pair(self.files)
        ).replace(
            "exporters:\n",
            "  otlp/mutual:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{self.ports['mutual']}\n"
            f"        tls: {mutual(self.files)}\nexporters:\n",
            1,
        )
        text = text.replace("receivers: [otlp]", "receivers: [otlp, otlp/mutual]")
        server = self.server(text, executable=executable)
        return server.wait_until_ready()

    def shake(self, port="http", alpn=None, change=None):
        """Version, protocol and suite, or the alert."""

        def ask(_):
            context = client_context(self.files, alpn=alpn)
            if change:
                change(context)
            try:
                with socket.create_connection(("127.0.0.1", self.ports[port]), TIMEOUT_S) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost") as stream:
                        return stream.version(), stream.selected_alpn_protocol(), stream.cipher()[0]
            except ssl.SSLError as error:
                return error.reason or "an alert that has no name here"

        return ask

    def resumed(self, _):
        """Whether a second TLS 1.2 connection goes on with the session of the first."""
        context = client_context(self.files)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        session = None
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", self.ports["http"]), TIMEOUT_S) as plain:
                with context.wrap_socket(
                    plain, server_hostname="localhost", session=session
                ) as stream:
                    session = stream.session
                    was_reused = stream.session_reused
        return was_reused

    def posted(self, name):
        return lambda _: post(self.ports["mutual"], client_context(self.files, name))

    def raw_to(self, port, data):
        return lambda _: raw(self.ports[port], data)

    def questions(self):
        def at_most(version):
            return lambda context: setattr(context, "maximum_version", version)

        def old(context):
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

        def suites(text):
            def change(context):
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                context.set_ciphers(text)

            return change

        aes = "TLS_AES_128_GCM_SHA256"
        aes_1_2 = "ECDHE-ECDSA-AES128-GCM-SHA256"
        request = b"POST /v1/traces HTTP/1.1\r\nHost: h\r\n\r\n"
        both = ["http/1.1", "h2"]
        return [
            compare.Question("plain", self.shake(), ("TLSv1.3", None, aes)),
            compare.Question("both protocols", self.shake(alpn=both), ("TLSv1.3", "h2", aes)),
            compare.Question(
                "HTTP/1.1", self.shake(alpn=["http/1.1"]), ("TLSv1.3", "http/1.1", aes)
            ),
            compare.Question(
                "another protocol",
                self.shake(alpn=["spdy/3"]),
                "an alert that has no name here",
            ),
            compare.Question("gRPC", self.shake("grpc", ["h2"]), ("TLSv1.3", "h2", aes)),
            compare.Question(
                "HTTP/1.1 at gRPC", self.shake("grpc", ["http/1.1"]), ("TLSv1.3", None, aes)
            ),
            compare.Question(
                "TLS 1.2",
                self.shake(change=at_most(ssl.TLSVersion.TLSv1_2)),
                ("TLSv1.2", None, aes_1_2),
            ),
            compare.Question("TLS 1.1", self.shake(change=old), "TLSV1_ALERT_PROTOCOL_VERSION"),
            compare.Question(
                "CBC only",
                self.shake(change=suites("ECDHE-ECDSA-AES128-SHA")),
                ("TLSv1.2", None, "ECDHE-ECDSA-AES128-SHA"),
            ),
            compare.Question(
                "no forward secrecy",
                self.shake(change=suites("AES128-SHA:AES128-GCM-SHA256")),
                "SSLV3_ALERT_HANDSHAKE_FAILURE",
            ),
            compare.Question(
                "sessions",
                self.resumed,
                False,
                True,
                "a resumed session would outlive the authority that let it begin",
            ),
            compare.Question("client certificate", self.posted("client"), 200),
            compare.Question(
                "no client certificate", self.posted(None), "TLSV13_ALERT_CERTIFICATE_REQUIRED"
            ),
            compare.Question(
                "foreign client certificate",
                self.posted("foreign-client"),
                "TLSV1_ALERT_UNKNOWN_CA",
            ),
            compare.Question(
                "expired client certificate",
                self.posted("expired-client"),
                "SSLV3_ALERT_CERTIFICATE_EXPIRED",
            ),
            compare.Question("cleartext at HTTP", self.raw_to("http", request), CLEARTEXT),
            compare.Question("cleartext at gRPC", self.raw_to("grpc", request), b""),
            compare.Question("no TLS at all", self.raw_to("http", b"SSH-2.0-client\r\n"), b""),
        ]


class Clients(case.Case):
    """Real clients with certificates of their own."""

    def setUp(self):
        self.files = certificates.Certificates(self)
        self.sink_server = self.sink()
        self.grpc, self.http = free_port(), free_port()

    def start(self, tls=None):
        exporter = f"  otlphttp:\n    endpoint: {self.sink_server.url}\n" + case.UNCOMPRESSED
        tls = tls or mutual(self.files)
        text = config(self.grpc, self.http, tls, tls, exporter + case.DIRECT, "otlphttp")
        return self.daemon(text)

    def curl(self, *arguments):
        """The response's status and HTTP version."""
        command = ["curl", "-sS", "--max-time", str(TIMEOUT_S), "-o", os.devnull]
        command += ["-w", "%{http_code} %{http_version}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S * 2)
        return done.stdout

    def secure_curl(self, *arguments):
        files = []
        names = {"--cacert": "ca.pem", "--cert": "client.pem", "--key": "client.key"}
        for option, name in names.items():
            files += [option, self.files.path(name)]
        headers = ["-H", f"Content-Type: {client.PROTOBUF}", "-H", "Expect:"]
        return self.curl(*files, *headers, *arguments, f"https://localhost:{self.http}/v1/traces")

    def test_curl_speaks_both_versions_of_both(self):
        self.start()
        body = os.path.join(self.files.directory, "body")
        with open(body, "wb") as file:
            file.write(otlp.traces(20_000).SerializeToString())
        for version, spoken in (("--http1.1", "1.1"), ("--http2", "2")):
            for tls in (("--tls-max", "1.2"), ("--tlsv1.3",)):
                with self.subTest(version=version, tls=tls):
                    got = self.secure_curl(version, *tls, "--data-binary", "@" + body)
                    self.assertEqual(got, f"200 {spoken}")
        self.assertEqual(len(self.sink_server.accepted("traces")), 4)

    def check_sdk(self, sdk):
        peers.need(sdk)
        self.start()
        tls = {
            "OTEL_EXPORTER_OTLP_CERTIFICATE": self.files.path("ca.pem"),
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": self.files.path("client.pem"),
            "OTEL_EXPORTER_OTLP_CLIENT_KEY": self.files.path("client.key"),
            # Python's requests puts its own variable, if there is one, above the SDK's.
            "REQUESTS_CA_BUNDLE": self.files.path("ca.pem"),
        }
        wanted = set()
        for protocol, port in (("grpc", self.grpc), ("http", self.http)):
            sent = peers.emit(
                sdk, tls=tls, protocol=protocol, endpoint=f"localhost:{port}", spans=SPANS
            )
            wanted |= {span["span_id"] for span in sent["spans"]}
        payloads = [request.payload for request in self.sink_server.accepted("traces")]
        self.assertEqual({span.hex() for span in otlp.spans_of(payloads)}, wanted)
        self.assertEqual(len(wanted), 2 * SPANS)

    def test_python_sdk(self):
        self.check_sdk("python")

    def test_go_sdk(self):
        self.check_sdk("go")

    def test_node_sdk(self):
        self.check_sdk("node")

    def test_java_sdk(self):
        self.check_sdk("java")

    def collector(self, exporter):
        port = free_port()
        self.server(
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{port}\n"
            f"exporters:\n{exporter}service:\n{case.QUIET}  pipelines:\n"
            f"    traces: {{receivers: [otlp], exporters: [{exporter.split(':')[0].strip()}]}}\n",
            executable=peers.otelcol(),
        ).wait_until_ready()
        return port

    def test_go_collector_with_its_tls_keys(self):
        peers.need("otelcol")
        self.start()
        more = case.DIRECT + case.NO_RETRY + (
            f"    tls: {{ca_file: {self.files.path('ca.pem')}, min_version: '1.3', "
            f"cert_file: {self.files.path('client.pem')}, "
            f"key_file: {self.files.path('client.key')}, server_name_override: backend.test}}\n"
        )
        ways = (
            f"  otlp:\n    endpoint: 127.0.0.1:{self.grpc}\n{more}",
            f"  otlphttp:\n    endpoint: https://127.0.0.1:{self.http}\n{more}",
        )
        for count, exporter in enumerate(ways, 1):
            body = otlp.traces(SPANS).SerializeToString()
            self.assertEqual(client.post(self.collector(exporter), "traces", body).status, 200)
            self.assertEqual(len(self.sink_server.accepted("traces")), count)

    def test_our_exporters_reach_a_go_collector_that_asks_for_certificates(self):
        executable = peers.otelcol()
        grpc, http = free_port(), free_port()
        exporter = f"  otlphttp:\n    endpoint: {self.sink_server.url}\n" + case.DIRECT
        text = config(grpc, http, mutual(self.files), mutual(self.files), exporter, "otlphttp")
        self.server(text, executable=executable).wait_until_ready()
        tls = (
            f"    tls: {{ca_file: {self.files.path('ca.pem')}, "
            f"cert_file: {self.files.path('client.pem')}, "
            f"key_file: {self.files.path('client.key')}}}\n"
        )
        ways = (
            f"  otlp:\n    endpoint: localhost:{grpc}\n{tls}",
            f"  otlphttp:\n    endpoint: https://localhost:{http}\n{tls}",
        )
        for count, way in enumerate(ways, 1):
            port = free_port()
            self.daemon(
                "receivers:\n  otlp:\n    protocols:\n      http:\n"
                f"        endpoint: 127.0.0.1:{port}\n"
                f"exporters:\n{way}{case.DIRECT}service:\n{case.QUIET}  pipelines:\n"
                f"    traces: {{receivers: [otlp], exporters: [{way.split(':')[0].strip()}]}}\n"
            )
            body = otlp.traces(SPANS).SerializeToString()
            self.assertEqual(client.post(port, "traces", body).status, 200)
            self.assertEqual(len(self.sink_server.accepted("traces")), count)


class Rotation(case.Case):
    """Files change under the running daemon."""

    def test_new_certificates_serve_new_connections(self):
        files = certificates.Certificates(self)
        files.copy("server", "used")
        http = free_port()
        tls = pair(files, "used", ", reload_interval: 50ms")
        server = self.daemon(config(free_port(), http, tls, tls))
        old = client_context(files, ca="server.pem")
        old.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        new = client_context(files, ca="second-server.pem")
        new.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.assertEqual(post(http, old), 200)
        with socket.create_connection(("127.0.0.1", http), TIMEOUT_S) as plain:
            with old.wrap_socket(plain, server_hostname="localhost") as kept:
                # Half of the pair is no pair.
                files.copy("server", "saved")
                with open(files.path("used.pem"), "w", encoding="ascii") as file:
                    file.write(files.text("second-server.pem"))
                process.poll_until(
                    lambda: post(http, old) == 200 and "cannot be used" in server.log(),
                    TIMEOUT_S,
                    "the old pair serves on, and the log says why",
                )
                files.copy("second-server", "used")
                process.poll_until(
                    lambda: post(http, new) == 200, TIMEOUT_S, "the new pair serves"
                )
                self.assertEqual(post(http, old), "CERTIFICATE_VERIFY_FAILED")
                kept.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                self.assertTrue(kept.recv(4096).startswith(b"HTTP/1.1 404"))
        self.assertNotIn("PRIVATE KEY", server.log())

    def test_new_authorities_let_other_clients_in(self):
        files = certificates.Certificates(self)
        files.copy("ca", "trusted")
        http = free_port()
        more = f", client_ca_file: {files.path('trusted.pem')}, client_ca_file_reload: true"
        tls = pair(files, more=more)
        self.daemon(config(free_port(), http, tls, tls))
        known, foreign = (client_context(files, name) for name in ("client", "foreign-client"))
        self.assertEqual(post(http, known), 200)
        self.assertEqual(post(http, foreign), "TLSV1_ALERT_UNKNOWN_CA")
        files.copy("foreign-ca", "trusted")
        process.poll_until(lambda: post(http, foreign) == 200, TIMEOUT_S, "the other is let in")
        self.assertEqual(post(http, known), "TLSV1_ALERT_UNKNOWN_CA")


class Mistakes(case.Case):
    """Reported by validate or at the start, with the file and the reason, without secrets."""

    def test_bad_files_stop_the_start(self):
        files = certificates.Certificates(self)
        rows = (
            (pair(files, "missing"), "missing.pem: No such file"),
            (pair(files, "encrypted"), "encrypted.key: its key is encrypted"),
            (pair(files, more=f", client_ca_file: {files.path('server.key')}"), "no certificate"),
        )
        for tls, words in rows:
            with self.subTest(words):
                server = self.server(config(free_port(), free_port(), tls, tls))
                self.assertNotEqual(server.wait(), 0)
                self.assertIn(words, server.log())
                self.assertIn("protocols::grpc: tls::", server.log())

    def test_rules_are_checked_before(self):
        files = certificates.Certificates(self)
        rows = (
            ("{client_ca_file: a}", "must include both certificate and key for server connections"),
            ("{cert_file: a}", "must include both certificate and key (CertFile/CertPem"),
            ("{cert_file: a, cert_pem: b, key_file: c}", "either certificate file or PEM"),
            (pair(files, more=", min_version: '1.4'"), "unsupported TLS version"),
            (pair(files, more=", min_version: 1.2"), "min_version"),
            (pair(files, more=", cipher_suites: [TLS_FOO]"), "TLS_FOO"),
            (pair(files, more=", cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]"), "insecure"),
            (pair(files, more=", curve_preferences: [P-256]"), "invalid curve type"),
            (pair(files, more=", tpm: {enabled: true}"), "tpm is not supported"),
            (pair(files, more=", insecure: true"), "insecure"),
        )
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "config.yaml")
            for tls, words in rows:
                with self.subTest(tls), open(path, "w", encoding="utf-8") as file:
                    file.write(config(free_port(), free_port(), tls, "{}").replace("tls: {}", ""))
                    file.flush()
                    done = process.run("validate", f"--config={path}")
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(words, done.stderr)

    def test_keys_in_place_are_not_printed(self):
        files = certificates.Certificates(self)
        indented = "\n".join("            " + line for line in files.text("server.key").split("\n"))
        tls = (
            f"\n          cert_file: {files.path('server.pem')}\n          key_pem: |\n{indented}\n"
        )
        http = free_port()
        text = config(free_port(), http, "", tls)
        server = self.daemon(text)
        self.assertEqual(post(http, client_context(files)), 200)
        done = process.run("print-config", f"--config={server.config_path}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("key_pem: '[REDACTED]'", done.stdout.replace('"', "'"))
        self.assertNotIn("PRIVATE KEY", done.stdout + server.log())


class Flood(case.Case):
    """Clients that begin a handshake and send nothing more."""

    BUDGET_MIB = 4
    CLIENTS = 200
    ALERT = bytes([21, 3, 1, 0, 2, 2, 80])  # fatal, internal_error

    def hello(self):
        out = ssl.MemoryBIO()
        shaking = client_context(self.files).wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            shaking.do_handshake()
        return out.read()

    def test_half_open_handshakes_are_bounded_by_the_budget(self):
        self.files = certificates.Certificates(self)
        http, port = free_port(), free_port()
        text = config(free_port(), http, pair(self.files), pair(self.files))
        service = f"service:\n  budget_mib: {self.BUDGET_MIB}\n{case.metrics_service(port)}"
        server = self.daemon(text.replace(f"service:\n{case.QUIET}", service))
        used = "spanflame_budget_used_bytes"
        before = metrics.Metrics(port).sum(used)  # our own connection included
        hello = self.hello()
        pending = []
        for _ in range(self.CLIENTS):
            connection = socket.create_connection(("127.0.0.1", http), TIMEOUT_S)
            self.addCleanup(connection.close)
            connection.sendall(hello)
            pending.append(connection)
        replies = [connection.recv(len(self.ALERT)) for connection in pending]
        refused = sum(words == self.ALERT for words in replies)
        self.assertGreater(refused, self.CLIENTS // 2)
        self.assertLess(refused, self.CLIENTS)
        scraped = metrics.Metrics(port)
        part = (self.BUDGET_MIB << 20) / 4
        connections = self.CLIENTS * CONNECTION_BYTES
        used_most = scraped.sum("spanflame_budget_high_water_bytes")
        self.assertLessEqual(used_most, part + connections + 10_000)
        self.assertEqual(scraped.sum("spanflame_receiver_tls_handshakes_failed"), refused)
        server.wait_for_line("TLS handshake failed.*too many handshakes at once")
        for connection in pending:
            connection.close()
        process.poll_until(
            lambda: metrics.Metrics(port).sum(used) == before,
            within=TIMEOUT_S,
            what="a budget that is whole again",
        )
        self.assertEqual(post(http, client_context(self.files)), 200)


class UnixSockets(compare.SideBySide):
    """`transport: unix`."""

    def start(self, executable):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.paths = {name: os.path.join(directory.name, name) for name in ("grpc", "http")}
        self.text = config(0, 0, "", "").replace("tls:", "transport: unix")
        for name, path in self.paths.items():
            self.text = self.text.replace(f"{name}:\n        endpoint: 127.0.0.1:0",
                                          f"{name}:\n        endpoint: {path}")
        self.executable = executable
        return self.server(self.text, executable=executable).wait_until_ready()

    def ask_http(self, _):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(TIMEOUT_S)
            stream.connect(self.paths["http"])
            stream.sendall(
                b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"
                b"Content-Type: application/x-protobuf\r\n\r\n"
            )
            return stream.recv(4096).split()[1]

    def ask_grpc(self, _):
        import grpc

        with grpc.insecure_channel("unix:" + self.paths["grpc"]) as channel:
            call = channel.unary_unary(client.SERVICES["traces"])
            call(otlp.traces(1).SerializeToString(), timeout=TIMEOUT_S)
        return "OK"

    def ask_twice(self, _):
        """A second server on the same paths."""
        other = self.server(self.text, executable=self.executable)
        code = other.wait()
        text = f"listen unix {self.paths['grpc']}: bind: address already in use"
        return code, text in other.log()

    def ask_end(self, server):
        """What a stop leaves."""
        server.stop()
        return [os.path.exists(path) for path in self.paths.values()]

    def questions(self):
        return [
            compare.Question("HTTP", self.ask_http, b"200"),
            compare.Question("gRPC", self.ask_grpc, "OK"),
            compare.Question("a file in the way", self.ask_twice, (1, True)),
            compare.Question("the end", self.ask_end, [False, False]),
        ]


if __name__ == "__main__":
    case.main()
