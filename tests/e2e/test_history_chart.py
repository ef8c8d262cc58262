"""What the chart of a history draws: names of steps and segments, pull-request revisions hollow beside the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from contract.api import Scope
from contract.report import Environment, Failure, Metric
from service.auth import issue_token
from tests.e2e.browser import Tab
from tests.e2e.stack import Stack, until
from tests.service.client import CASES, SUITE, Api, case_result, report

CHART = f"/projects/local/kernels/{SUITE['kernel']}?class=h200&case={CASES[0]}&metric=time"
# What the canvas is told to write, where, and the colour of what it drew at a place.
_KEEP_WRITTEN = """
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.written.push(text);
    return write.call(this, text, ...rest);
  };
"""
_COLOURS = """() => {
  const [canvas, over] = ["canvas", ".u-over"].map((name) => document.querySelector(`.uplot ${name}`));
  const shown = [...over.querySelectorAll(".u-cursor-pt")].map((each) => each.getBoundingClientRect());
  const [point] = shown.filter((each) => each.width > 0 && each.x > 0);
  if (!point) return null;
  const frame = canvas.getBoundingClientRect();
  const at = (dx) => {
    const x = (point.x + point.width / 2 - frame.x + dx) * devicePixelRatio;
    const y = (point.y + point.height / 2 - frame.y) * devicePixelRatio;
    return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
  };
  return {inside: at(0), ring: [at(-3), at(3)]};
}"""


class Line:
    """A kernel whose history a node reports as if it had measured it: another driver from r12 on, a step at r20, r26
    wrong; and two revisions of pull requests, one as fast as its base and one slower."""

    def __init__(self, folder: Path) -> None:
        self.stack = Stack(folder)
        self.stack.start_redis()
        self.stack.start_service()
        self.stack.api.bring_suite(device_classes=["h200"], revisions=[])
        with self.stack.database.write() as session:
            self._node = self.stack.client(issue_token(session, scope=Scope.WORKER, node="gpu-07")[1])
        for place in range(32):
            value = (100.0 if place < 20 else 106.0) + 0.05 * (place % 3)
            driver = "580" if place < 12 else "585"
            failure = Failure(reason="wrong_values", stage="verify", message="off by one") if place == 26 else None
            self._report(f"r{place}", value, driver=driver, failure=failure)
        self._report("pr41", 105.0, branch="epilogue", ratio=1.0)
        self._report("pr42", 110.0, branch="smaller-tiles", ratio=1.04)

    def _report(
        self, label: str, value: float, *, driver: str = "585", ratio: float | None = None, **more: Any
    ) -> None:
        failure = more.pop("failure", None)
        api: Api = self.stack.api
        [evaluation] = api.submit(label, source=label, **more)["evaluations"]
        job = self._node.claim(evaluation, name="gpu-07", device_class="h200")
        time = Metric(name="time", unit="us", value=value, low=value - 0.3, high=value + 0.3, better="lower")
        compared = {"ratio": ratio} if ratio else {"base_skipped": "as if"}
        cases = () if failure else tuple(case_result(case, metrics=(time,), **compared) for case in CASES)
        said = report(*cases, device_class="h200", environment=Environment(device="a card", driver=driver))
        self._node.finish(job, said.model_copy(update={"failure": failure, "cases": cases}))


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    line = Line(tmp_path_factory.mktemp("line"))
    yield line
    line.stack.stop()


@pytest.fixture(params=["light", "dark"])
def tab(browser: Any, line: Line, request: pytest.FixtureRequest) -> Iterator[Tab]:
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1280, "height": 900})
    context.add_init_script(_KEEP_WRITTEN)
    tab = Tab(context, line.stack.url)
    tab.sign_in(line.stack.token)
    yield tab
    tab.quiet()
    context.close()


def _wait_until_written(tab: Tab, *texts: str) -> None:
    # Not by wait_for_function: it evaluates text inside the page, which the page's policy refuses.
    until(lambda: set(texts) <= set(tab.page.evaluate("window.written")), f"{texts} on the canvas")


def test_steps_segments_and_failures_are_named_on_the_line(tab: Tab) -> None:
    page = tab.open(CHART, shows="34 revisions")
    named = page.get_by_role("list", name="Changes of level").get_by_role("listitem")
    expect(named).to_have_text(["new segment from r12 on: driver 580 → 585", "step from r20 on: 6.0 % slower"])
    _wait_until_written(tab, "6.0 % slower", "driver 580 → 585", "✕")
    page.evaluate("window.written = []")
    page.set_viewport_size({"width": 390, "height": 844})
    _wait_until_written(tab, "6.0 % slower", "driver 580 → 585")


@pytest.mark.parametrize("label", ["pr41", "pr42"])
def test_revisions_of_pull_requests_are_hollow_beside_the_line(tab: Tab, label: str) -> None:
    page = tab.open(CHART, shows="34 revisions")
    chart = page.get_by_role("slider")
    chart.focus()
    page.keyboard.press("End")
    # Beside the line both come after their base, the last one; pr42 came last.
    for place in ("pr42", "pr41"):
        expect(chart).to_have_attribute("aria-valuetext", re.compile(rf"^{place} \(beside the mainline\)"))
        if place == label:
            break
        page.keyboard.press("ArrowLeft")
    behind = page.evaluate("getComputedStyle(document.body).backgroundColor")
    until(lambda: _is_hollow(page.evaluate(_COLOURS), behind), f"{label} is drawn hollow")
    page.get_by_role("button", name="mainline", exact=True).click()
    page.get_by_text("32 revisions").wait_for()


def _is_hollow(drawn: Any, behind: str) -> bool:
    """`drawn`: None until the cursor stands on a point."""
    if drawn is None:
        return False
    inside = drawn["inside"][:3]
    ringed = all(ring[3] > 0 and ring[:3] != inside for ring in drawn["ring"])
    return ringed and f"rgb({', '.join(map(str, inside))})" == behind
