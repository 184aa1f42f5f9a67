# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first minutes: what the README says to type works, on the default configuration."""

import os
import pathlib
import re
import subprocess
import tempfile

from support import case, client, peers, process
from support.ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", README, re.S)
    assert found, f"the README shows no {language}"
    return found


class Readme(case.Case):
    def start(self):
        """The default configuration on ports of ours."""
        self.http, health = free_port(), free_port()
        text = (ROOT / "config" / "otel-collector-config.yaml").read_text(encoding="utf-8")
        settings = {
            "receivers.otlp.protocols.grpc.endpoint": f"127.0.0.1:{free_port()}",
            "receivers.otlp.protocols.http.endpoint": f"127.0.0.1:{self.http}",
            "extensions.health_check.endpoint": f"127.0.0.1:{health}",
            "service.telemetry.metrics.level": "none",
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

    def test_the_python_snippet(self):
        daemon = self.start()
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.http}",
        }
        subprocess.run(
            [peers.python(), "-c", blocks("python")[0]], check=True, timeout=60, env=environment
        )
        daemon.wait_for_line("checkout")
        self.assertIn("service.name: Str(shop)", daemon.log())

    def test_the_configuration(self):
        for block in blocks("yaml"):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(block)
                file.flush()
                done = process.run("validate", "--config", file.name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    case.main()
