# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first minutes: what the README says to type works, on the default configuration."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support import case, client, peers, process, profiled
from support.ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page):
    """Names that headings of a page have in links, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", README, re.S)
    assert found, f"the README shows no {language}"
    return found


class Readme(case.Case):
    def start(self, **further):
        """The default configuration on ports of ours."""
        self.http, self.pyroscope, health = free_port(), free_port(), free_port()
        text = (ROOT / "config" / "otel-collector-config.yaml").read_text(encoding="utf-8")
        settings = {
            "receivers.otlp.protocols.grpc.endpoint": f"127.0.0.1:{free_port()}",
            "receivers.otlp.protocols.http.endpoint": f"127.0.0.1:{self.http}",
            "receivers.pyroscope.endpoint": f"127.0.0.1:{self.pyroscope}",
            "extensions.health_check.endpoint": f"127.0.0.1:{health}",
            "service.telemetry.metrics.level": "none",
            **further,
        }
        arguments = [f"--set={key}={value}" for key, value in settings.items()]
        daemon = self.daemon(text, arguments=arguments)
        self.assertEqual(client.get(health, "/").status, 200)
        return daemon

    def test_the_curl_command(self):
        daemon = self.start()
        command = blocks("sh")[0].replace("localhost:4318", f"127.0.0.1:{self.http}")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        self.assertIn(" 200 OK", done.stdout, done.stderr)
        daemon.wait_for_line("hello")
        self.assertIn("service.name: Str(curl)", daemon.log())

    def test_the_configuration_fits_a_small_machine(self):
        daemon = self.start(**{"service.budget_mib": 16})
        self.assertIn("The index of spans is smaller than index::bytes", daemon.log())

    def environment(self):
        return {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.http}"}

    def here(self, snippet):
        """The snippet with our port for profiles; that for spans is in the environment."""
        return snippet.replace("localhost:4040", f"127.0.0.1:{self.pyroscope}")

    def test_the_python_snippet(self):
        daemon = self.start()
        command = [peers.python(), "-c", blocks("python")[0]]
        subprocess.run(command, check=True, timeout=60, env=self.environment())
        daemon.wait_for_line("checkout")
        self.assertIn("service.name: Str(shop)", daemon.log())

    def check_a_slow_span_and_its_function(self, daemon, function):
        span = daemon.wait_for_line(r"Span checkout, trace [0-9a-f]{32}, span [0-9a-f]{16}: ")
        self.assertRegex(span, r"[1-9][0-9]*\.[0-9] ms of cpu$")
        log = daemon.lines
        self.assertRegex(log[log.index(span) + 1], rf"^ +[0-9.]+ %  {function}$")
        name = re.search("span ([0-9a-f]{16})", span).group(1)
        daemon.wait_for_line(rf"pyroscope.profile.id: Str\({name}\)")

    def test_the_python_snippet_with_profiles(self):
        command = [profiled.python(), "-c"]
        daemon = self.start()
        command.append(self.here(blocks("python")[1]))
        subprocess.run(command, check=True, timeout=120, env=self.environment())
        self.check_a_slow_span_and_its_function(daemon, "render")

    def test_the_go_snippet_with_profiles(self):
        peers.need("pyroscope-go")
        daemon = self.start()
        with tempfile.TemporaryDirectory() as directory:
            for name in ("go.mod", "go.sum"):
                shutil.copy(ROOT / "tests" / "peers" / "pyroscope-go" / name, directory)
            program = pathlib.Path(directory, "main.go")
            program.write_text(self.here(blocks("go")[0]), encoding="utf-8")
            command = ["go", "run", "."]
            subprocess.run(
                command, check=True, timeout=300, env=self.environment(), cwd=directory
            )
        self.check_a_slow_span_and_its_function(daemon, "main.render")

    def test_the_configuration(self):
        for block in blocks("yaml"):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(block)
                file.flush()
                done = process.run("validate", "--config", file.name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8")):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                with self.subTest(f"{page.name}: {link}"):
                    self.assertTrue(target.exists())
                    self.assertTrue(not anchor or anchor in anchors(target))

    def test_every_example_is_named(self):
        for example in sorted((ROOT / "config" / "examples").glob("*.yaml")):
            self.assertIn(f"(config/examples/{example.name})", README)


if __name__ == "__main__":
    case.main()
