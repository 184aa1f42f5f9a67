# SPDX-License-Identifier: Apache-2.0
"""`--skip-unsupported` and `spanflame migrate`: what runs here runs, and the rest is told."""

import pathlib
import tempfile

from support import case, client, otlp
from support.ports import free_port
from support.process import run

# Comments stand where a reader looks for them.
CONFIG = """\
receivers:
  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}
  kafka: {{brokers: [a]}} # not here
exporters:
  otlphttp: {{endpoint: '{backend}', compression: none}}
  otlp_http/auth: {{endpoint: '{backend}', auth: {{authenticator: oidc}}}}
  otlp_http/middle: {{endpoint: '{backend}', middlewares: [{{id: x}}]}}
extensions:
  zpages: {{endpoint: '127.0.0.1:{pages}'}}
  oidc: {{}}
service:
  extensions: [zpages, oidc]
  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {metrics}}}}}}}}}]}}}}
  pipelines:
    traces: {{receivers: [otlp, kafka], exporters: [otlphttp, otlp_http/middle]}}
    metrics: {{receivers: [otlp], exporters: [otlp_http/auth]}}
    logs: {{receivers: [kafka], exporters: [otlphttp]}}
"""


class SkipUnsupported(case.Case):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.back_end = self.sink()
        self.http, self.pages, self.metrics = free_port(), free_port(), free_port()
        self.text = CONFIG.format(
            http=self.http, pages=self.pages, metrics=self.metrics, backend=self.back_end.url
        )

    def file(self, text, name="config.yaml"):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_the_good_pipeline_runs_and_the_others_are_shown(self):
        self.daemon(self.text.replace("service:\n", "service:\n  unsupported: skip\n"))
        body = otlp.traces(3).SerializeToString()
        self.assertEqual(client.post(self.http, "traces", body).status, 200)
        page = client.get(self.pages, "/debug/pipelinez").body.decode()
        for text in (
            "Left out",
            "<th>logs</th>",
            "receivers::kafka",
            "refers to the extension &quot;oidc&quot;",
            "middlewares are not supported",
        ):
            self.assertIn(text, page)
        metrics = client.get(self.metrics, "/metrics").body.decode()
        for line in (
            'spanflame_skipped_pipelines{pipeline="logs",reason="no_receivers"} 1',
            'spanflame_skipped_pipelines{pipeline="metrics",reason="no_exporters"} 1',
            'spanflame_skipped_components{component="kafka",pipeline="traces",reason="component",section="receivers"} 1',
            'spanflame_skipped_components{component="otlp_http/auth",pipeline="",reason="extension",section="exporters"} 1',
        ):
            self.assertIn(line, metrics)

    def test_validate_says_what_would_be_left_out(self):
        file = self.file(self.text)
        refused = run("validate", "--config", file)
        self.assertEqual(refused.returncode, 1)
        for text in ('unknown type: "kafka"', "--skip-unsupported", "spanflame migrate"):
            self.assertIn(text, refused.stderr)
        done = run("validate", "--skip-unsupported", "--config", file)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for text in (
            "Skipped: pipeline logs: none of its receivers can run",
            "Skipped: receivers::kafka in pipeline traces: ",
            "exporters::otlp_http/middle::middlewares: middlewares are not supported",
        ):
            self.assertIn(text, done.stderr)

    def test_routing_does_without_the_pipelines_that_are_left_out(self):
        text = (
            f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{self.http}'}}}}}}}}\n"
            "processors: {k8sattributes: }\n"
            f"exporters: {{otlp_http: {{endpoint: '{self.back_end.url}', compression: none}}}}\n"
            "connectors:\n  routing:\n    default_pipelines: [traces/kept, traces/gone]\n"
            "    table: [{context: span, condition: 'name == \"nothing\"', pipelines: [traces/gone]}]\n"
            "service:\n  unsupported: skip\n  telemetry: {metrics: {level: none}}\n  pipelines:\n"
            "    traces: {receivers: [otlp], exporters: [routing]}\n"
            "    traces/kept: {receivers: [routing], exporters: [otlp_http]}\n"
            "    traces/gone: {receivers: [routing], processors: [k8sattributes], exporters: [otlp_http]}\n"
        )
        self.daemon(text)
        self.assertEqual(client.post(self.http, "traces", otlp.traces(3).SerializeToString()).status, 200)
        self.back_end.wait(lambda requests: requests)
        wrong = run("validate", "--config", self.file(text.replace("[traces/kept, traces/gone]", "[traces/else]")))
        self.assertIn('missing consumer: "traces/else"', wrong.stderr)

    def test_migrate_writes_a_file_that_starts(self):
        file, output = self.file(self.text), str(self.directory / "new.yaml")
        done = run("migrate", file, "--write", output)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"traces +partly +without exporters::otlp_http/middle\n")
        self.assertRegex(done.stdout, r"logs +missing +none of its receivers can run")
        self.assertRegex(done.stdout, r"exporters::otlphttp +runs +otlphttp is an older name of otlp_http")
        written = pathlib.Path(output).read_text(encoding="utf-8")
        self.assertEqual(
            written,
            "receivers:\n"
            f"  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{self.http}'}}}}}}\n"
            "  # Left out, not supported by spanflame: receivers kafka\n"
            "exporters:\n"
            f"  otlp_http: {{endpoint: '{self.back_end.url}', compression: none}}\n"
            "  # Left out, not supported by spanflame: exporters otlp_http/auth\n"
            "  # Left out, not supported by spanflame: exporters otlp_http/middle\n"
            "extensions:\n"
            f"  zpages: {{endpoint: '127.0.0.1:{self.pages}'}}\n"
            "  # Left out, not supported by spanflame: extensions oidc\n"
            "service:\n  extensions: [zpages]\n"
            + next(line for line in self.text.splitlines(True) if "telemetry" in line)
            + "  pipelines:\n    traces: {receivers: [otlp], exporters: [otlp_http]}\n"
            "    # Left out, not supported by spanflame: pipeline metrics\n"
            "    # Left out, not supported by spanflame: pipeline logs\n",
        )
        self.assertEqual(run("validate", "--config", output).returncode, 0)
        again = run("migrate", output, "-o", "-")
        self.assertEqual((again.returncode, again.stdout), (0, written))
        self.assertEqual(run("migrate", "/nowhere.yaml").returncode, 2)

    def test_migrate_shows_a_file_of_which_nothing_runs(self):
        text = self.text.replace("exporters: [otlphttp, otlp_http/middle]", "exporters: [otlp_http/middle]")
        done = run("migrate", self.file(text), "--write", str(self.directory / "none.yaml"))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout, r"traces +missing +none of its exporters can run")
        self.assertRegex(done.stdout, r"exporters::otlphttp +unused")
        self.assertNotIn("Wrote", done.stdout)
        self.assertRegex(done.stderr, r"^Error: nothing is left to run: .*\n$")
        self.assertFalse((self.directory / "none.yaml").exists())

    def test_migrate_shows_files_that_belong_together(self):
        base, more = self.file(self.text), self.file("exporters: {kafka: , otlphttp: {timeout: 3s}}\n", "more.yaml")
        done = run("migrate", "--config", base, "--config", more)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertTrue(done.stdout.startswith(f"{base}\n{more}\n\nPipelines:\n"), done.stdout)
        self.assertRegex(done.stdout, r"exporters::kafka +missing +.*more.yaml:1:13: ")
        for arguments, text in (
            (("--config", base, "--write", str(self.directory / "one.yaml")), "shown, but not written"),
            ((base, "--config", more), "expected what to look at"),
            ((), "expected what to look at"),
        ):
            done = run("migrate", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)

    def test_migrate_writes_nothing_that_could_not_be_built(self):
        """`routing` names a pipeline that is left out: found when pipelines are built, not before."""
        text = (
            "receivers: {otlp: {protocols: {http: }}}\n"
            "exporters: {nop: , clickhouse: }\n"
            "connectors: {routing: {default_pipelines: [traces/kept, traces/gone], "
            "table: [{context: span, condition: 'name == \"a\"', pipelines: [traces/kept]}]}}\n"
            "service:\n  pipelines:\n"
            "    traces: {receivers: [otlp], exporters: [routing]}\n"
            "    traces/kept: {receivers: [routing], exporters: [nop]}\n"
            "    traces/gone: {receivers: [routing], exporters: [clickhouse]}\n"
        )
        output = self.directory / "routed.yaml"
        done = run("migrate", self.file(text), "--write", str(output))
        self.assertEqual((done.returncode, output.exists()), (2, False))
        self.assertIn("take these parts out by hand: ", done.stderr)
        self.assertIn('default_pipelines::1: pipeline not found: missing consumer: "traces/gone"', done.stderr)
        wrong = run("migrate", self.file(text.replace("traces/gone]", "traces/else]")))
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn('missing consumer: "traces/else"', wrong.stderr)


if __name__ == "__main__":
    case.main()
