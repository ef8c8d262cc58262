"""Debian's Chromium, driven by Playwright, and what every page must hold: no script of a submission's, nothing refused
by the policy, nothing that axe finds serious."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# What must happen in the end is waited for: a busy machine takes its time.
LIMIT_MS = 60_000
expect.set_options(timeout=LIMIT_MS)
_AXE_RUN = """async (rules) => {
  const only = rules.length ? {runOnly: rules} : {};
  return (await axe.run(document, {resultTypes: ["violations"], ...only})).violations;
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium")
    assert path, "these tests need Debian's chromium: scripts/system-packages installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


class Tab:
    """One page of a browser of its own; what it was told by console and errors is kept."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        context.set_default_timeout(LIMIT_MS)
        self.context = context
        self.url = url
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self._heard(said.text))

    def _heard(self, said: str) -> None:
        if "Content Security Policy" in said:
            self.complaints.append(said)

    def sign_in(self, token: str) -> None:
        """As the form does it, without the form."""
        answer = self.context.request.post(f"{self.url}/api/v1/session", data={"token": token})
        assert answer.ok, answer.text()

    def open(self, path: str, *, shows: str) -> Page:
        """Go there, and wait until the page shows that text."""
        self.page.goto(self.url + path)
        self.page.get_by_text(shows).first.wait_for()
        return self.page

    def accessible(self, *rules: str) -> None:
        """By all rules of axe, or by these."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(_AXE_RUN, list(rules))
        bad = [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in {"serious", "critical"}]
        assert not bad, f"{self.page.url}: {bad}"

    def fits(self) -> None:
        """Only what may scroll scrolls sideways: never the page."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{self.page.url} is {wide} px wider than the screen"

    def quiet(self) -> None:
        assert self.complaints == []
