# SPDX-License-Identifier: Apache-2.0
"""The explore page in a real browser with traces that are too large for most viewers: what it takes to paint them,
to scroll, and of memory. Bounds of time are for release builds."""

import importlib
import time
import uuid

from support import case, process

explore = importlib.import_module("80-explore-page")


class Large(explore.Page):
    """Traces that are too large for most viewers. Bounds are for a machine that does other things, too."""

    def fill(self, spans):
        now = time.time_ns() - 60 * explore.SECOND
        trace = uuid.uuid4().bytes
        ids = [number.to_bytes(8, "big") for number in range(1, spans + 1)]
        for first in range(0, spans, 5000):
            rows = []
            for i in range(first, first + 5000):
                parent = ids[(i - 1) // 8] if i else b""
                start = now + i * 10_000_000 // (spans // 1000)
                rows.append((trace, ids[i], parent, f"step {i % 40}", start, now + 50 * explore.SECOND - i))
            self.send(explore.spans_request(f"service-{first // 5000 % 6}", rows))
        self.wait_for("all are kept", "status", lambda got: got["spans"] == spans)
        self.open("traces")
        self.browser.until("the list", "return document.querySelector('.traces tbody tr')")
        return trace

    def first_paint_ms(self, trace):
        return self.browser.run_async(
            "const [trace, done] = arguments; const start = performance.now();"
            "location.hash = `#/trace/${trace}`;"
            "const look = () => (document.querySelectorAll('.row:not([hidden]) .bar[style]').length > 10"
            " ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))) : requestAnimationFrame(look));"
            "look();",
            trace.hex(),
        )

    def frames_ms(self):
        """What each frame costs while the waterfall is scrolled, in order of the costs."""
        return self.browser.run_async(
            "const done = arguments[0]; const scroller = document.querySelector('.wf-scroll');"
            "const ask = window.requestAnimationFrame; const costs = []; let steps = 0;"
            "window.requestAnimationFrame = (work) => ask((time) => { const start = performance.now(); work(time);"
            " scroller.offsetHeight; costs.push(performance.now() - start); });"
            "const step = () => { scroller.scrollTop += steps % 20 ? 120 : scroller.scrollHeight / 25;"
            " if (++steps < 400) ask(step); else done(costs.sort((a, b) => a - b)); }; ask(step);"
        )

    def measure(self, spans):
        trace = self.fill(spans)
        paint = self.first_paint_ms(trace)
        frames = self.frames_ms()
        median, late = frames[len(frames) // 2], frames[int(len(frames) * 0.95)]
        self.browser.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        heap = self.browser.run("return performance.memory.usedJSHeapSize")
        print(
            f"{spans} spans: first paint {paint:.0f} ms; frame of scrolling: median {median:.1f} ms, "
            f"95 % {late:.1f} ms, worst {frames[-1]:.1f} ms; heap {heap / 2**20:.0f} MiB"
        )
        self.assertLess(len(self.browser.run("return [...document.querySelectorAll('.row')]")), 120)
        self.assertLess(heap, 200 * 2**20)
        return paint, median, late

    def test_large_trace(self):
        paint, median, late = self.measure(100_000)
        self.browser.screenshot("large")
        if not process.is_sanitized():
            self.assertLess(paint, 1000)  # 300 ms on a machine of its own
            self.assertLess(median, 8)
            self.assertLess(late, 16)  # 8 ms there

    def test_trace_of_a_million_spans(self):
        if process.is_sanitized():
            self.skipTest("sanitizers make it take minutes")
        paint, median, late = self.measure(1_000_000)
        self.assertLess(paint, 10_000)  # 3 s on a machine of its own
        self.assertLess(median, 8)
        self.assertLess(late, 16)


if __name__ == "__main__":
    case.main()
