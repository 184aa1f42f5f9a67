# SPDX-License-Identifier: Apache-2.0
"""The test case and the runner that every end-to-end file uses."""

import sys
import unittest

from . import client, process
from .ports import free_port
from .sink import Sink

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
SIGNALS = ("traces", "metrics", "logs")


class Case(unittest.TestCase):
    """Closes what a test starts; a daemon that the test did not stop itself must stop with 0."""

    maxDiff = None

    def sink(self, port=None, **options):
        sink = Sink(port or free_port(), **options)
        self.addCleanup(sink.close)
        return sink

    def server(self, config, **options):
        """Any process, ready or not."""
        server = process.Server(config, **options)
        self.addCleanup(server.close)
        return server

    def daemon(self, config, **options):
        """spanflame, ready; at the end of the test it must stop cleanly."""
        server = self.server(config, **options).wait_until_ready()
        self.addCleanup(self._stop_cleanly, server)
        return server

    def _stop_cleanly(self, server):
        code = server.process.poll()
        if code is None:
            code = server.stop()
        if code != 0:
            self.fail(f"the daemon ended with {code}; its log was:\n{server.log()}")

    def grpc(self, port):
        connection = client.GrpcClient(port)
        self.addCleanup(connection.close)
        return connection


def otlp_config(grpc, http, backend, processors=None, exporter="", service="", extra=""):
    """otlp in, otlphttp out, for all three signals. Strings are YAML, already indented."""
    names = ", ".join(processors or {})
    texts = "".join(f"  {name}:\n{text}" for name, text in (processors or {}).items())
    pipelines = "".join(
        f"    {signal}:\n      receivers: [otlp]\n      processors: [{names}]\n"
        "      exporters: [otlphttp]\n"
        for signal in SIGNALS
    )
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        + (f"processors:\n{texts}" if texts else "")
        + f"exporters:\n  otlphttp:\n    endpoint: {backend}\n{exporter}"
        + extra
        + f"service:\n{service or QUIET}  pipelines:\n{pipelines}"
    )


# No listener for metrics: most tests do not read them.
QUIET = "  telemetry:\n    metrics:\n      level: none\n"
UNCOMPRESSED = "    compression: none\n"
# The client gets its response after the back-end's.
DIRECT = "    sending_queue:\n      enabled: false\n"
NO_RETRY = "    retry_on_failure:\n      enabled: false\n"


def metrics_service(port):
    """The service section's head with a Prometheus reader on this port."""
    return (
        "  telemetry:\n    metrics:\n      readers:\n      - pull:\n          exporter:\n"
        f"            prometheus:\n              host: 127.0.0.1\n              port: {port}\n"
    )


class Result(unittest.TextTestResult):
    """Knows how many tests, or parts of tests, passed."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.passed += err is None


def verdict(result):
    """The exit code: nothing passed and something was skipped is ctest's skip; no test at all fails."""
    if not result.wasSuccessful() or not (result.passed or result.skipped):
        return 1
    return 0 if result.passed else SKIPPED


def main():
    """Runs the file's tests. The reasons of skipped ones are printed, for the end of `make test`."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    program = unittest.main(module="__main__", exit=False, testRunner=runner)
    for test, reason in program.result.skipped:
        print(f"SKIPPED: {test}: {reason}", file=sys.stderr)
    sys.exit(verdict(program.result))
