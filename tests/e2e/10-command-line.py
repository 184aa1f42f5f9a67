# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command prints, where, and its exit code."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from support import case
from support.process import binary, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = case.otlp_config(4317, 4318, "http://127.0.0.1:1")
BAD = """\
receivers:
  otlp:
    protocols:
      grpc:
        endpont: localhost:4317
processors:
  batch:
    timeout: soon
exporters:
  nop:
service:
  pipelines:
    traces:
      receivers: [otlp]
      processors: [btach]
      exporters: [nop]
"""


class CommandLine(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, text, name="config.yaml"):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def check_refused(self, done, text):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_version_names_the_program(self):
        for flag in ("--version", "-v"):
            done = run(flag)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"spanflame.*\d+\.\d+\.\d+")

    def test_help_names_every_command(self):
        for flag in ("--help", "-h"):
            done = run(flag)
            self.assertEqual(done.returncode, 0)
            for word in ("validate", "components", "print-config", "--config", "--set"):
                self.assertIn(word, done.stdout)

    def test_nothing_to_run_is_an_error(self):
        self.check_refused(run(), "at least one config flag must be provided")

    def test_an_unknown_flag_is_an_error(self):
        self.check_refused(run("--confg=x"), "unknown flag: --confg")

    def test_a_setting_without_equal_sign_is_an_error(self):
        self.check_refused(run("validate", "--set", "a.b"), "missing equal sign")

    def test_a_missing_file_is_an_error_that_names_it(self):
        self.check_refused(run("validate", "--config", "/none/x.yaml"), "/none/x.yaml")

    def test_validate_is_silent_on_success(self):
        done = run("validate", "--config", self.file(GOOD))
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_validate_names_the_better_exporter_for_a_pyroscope_server(self):
        text = (
            "receivers: {nop: }\nexporters:\n  otlp_http: {endpoint: 'http://localhost:4040'}\n"
            "  pyroscope: {endpoint: 'http://localhost:4040'}\n"
            "service:\n  pipelines:\n    traces: {receivers: [nop], exporters: [otlp_http]}\n"
            "    profiles: {receivers: [nop], exporters: [otlp_http, pyroscope]}\n"
        )
        path = self.file(text)
        done = run("validate", f"--config={path}")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(f'{path}:8:5: service::pipelines::profiles: exporter "otlp_http"', done.stderr)
        self.assertIn("the pyroscope exporter suits it better", done.stderr)

    def test_validate_reports_every_mistake_with_its_place(self):
        path = self.file(BAD)
        done = run("validate", f"--config={path}")
        self.check_refused(done, f"{path}:5:")
        for place, words in (
            (5, ("endpont", "endpoint")),
            (8, ("soon",)),
            (15, ("btach", "batch")),
        ):
            line = next((text for text in done.stderr.splitlines() if f":{place}:" in text), "")
            for word in words:
                self.assertIn(word, line, done.stderr)

    def test_running_with_mistakes_reports_them_too(self):
        self.check_refused(run("--config", self.file(BAD)), "endpont")

    def test_later_files_and_settings_win(self):
        first = self.file(GOOD)
        second = self.file("exporters:\n  otlphttp:\n    timeout: 7s\n", "second.yaml")
        for order in (
            ("--config", first, "--config", second, "--set", "exporters.otlphttp.compression=none"),
            (
                "--set=exporters.otlphttp.compression=none",
                f"--config={first}",
                f"--config={second}",
            ),
        ):
            done = run("print-config", *order)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("timeout: 7s", done.stdout)
            self.assertIn("compression: none", done.stdout)

    def test_print_config_hides_secrets_by_default(self):
        text = GOOD.replace(
            "    endpoint: http", '    headers:\n      x-token: "${env:TOKEN}"\n    endpoint: http'
        )
        path, environment = self.file(text), {"TOKEN": "canary-7361"}
        hidden = run("print-config", "--config", path, environment=environment)
        self.assertEqual(hidden.returncode, 0, hidden.stderr)
        self.assertIn("[REDACTED]", hidden.stdout)
        self.assertNotIn("canary-7361", hidden.stdout + hidden.stderr)
        shown = run(
            "print-config", "--mode", "unredacted", "--config", path, environment=environment
        )
        self.assertIn("canary-7361", shown.stdout)

    def test_print_config_hides_each_secret_of_a_list(self):
        text = (
            "extensions:\n  bearertokenauth:\n    tokens: [canary-1, '${env:TOKEN}']\n"
            "  bearertokenauth/one:\n    tokens: [canary-3]\n"
            + GOOD.replace("service:\n", "service:\n  extensions: [bearertokenauth]\n")
        )
        path, environment = self.file(text), {"TOKEN": "canary-2"}
        for mode in ([], ["--format", "json"]):
            hidden = run("print-config", *mode, "--config", path, environment=environment)
            self.assertEqual(hidden.returncode, 0, hidden.stderr)
            self.assertNotIn("canary", hidden.stdout + hidden.stderr)
            self.assertEqual(hidden.stdout.count("[REDACTED]"), 3)
        shown = run(
            "print-config", "--mode", "unredacted", "--config", path, environment=environment
        )
        for number in (1, 2, 3):
            self.assertIn(f"canary-{number}", shown.stdout)

    def test_validate_builds_what_would_run(self):
        """The options are all right, but together they leave no memory for the span index."""
        text = (
            "receivers: {otlp: {protocols: {http: }}}\n"
            "processors: {trace_profile_join: {window_fallback: true}}\nexporters: {nop: }\n"
            "service: {budget_mib: %d, pipelines: {traces: {receivers: [otlp], "
            "processors: [trace_profile_join], exporters: [nop]}}}\n"
        )
        self.check_refused(
            run("validate", "--config", self.file(text % 1)), "the span index needs"
        )
        done = run("validate", "--config", self.file(text % 512))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_validate_does_without_the_files_of_the_machine_that_it_is_for(self):
        text = GOOD.replace(
            "endpoint: 127.0.0.1:4318\n",
            "endpoint: 127.0.0.1:4318\n"
            "        tls: {cert_file: /none/cert.pem, key_file: /none/key.pem}\n",
        )
        done = run("validate", "--config", self.file(text))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check_refused(run("--config", self.file(text)), "/none/cert.pem")

    def test_print_config_as_json_is_json(self):
        done = run("print-config", "--format", "json", "--config", self.file(GOOD))
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = json.loads(done.stdout)
        self.assertEqual(sorted(printed["service"]["pipelines"]), sorted(case.SIGNALS))

    def complete(self, shell, script, *words):
        """What this shell offers for a command line, by our completion."""
        if shutil.which(shell) is None:
            self.skipTest(f"this machine has no {shell}")
        file = self.file(run("completion", shell).stdout, f"completion.{shell}")
        done = subprocess.run(
            [shell, *script, file, *words],
            capture_output=True,
            text=True,
            cwd=self.directory,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    def test_bash_completes(self):
        script = (
            'source "$0"; COMP_WORDS=(spanflame "$@"); COMP_CWORD=$#; _spanflame; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        self.file("", "some.yaml")
        for words, offered in (
            (["va"], {"validate"}),
            (["completion", ""], {"bash", "zsh", "fish"}),
            (["profile", "m"], {"merge"}),
            (["profile", "show", "--fl"], {"--flamegraph"}),
            (["profile", "show", "some"], {"some.yaml"}),
            (["journal", "ex"], {"export"}),
            (["journal", "export", "--al"], {"--all"}),
            (["journal", "export", "--signal", "p"], {"profiles"}),
            (["journal", "list", "some"], {"some.yaml"}),
            (["validate", "--config", "some"], {"some.yaml"}),
            (["validate", "--config", "=", "some"], {"some.yaml"}),
            (["print-config", "--format", "=", ""], {"yaml", "json"}),
            (["print-config", "--mo"], {"--mode"}),
        ):
            with self.subTest(words):
                self.assertEqual(self.complete("bash", ["-c", script], *words), offered)

    def test_fish_completes(self):
        script = 'source $argv[1]; complete -C "spanflame $argv[2]"'
        for line, offered in (
            ("va", {"validate"}),
            ("completion ", {"bash", "zsh", "fish"}),
            ("profile me", {"merge"}),
            ("profile show --fl", {"--flamegraph"}),
            ("journal ver", {"verify"}),
            ("journal export --al", {"--all"}),
            ("print-config --format=", {"--format=yaml", "--format=json"}),
        ):
            with self.subTest(line):
                found = self.complete("fish", ["--no-config", "-c", script], line)
                self.assertLessEqual(offered, found)

    def test_zsh_completes(self):
        """In a terminal of its own, since zsh completes nowhere else."""
        script = """
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell "PROMPT= ; autoload -Uz compinit; compinit -u -D; source '$1'"
            zpty -w shell "bindkey '^I' list-choices; LISTMAX=1000; echo re''ady"
            zpty -r -m shell out '*ready*'
            zpty -w -n shell "spanflame $2"$'\t'
            zpty -r -m shell out "*$3*"
            print -r -- "$3"
        """
        for line, offered in (
            ("", "Check the configuration"),
            ("profile ", "Several profiles into one file"),
            ("journal ", "Check every record"),
            ("journal export --si", "signal"),
            ("print-config --format=", "json*yaml"),
        ):
            with self.subTest(line):
                found = self.complete("zsh", ["-f", "-c", script, "zsh"], line, offered)
                self.assertEqual(found, {offered})

    def test_an_unknown_shell_is_an_error(self):
        words = 'completion: found "tcsh", expected bash, zsh or fish'
        self.check_refused(run("completion", "tcsh"), words)
        self.check_refused(run("completion"), "completion: found no shell")

    def test_components_lists_what_is_built_in(self):
        done = run("components")
        self.assertEqual(done.returncode, 0, done.stderr)
        for section in ("buildinfo:", "receivers:", "processors:", "exporters:", "extensions:"):
            self.assertIn(section, done.stdout)
        for name in ("otlp", "batch", "memory_limiter", "resource", "otlp_http", "debug", "nop"):
            self.assertRegex(done.stdout, rf"name: {name}\b")

    def test_the_committed_reference_is_what_the_option_tables_say(self):
        done = run("config-reference")
        self.assertEqual(done.returncode, 0, done.stderr)
        committed = (ROOT / "config" / "reference.md").read_text(encoding="utf-8")
        self.assertEqual(done.stdout, committed, "run `make reference`")


class Shipped(unittest.TestCase):
    """Every configuration that we ship is good."""

    def test_every_shipped_configuration_validates(self):
        paths = sorted((ROOT / "config").rglob("*.yaml"))
        paths.remove(ROOT / "config/examples/grafana/datasources.yaml")  # for Grafana
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            with self.subTest(path.name):
                done = run("validate", f"--config={path}", environment={"BACKEND_TOKEN": "t"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_links_of_the_page_about_grafana_open_its_data_sources(self):
        folder = ROOT / "config" / "examples" / "grafana"
        page = (folder / "README.md").read_text(encoding="utf-8")
        links = re.search(r"```yaml\n(.*?)```", page, re.DOTALL).group(1)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"processors:\n  trace_profile_join:\n{links}")
            file.flush()
            files = f"--config={folder / 'spanflame.yaml'}", f"--config={file.name}"
            self.assertEqual(run("validate", *files).stderr, "")
            printed = json.loads(run("print-config", "--format", "json", *files).stdout)
        opened = []
        for template in printed["processors"]["trace_profile_join"]["links"].values():
            url = urllib.parse.urlsplit(re.sub(r"\{\w+\}", "1", template))
            panes = json.loads(urllib.parse.parse_qs(url.query)["panes"][0])
            opened += [pane["datasource"] for pane in panes.values()]
        sources = (folder / "datasources.yaml").read_text(encoding="utf-8")
        self.assertEqual(sorted(opened), sorted(re.findall(r" uid: (\w+)", sources)))


class Packaging(unittest.TestCase):
    """What the Debian package holds."""

    def test_man_pages_name_every_command_flag_and_key(self):
        with tempfile.TemporaryDirectory() as directory:
            maker = ROOT / "packaging" / "man_pages.py"
            subprocess.run([sys.executable, "-B", maker, binary(), directory], check=True, timeout=60)
            program, configuration = (
                pathlib.Path(directory, name).read_text(encoding="utf-8").replace("\\-", "-")
                for name in ("spanflame.1", "spanflame.yaml.5")
            )
        for text in (run("--help").stdout, run("profile", "help").stdout, run("journal", "help").stdout):
            for name in re.findall(r"^  (-{0,2}\w[\w-]*) ", text, re.M):
                self.assertRegex(program, rf"\n\\fB{re.escape(name)}\b")
        reference = run("config-reference").stdout
        keys = re.findall(r"^\| `([^`]+)`", reference, re.M)
        self.assertGreater(len(keys), 300)
        self.assertEqual(re.findall(r"^\.TP\n\\fB(\S+)\\fR \(", configuration, re.M), keys)
        for heading in re.findall(r"^### (\w+): `(\w+)`", reference, re.M):
            self.assertIn(".SS {}: \\fB{}\\fR\n".format(*heading), configuration)

    def test_the_unit_needs_nothing_but_the_program_and_a_shell(self):
        unit = (ROOT / "config" / "spanflame.service").read_text(encoding="utf-8")
        commands = re.findall(r"^Exec\w+=(\S+)", unit, re.M)
        self.assertEqual(len(commands), 3)
        self.assertEqual(set(commands), {"/usr/bin/spanflame", "/bin/sh"})

    def test_maintainer_scripts_are_good_shell(self):
        for name in ("postinst", "prerm", "postrm"):
            with self.subTest(name):
                done = subprocess.run(["sh", "-n", ROOT / "packaging" / name], capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    case.main()
