# SPDX-License-Identifier: Apache-2.0
"""What exporters say about themselves: headers_setter and oauth2client, with real servers."""

import base64
import http.client
import json
import os
import signal
import subprocess
import tempfile
import urllib.parse

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support import case, certificates, client, otlp, process, profiles
from support.grpc_sink import GrpcSink
from support.ports import free_port
from support.sink import Reply

SPANS = otlp.traces(2).SerializeToString()
TENANT = "X-Scope-OrgID"
PATHS = {
    "traces": "/v1/traces",
    "metrics": "/v1/metrics",
    "profiles": "/v1development/profiles",
}
JSON = {"Content-Type": "application/json"}
DIRECT = "sending_queue: {enabled: false}, retry_on_failure: {enabled: false}"
QUICK = "retry_on_failure: {initial_interval: 50ms, max_interval: 100ms}"
JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SETTER = """
  headers_setter:
    headers:
    - {action: upsert, key: X-Scope-OrgID, from_context: X-Scope-OrgID, default_value: nobody}
    - {action: insert, key: X-Own, value: mine}
    - {action: update, key: X-Own, value: changed}
    - {action: delete, key: X-Gone, value: none}
"""


def config(port, extensions, ids, exporter, processors="", names="", grpc_port=None, extra=""):
    """One pipeline of traces from otlp to the exporter, which is YAML in flow style."""
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http: {{endpoint: '127.0.0.1:{port}', include_metadata: true}}\n"
        f"      grpc: {{endpoint: '127.0.0.1:{grpc_port or free_port()}', include_metadata: true}}\n"
        f"extensions:\n{extensions}\n{processors}exporters:\n  {exporter}\n"
        f"service:\n{case.QUIET}  extensions: [{ids}]\n{extra}"
        f"  pipelines:\n    traces: {{receivers: [otlp], processors: [{names}], "
        f"exporters: [{exporter.split(':')[0]}]}}\n"
    )


