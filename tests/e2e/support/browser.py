# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium on the explore page, driven by Selenium from the peer `browser`."""

import glob
import os
import pathlib
import re
import shutil
import sys
import tempfile

from . import peers

WIDE, NARROW = (1440, 900), (420, 860)
WITHIN_S = 30
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-precise-memory-info",
)


def need():
    """Skips the test where there is no browser."""
    peers.need("browser")
    built = pathlib.Path(os.environ["SPANFLAME_PEERS"]) / "browser"
    for folder in glob.glob(str(built / "venv/lib/python*/site-packages")):
        if folder not in sys.path:
            sys.path.append(folder)
    return built


class Browser:
    """One window. What its console says is kept: see complaints()."""

    def __init__(self, size=WIDE):
        built = need()
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self._axe = (built / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
        self._profile = tempfile.mkdtemp(prefix="spanflame-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self._profile}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(
            options=options, service=Service(shutil.which("chromedriver"))
        )
        self.driver.set_script_timeout(WITHIN_S)
        self._said = []

    def close(self):
        self.driver.quit()
        shutil.rmtree(self._profile, ignore_errors=True)

    def resize(self, size):
        """Of the page itself; a window has a smallest width."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )

    def open(self, url):
        self.driver.get("about:blank")
        self.driver.get(url)

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def run_async(self, script, *values):
        """The script calls the last of its arguments."""
        return self.driver.execute_async_script(script, *values)

    def until(self, what, check, within=WITHIN_S):
        """The first true result of `check`, a function or a script."""
        from selenium.common.exceptions import (
            StaleElementReferenceException,
            TimeoutException,
        )
        from selenium.webdriver.support.ui import WebDriverWait

        def look(_):
            return self.run(check) if isinstance(check, str) else check()

        wait = WebDriverWait(
            self.driver, within, 0.05, ignored_exceptions=[StaleElementReferenceException]
        )
        try:
            return wait.until(look)
        except TimeoutException:
            shown = self.run("return document.body.innerText")
            raise AssertionError(f"not within {within} s: {what}; the page shows:\n{shown[:3000]}")

    def find(self, selector):
        return self.until(
            f"there is a {selector}", lambda: self.run(_SEEN + "return seen(arguments[0])[0]", selector)
        )

    def all(self, selector):
        return self.run(_SEEN + "return seen(arguments[0])", selector)

    def texts(self, selector):
        return self.run(_SEEN + "return seen(arguments[0]).map((one) => one.innerText)", selector)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(getattr(Keys, key, key))
        chain.perform()

    def click(self, element, *, holding=None):
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.driver)
        if holding:
            chain.key_down(getattr(Keys, holding))
        chain.move_to_element(element).click()
        if holding:
            chain.key_up(getattr(Keys, holding))
        chain.perform()

    def screenshot(self, name):
        """Kept as a build artefact."""
        folder = os.environ.get("SPANFLAME_SCREENSHOTS")
        if folder:
            os.makedirs(folder, exist_ok=True)
            self.driver.save_screenshot(os.path.join(folder, f"{name}.png"))

    def complaints(self):
        """Errors of the console: scripts that failed, what the content policy blocked."""
        self._said += self.driver.get_log("browser")
        return [
            line["message"]
            for line in self._said
            if line["level"] == "SEVERE" or re.search("Content.Security|Trusted", line["message"])
        ]

    def axe(self):
        """Serious and critical findings about accessibility, each with its elements."""
        self.run(self._axe + "; window.axe = axe;")
        found = self.run_async(
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then((all) => done(all.violations"
            ".filter((one) => ['serious', 'critical'].includes(one.impact))"
            ".map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)"
            " + ' ' + node.failureSummary).join(' | '))))"
        )
        return found


_SEEN = (
    "const seen = (selector) => [...document.querySelectorAll(selector)]"
    ".filter((one) => one.checkVisibility());"
)
