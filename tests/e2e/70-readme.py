# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first minutes: what README.md and docs/ show works, on the default configuration."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support import case, client, peers, process, profiled
from support.ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST_SCREEN = ROOT / "README.md"
PROFILING = ROOT / "docs" / "profiling.md"
LINES_OF_THE_FIRST_CONFIGURATION = 12


def pages():
    """All Markdown of the project, but for what is built or read by tests."""
    done = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=False
    )
    found = [ROOT / name for name in done.stdout.splitlines() if "/corpus/" not in name]
    return found or [FIRST_SCREEN, *sorted((ROOT / "docs").glob("*.md"))]  # not a checkout


def anchors(page):
    """Names that headings of a page have in links, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(language, page=FIRST_SCREEN):
    found = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert found, f"{page.name} shows no {language}"
    return found


def pattern(line):
    """A line of shown output, in which ... stands for anything, and a blank for any others."""
    return ".*".join(r"\s+".join(map(re.escape, part.split())) for part in line.split("..."))


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

    def check_shown(self, daemon, shown):
        """Each shown line is in the log, in this order."""
        shown = [line for line in shown.splitlines() if line.strip(" .")]
        self.assertGreater(len(shown), 1)
        at = 0
        for line in shown:
            daemon.wait_for_line(pattern(line))
            log = daemon.log().splitlines()
            at = next((i + 1 for i in range(at, len(log)) if re.search(pattern(line), log[i])), 0)
            self.assertGreater(at, 0, f"{line!r} does not follow the line above it:\n{log}")

    def test_the_curl_command(self):
        daemon = self.start()
        command = blocks("sh")[0].replace("localhost:4318", f"127.0.0.1:{self.http}")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        self.assertIn(" 200 OK", done.stdout, done.stderr)
        self.check_shown(daemon, blocks("text")[0])

    def test_the_configuration_fits_a_small_machine(self):
        daemon = self.start(**{"service.budget_mib": 16})
        self.assertIn("The span index is smaller than index::bytes", daemon.log())

    def environment(self):
        return {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.http}"}

    def here(self, snippet):
        """The snippet with our port for profiles; that for spans is in the environment."""
        return snippet.replace("localhost:4040", f"127.0.0.1:{self.pyroscope}")

    def test_the_python_snippet(self):
        daemon = self.start()
        command = [peers.python(), "-c", blocks("python", PROFILING)[0]]
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
        self.check_shown(daemon, blocks("text", PROFILING)[0])

    def test_the_python_snippet_with_profiles(self):
        command = [profiled.python(), "-c"]
        daemon = self.start()
        command.append(self.here(blocks("python", PROFILING)[1]))
        subprocess.run(command, check=True, timeout=120, env=self.environment())
        self.check_a_slow_span_and_its_function(daemon, "render")

    def test_the_go_snippet_with_profiles(self):
        peers.need("pyroscope-go")
        daemon = self.start()
        with tempfile.TemporaryDirectory() as directory:
            for name in ("go.mod", "go.sum"):
                shutil.copy(ROOT / "tests" / "peers" / "pyroscope-go" / name, directory)
            program = pathlib.Path(directory, "main.go")
            program.write_text(self.here(blocks("go", PROFILING)[0]), encoding="utf-8")
            command = ["go", "run", "."]
            subprocess.run(
                command, check=True, timeout=300, env=self.environment(), cwd=directory
            )
        self.check_a_slow_span_and_its_function(daemon, "main.render")

    def test_the_configuration(self):
        self.assertEqual(len(blocks("yaml")[0].splitlines()), LINES_OF_THE_FIRST_CONFIGURATION)
        for block in blocks("yaml"):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(block)
                file.flush()
                done = process.run("validate", "--config", file.name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_link_leads_somewhere(self):
        for page in pages():
            for link in re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8")):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                with self.subTest(f"{page.relative_to(ROOT)}: {link}"):
                    self.assertTrue(target.exists())
                    self.assertTrue(not anchor or anchor in anchors(target))

    def test_every_example_is_named(self):
        page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
        for example in sorted((ROOT / "config" / "examples").glob("*.yaml")):
            self.assertIn(f"(../config/examples/{example.name})", page)

    def test_every_page_is_linked_from_the_first_screen(self):
        text = FIRST_SCREEN.read_text(encoding="utf-8")
        for page in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("[A-Z]*.md")]:
            if page != FIRST_SCREEN:
                self.assertIn(f"({page.relative_to(ROOT)})", text)

    def test_every_folder_says_what_lives_there(self):
        # Each floor of docs/architecture.md, but for folders of one component.
        folders = [folder for folder in (ROOT / "src").iterdir() if folder.is_dir()]
        kinds = ("receivers", "processors", "exporters", "connectors", "extensions")
        folders += [ROOT / kind for kind in kinds if (ROOT / kind).is_dir()]
        self.assertGreater(len(folders), 12)
        for folder in folders:
            with self.subTest(folder.name):
                text = (folder / "README.md").read_text(encoding="utf-8")
                self.assertIn("May be included by", text)
                self.assertIn("Begin with", text)
                for name in re.findall(r"`([\w/]+\.(?:h|c|def|md))`", text):
                    self.assertTrue((folder / name).exists() or (ROOT / name).exists(), name)


if __name__ == "__main__":
    case.main()