def post(port, *tenants):
    """One request of a client with these values of the tenant's header, a line each."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=client.TIMEOUT_S)
    try:
        connection.putrequest("POST", "/v1/traces")
        connection.putheader("Content-Type", client.PROTOBUF)
        connection.putheader("Content-Length", str(len(SPANS)))
        for tenant in tenants:
            connection.putheader(TENANT, tenant)
        connection.endheaders(SPANS)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


def spans_in(payload):
    groups = ExportTraceServiceRequest.FromString(payload).resource_spans
    return sum(len(scope.spans) for group in groups for scope in group.scope_spans)


class HeadersSetter(case.Case):
    def start(self, exporter, extensions=SETTER, ids="headers_setter", **more):
        self.http = free_port()
        return self.daemon(config(self.http, extensions, ids, exporter, **more))

    def test_each_request_has_the_headers_of_its_client(self):
        self.check_headers(self.sink())

    def test_requests_over_tls_have_them_too(self):
        files = certificates.Certificates(self)
        back_end = self.sink(certificate=files.path("server.pem"), key=files.path("server.key"))
        self.check_headers(back_end, f", tls: {{ca_file: {files.path('ca.pem')}}}")

    def check_headers(self, back_end, more=""):
        url = back_end.url.replace("127.0.0.1", "localhost")
        self.start(
            f"otlphttp: {{endpoint: '{url}', {DIRECT}, headers: {{X-Gone: x}}{more}, "
            "auth: {authenticator: headers_setter}}"
        )
        for sent, found in (((), "nobody"), (("acme",), "acme"), (("",), "")):
            self.assertEqual(post(self.http, *sent)[0], 200)
            headers = back_end.requests[-1].headers
            self.assertEqual(headers["x-scope-orgid"], found)
            self.assertEqual(headers["x-own"], "changed")
            self.assertNotIn("x-gone", headers)
            self.assertEqual(headers["content-type"], client.PROTOBUF)
        status, text = post(self.http, "acme", "other")
        self.assertEqual(status, 503)
        self.assertIn("2 source keys found in the context", text)
        self.assertEqual(len(back_end.requests), 3)

    def test_batches_keep_what_metadata_keys_names(self):
        for keys, found in (("", {"nobody"}), (f"metadata_keys: [{TENANT}]", {"one", "two"})):
            with self.subTest(keys):
                back_end = self.sink()
                self.start(
                    f"otlphttp: {{endpoint: '{back_end.url}', auth: "
                    "{authenticator: headers_setter}}",
                    processors=f"processors:\n  batch: {{timeout: 100ms, {keys}}}\n",
                    names="batch",
                )
                for tenant in ("one", "two", "one"):
                    self.assertEqual(post(self.http, tenant)[0], 200)
                requests = back_end.wait(
                    lambda all: sum(spans_in(one.payload) for one in all) == 3 * spans_in(SPANS)
                )
                self.assertEqual({one.headers["x-scope-orgid"] for one in requests}, found)

    def test_who_has_logged_in_is_passed_on(self):
        back_end = self.sink()
        text = config(
            port := free_port(),
            "  basicauth: {htpasswd: {inline: 'ann:secret'}}\n  headers_setter: {headers: [{action: "
            "upsert, key: X-User, from_attribute: username}]}\n",
            "basicauth, headers_setter",
            f"otlphttp: {{endpoint: '{back_end.url}', {DIRECT}, auth: "
            "{authenticator: headers_setter}}",
        ).replace(", include_metadata: true", ", auth: {authenticator: basicauth}")
        self.daemon(text)
        login = "Basic " + base64.b64encode(b"ann:secret").decode()
        headers = {"Content-Type": client.PROTOBUF, "Authorization": login}
        self.assertEqual(client.request(port, "POST", "/v1/traces", SPANS, headers).status, 200)
        self.assertEqual(back_end.requests[0].headers["x-user"], "ann")

    def test_grpc_calls_have_them_in_cleartext_too(self):
        back_end = GrpcSink(free_port())
        self.addCleanup(back_end.close)
        grpc_port = free_port()
        self.start(
            f"otlp: {{endpoint: '127.0.0.1:{back_end.port}', tls: {{insecure: true}}, {DIRECT}, "
            "auth: {authenticator: headers_setter}}",
            grpc_port=grpc_port,
        )
        self.assertEqual(post(self.http, "acme")[0], 200)
        self.assertEqual(back_end.metadata["x-scope-orgid"], "acme")
        self.assertEqual(back_end.metadata["x-own"], "changed")
        # A permanent error, since another attempt would have the same values.
        self.assertEqual(post(self.http, "acme", "other")[0], 401)
        self.assertEqual(back_end.calls, 1)

    def test_every_exporter_asks_it(self):
        extensions = SETTER + "    additional_auth: bearertokenauth\n  bearertokenauth: {token: t}\n"
        rows = [
            ("zipkin", "traces", "/api/v2/spans"),
            ("prometheusremotewrite", "metrics", "/api/v1/write"),
            ("pyroscope", "profiles", ""),
        ]
        for exporter, signal, path in rows:
            with self.subTest(exporter):
                back_end, port = self.sink(), free_port()
                text = config(
                    port,
                    extensions,
                    "bearertokenauth, headers_setter",
                    f"{exporter}: {{endpoint: '{back_end.url}{path}', auth: "
                    "{authenticator: headers_setter}}",
                ).replace("    traces: {", f"    {signal}: {{")
                self.daemon(text, arguments=["--feature-gates=service.profilesSupport"])
                if signal == "profiles":
                    builder = profiles.Builder().profile("cpu:nanoseconds")
                    body = builder.sample(["f"], 10).bytes()
                else:
                    body = otlp.sample(signal).SerializeToString()
                response = client.request(
                    port,
                    "POST",
                    PATHS[signal],
                    body,
                    {"Content-Type": client.PROTOBUF, TENANT: "acme"},
                )
                self.assertEqual(response.status, 200, response.body)
                headers = back_end.wait_for_requests(1)[0].headers
                self.assertEqual(headers["x-scope-orgid"], "acme")
                self.assertEqual(headers["authorization"], "Bearer t")


class Tokens(case.Case):
    """A token endpoint, and a back-end behind the exporter."""

    def start(self, token=None, options="", exporter=DIRECT, server=None, **more):
        self.endpoint = server or self.sink()
        self.endpoint.respond_with(token or self.token("first"))
        self.back_end, self.http = self.sink(), free_port()
        url = self.endpoint.url.replace("127.0.0.1", "localhost")
        extensions = (
            f"  oauth2client: {{client_id: me, client_secret: 'hunter2/hunter2', token_url: "
            f"'{url}/token'{options}}}\n"
        )
        return self.daemon(
            config(
                self.http,
                extensions,
                "oauth2client",
                f"otlphttp: {{endpoint: '{self.back_end.url}', {exporter}, "
                "auth: {authenticator: oauth2client}}",
                **more,
            )
        )

    @staticmethod
    def token(text, **more):
        body = {"access_token": text, "token_type": "bearer", "expires_in": 3600, **more}
        return Reply(200, JSON, json.dumps(body).encode())

    def test_a_token_is_fetched_for_the_first_request_and_kept(self):
        self.start(options=", scopes: [a, b], endpoint_params: {audience: you}")
        for _ in range(3):
            self.assertEqual(post(self.http)[0], 200)
        self.assertEqual(
            {one.headers["authorization"] for one in self.back_end.requests}, {"Bearer first"}
        )
        (asked,) = self.endpoint.requests
        self.assertEqual(asked.path, "/token")
        self.assertEqual(
            base64.b64decode(asked.headers["authorization"].split()[1]), b"me:hunter2%2Fhunter2"
        )
        self.assertEqual(asked.headers["content-type"], "application/x-www-form-urlencoded")
        self.assertEqual(
            urllib.parse.parse_qs(asked.body.decode()),
            {"grant_type": ["client_credentials"], "scope": ["a b"], "audience": ["you"]},
        )

    def test_an_endpoint_that_wants_the_secret_in_the_body_gets_it(self):
        self.start(token=Reply(401, JSON, b'{"error":"invalid_client"}'))
        self.endpoint.respond_first([Reply(401, JSON, b'{"error":"x"}'), self.token("second")])
        self.assertEqual(post(self.http)[0], 200)
        self.assertEqual(self.back_end.requests[-1].headers["authorization"], "Bearer second")
        asked = self.endpoint.requests[-1]
        self.assertNotIn("authorization", asked.headers)
        self.assertEqual(
            urllib.parse.parse_qs(asked.body.decode()),
            {
                "grant_type": ["client_credentials"],
                "client_id": ["me"],
                "client_secret": ["hunter2/hunter2"],
            },
        )

    def test_what_the_endpoint_says_is_in_the_log_and_nothing_is_lost(self):
        refusal = b'{"error":"invalid_client","error_description":"not hunter2/hunter2"}'
        daemon = self.start(token=Reply(400, JSON, refusal), exporter=QUICK)
        self.assertEqual(post(self.http)[0], 200)
        line = daemon.wait_for_line("Will retry the request after interval")
        self.assertIn("failed to get security token from token endpoint", line)
        self.assertIn("invalid_client", line)
        self.endpoint.respond_with(self.token("at-last"))
        self.back_end.wait_for_requests(1)
        self.assertEqual(self.back_end.requests[0].headers["authorization"], "Bearer at-last")
        for secret in ("at-last", "hunter2/hunter2", "hunter2%2Fhunter2"):
            self.assertNotIn(secret, daemon.log())

    def test_a_client_hears_of_it_when_there_is_no_queue(self):
        self.start(token=Reply(500, {}, b"out to lunch"))
        status, text = post(self.http)
        self.assertEqual(status, 503)
        self.assertIn("oauth2: cannot fetch token: 500", text)
        self.assertIn("out to lunch", text)

    def test_requests_do_not_wait_for_ever(self):
        self.start(exporter=DIRECT + ", timeout: 300ms")
        self.endpoint.hold()
        status, text = post(self.http)
        self.assertEqual(status, 503)
        self.assertIn("context deadline exceeded", text)
        self.endpoint.release()
        process.poll_until(
            lambda: post(self.http)[0] == 200, 30, "a token after the endpoint has come back"
        )

    def test_lanes_and_reloads_fetch_tokens_of_their_own(self):
        daemon = self.start(extra="  lanes: 2\n")
        for _ in range(10):
            self.assertEqual(post(self.http)[0], 200)
        self.assertLessEqual(len(self.endpoint.requests), 2)
        self.endpoint.respond_with(self.token("after"))
        with open(daemon.config_path, "a", encoding="utf-8") as file:
            file.write("# changed\n")
        daemon.signal(signal.SIGHUP)
        process.poll_until(
            lambda: post(self.http)[0] == 200
            and self.back_end.requests[-1].headers["authorization"] == "Bearer after",
            60,
            "a token of the new configuration",
        )

    def test_the_endpoint_over_tls(self):
        files = certificates.Certificates(self)
        server = self.sink(certificate=files.path("server.pem"), key=files.path("server.key"))
        self.start(server=server, options=f", tls: {{ca_file: {files.path('ca.pem')}}}")
        self.assertEqual(post(self.http)[0], 200)
        self.assertEqual(self.back_end.requests[-1].headers["authorization"], "Bearer first")

    def test_print_config_hides_the_secrets(self):
        text = config(
            1,
            "  oauth2client: {client_id: me, client_secret: canary-1, client_certificate_key: "
            "canary-2, token_url: 'http://localhost/'}\n",
            "oauth2client",
            "otlphttp: {endpoint: 'http://localhost', auth: {authenticator: oauth2client}}",
        )
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = process.run("print-config", f"--config={file.name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"client_secret: ['\"]?\[REDACTED\]")
        self.assertNotIn("canary", done.stdout)


class Grpc(case.Case):
    def test_calls_have_a_token_over_tls(self):
        files = certificates.Certificates(self)
        credentials = grpc.ssl_server_credentials(
            [(files.text("server.key").encode(), files.text("server.pem").encode())]
        )
        back_end = GrpcSink(free_port(), credentials=credentials)
        self.addCleanup(back_end.close)
        endpoint, port = self.sink(), free_port()
        endpoint.respond_with(Tokens.token("for-grpc"))
        extensions = (
            f"  oauth2client: {{client_id: me, client_secret: s, token_url: '{endpoint.url}/'}}\n"
            "  headers_setter: {additional_auth: oauth2client, headers: [{action: upsert, key: "
            "X-Scope-OrgID, from_context: X-Scope-OrgID}]}\n"
        )
        exporter = (
            f"otlp: {{endpoint: 'localhost:{back_end.port}', {DIRECT}, tls: {{ca_file: "
            f"{files.path('ca.pem')}}}, auth: {{authenticator: headers_setter}}}}"
        )
        self.daemon(config(port, extensions, "oauth2client, headers_setter", exporter))
        self.assertEqual(post(port, "acme")[0], 200)
        self.assertEqual(back_end.metadata["authorization"], "Bearer for-grpc")
        self.assertEqual(back_end.metadata["x-scope-orgid"], "acme")

    def test_a_token_is_never_sent_in_cleartext(self):
        exporter = (
            "otlp: {endpoint: 'localhost:1', tls: {insecure: true}, auth: "
            "{authenticator: oauth2client}}"
        )
        extensions = "  oauth2client: {client_id: i, client_secret: s, token_url: 'http://h/'}\n"
        server = self.server(config(free_port(), extensions, "oauth2client", exporter))
        self.assertEqual(server.wait(), 1)
        self.assertIn("require transport level security", server.log())


class Assertions(case.Case):
    """RFC 7523: the client signs, and openssl verifies."""

    def test_an_assertion_is_signed_with_the_clients_key(self):
        with tempfile.TemporaryDirectory() as directory:
            key, public = os.path.join(directory, "key.pem"), os.path.join(directory, "pub.pem")
            openssl(f"genrsa -out {key} 2048")
            openssl(f"rsa -in {key} -pubout -out {public}")
            for algorithm in ("RS256", "RS384", "RS512"):
                with self.subTest(algorithm):
                    self.check(directory, key, public, algorithm)

    def check(self, directory, key, public, algorithm):
        endpoint, back_end, port = self.sink(), self.sink(), free_port()
        endpoint.respond_with(Tokens.token("for-the-assertion"))
        extensions = (
            f"  oauth2client: {{client_id: me, client_certificate_key_file: {key}, "
            f"client_certificate_key_id: key-1, grant_type: '{JWT}', signature_algorithm: "
            f"{algorithm}, token_url: '{endpoint.url}/token', scopes: [a, b], audience: you, "
            "claims: {level: 5, names: [x, {y: 'ä\"'}], sub: someone}}\n"
        )
        exporter = (
            f"otlphttp: {{endpoint: '{back_end.url}', {DIRECT}, auth: "
            "{authenticator: oauth2client}}"
        )
        self.daemon(config(port, extensions, "oauth2client", exporter))
        self.assertEqual(post(port)[0], 200)
        self.assertEqual(
            back_end.requests[-1].headers["authorization"], "Bearer for-the-assertion"
        )
        (asked,) = endpoint.requests
        self.assertNotIn("authorization", asked.headers)
        form = urllib.parse.parse_qs(asked.body.decode())
        assertion = form.pop("assertion")[0]
        self.assertEqual(form, {"grant_type": [JWT], "scope": ["a b"]})
        header, claims, signature = assertion.split(".")
        self.assertEqual(
            json.loads(decode(header)), {"alg": algorithm, "kid": "key-1", "typ": "JWT"}
        )
        claims = json.loads(decode(claims))
        self.assertEqual(claims.pop("exp") - claims.pop("iat"), 1800)
        self.assertRegex(claims.pop("jti"), r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]")
        self.assertEqual(
            claims,
            {
                "aud": "you",
                "iss": "me",
                "sub": "someone",
                "scope": "a b",
                "level": 5,
                "names": ["x", {"y": 'ä"'}],
            },
        )
        files = {"text": assertion.rpartition(".")[0].encode(), "sig": decode(signature)}
        for name, content in files.items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(content)
        openssl(
            f"dgst -sha{algorithm[2:]} -verify {public} -signature {directory}/sig {directory}/text"
        )


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(arguments):
    subprocess.run(["openssl", *arguments.split()], check=True, capture_output=True)


if __name__ == "__main__":
    case.main()
