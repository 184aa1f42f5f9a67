# SPDX-License-Identifier: Apache-2.0
"""The pages of the zpages and pprof extensions, over a running service."""

import subprocess
import tempfile

from support import case, client, otlp, peers, process
from support.ports import free_port

CONFIG = """
extensions:
  zpages:
    endpoint: 127.0.0.1:{pages}
  pprof:
    endpoint: 127.0.0.1:{pprof}
"""


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
        answer = client.get(self.pages, f"/debug/{name}")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"], "text/html; charset=utf-8")
        return answer.body.decode()

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
        answer = client.get(self.pprof, "/debug/pprof/heap")
        if process.is_sanitized():
            self.assertEqual(answer.status, 501)
            self.assertIn(b"MALLOC_CONF=prof:true", answer.body)
            return
        self.assertEqual(answer.status, 200)
        with tempfile.NamedTemporaryFile(suffix=".pb") as file:
            file.write(answer.body)
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
        answer = client.get(self.pprof, "/debug/pprof/heap")
        self.assertEqual(answer.status, 501)
        self.assertIn(b"MALLOC_CONF=prof:true", answer.body)
        self.assertIn(b"--config", client.get(self.pprof, "/debug/pprof/cmdline").body)
        self.assertEqual(client.get(self.pprof, "/debug/pprof/").status, 200)
        self.assertEqual(client.get(self.pprof, "/debug/pprof/profile").status, 404)


if __name__ == "__main__":
    case.main()
