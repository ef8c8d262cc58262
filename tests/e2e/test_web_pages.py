"""The web view in a real browser, from a real service with an imported history and evaluations of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from contract.api import Scope
from service.auth import issue_token
from tests.e2e import revisions
from tests.e2e.browser import Tab
from tests.e2e.site import MARKUP, Site
from tests.e2e.stack import Stack, until

CASE = "b1-h64-s1024-d128-full"
B300 = f"/projects/local/kernels/attention_b300?class=b300&case={CASE}&metric=throughput"
HGEMM = "/projects/local/kernels/hgemm?class=h200&earlier=1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.stack.stop()


@pytest.fixture
def tab(browser: Any, site: Site) -> Iterator[Tab]:
    context = browser.new_context()
    tab = Tab(context, site.stack.url)
    tab.sign_in(site.stack.token)
    yield tab
    tab.quiet()
    context.close()


def _pages(site: Site) -> dict[str, str]:
    """Path -> what it shows when it is there."""
    return {
        "/projects/local": "New and bad",
        B300: "17 revisions",
        f"/projects/local/kernels/{site.kernel}?code=1": "3 revisions",
        HGEMM: "beside earlier revisions",
        site.revision(site.passed): "Verification",
        site.revision(site.compared): "The processes' values",
        site.revision(site.broken): "build failed",
        "/regressions": "affected case",
        "/nodes": "last heard of",
    }


# What the dark colours change is contrast.
@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_axe_finds_nothing_serious_on_any_page(browser: Any, site: Site, scheme: Any, rules: tuple[str, ...]) -> None:
    context = browser.new_context(color_scheme=scheme)
    tab = Tab(context, site.stack.url)
    tab.open("/", shows="Sign in")
    tab.accessible(*rules)
    tab.sign_in(site.stack.token)
    for path, shown in _pages(site).items():
        tab.open(path, shows=shown)
        tab.accessible(*rules)
    tab.quiet()
    context.close()


def test_every_page_fits_a_phone(browser: Any, site: Site) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    tab = Tab(context, site.stack.url)
    tab.sign_in(site.stack.token)
    for path, shown in _pages(site).items():
        tab.open(path, shows=shown)
        tab.fits()
    tab.quiet()
    context.close()


def test_the_overview_says_first_what_got_slower_and_leads_to_its_history(tab: Tab) -> None:
    page = tab.open("/", shows="New and bad")
    bad = page.locator(".bad-list li", has_text="attention_b300")
    expect(bad).to_contain_text("V36 on b300: ▼ 4.5 % slower than V35")
    rows = page.get_by_role("region", name="Kernels by device class").get_by_role("row")
    expect(rows.filter(has_text="attention_b300")).to_contain_text("TFLOPS")
    bad.get_by_role("link", name="history").click()
    page.get_by_role("slider").wait_for()
    expect(page).to_have_url(re.compile(r"/kernels/attention_b300\?class=b300"))


def test_the_history_is_read_by_arrow_keys_and_every_choice_is_in_the_address(tab: Tab) -> None:
    page = tab.open(B300, shows="17 revisions")
    chart = page.get_by_role("slider")
    chart.focus()
    page.keyboard.press("Home")
    _says(chart, "^V20 · 220.5 TFLOPS")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    _says(chart, "▼ 15 % slower than V21")
    expect(page.locator(".readout")).to_have_text(str(chart.get_attribute("aria-valuetext")))
    page.get_by_label("range").select_option("20")
    page.get_by_role("button", name="from zero").click()
    page.get_by_role("button", name="of baseline").click()
    expect(page).to_have_url(re.compile(r"at=rev_\w+.*range=20.*zero=1.*ratio=1"))
    page.reload()
    _says(chart, "▼ 15 % slower than V21")
    expect(page.get_by_role("button", name="from zero")).to_have_attribute("aria-pressed", "true")
    chart.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="attention_b300 V22").wait_for()


def test_the_chart_stands_beside_a_table_and_its_files(tab: Tab) -> None:
    page = tab.open(B300, shows="17 revisions")
    table = page.get_by_role("region", name="The same as a table")
    expect(table.get_by_role("row")).to_have_count(18)
    expect(table.get_by_role("row").filter(has_text="V34")).to_contain_text("▼ 12 % slower than V33")
    for name, start in (("CSV", "place,"), ("JSON", "{")):
        href = page.get_by_role("link", name=name, exact=True).get_attribute("href")
        answer = tab.context.request.get(f"{tab.url}{href}")
        assert answer.ok
        assert answer.text().startswith(start) or "label" in answer.text().splitlines()[0]


def test_a_revision_says_its_outcome_its_cases_and_its_verification(tab: Tab, site: Site) -> None:
    page = tab.open(site.revision(site.passed), shows="Verification")
    expect(page.locator(".sentence")).to_have_text(re.compile("^✓ passed: right in all checks"))
    expect(page.get_by_role("region", name="Cases, the slowest first")).to_contain_text("16^3")
    expect(page.get_by_role("region", name="Worst error")).to_contain_text("normal")
    for stage in ("fetch", "build", "verify", "measure"):
        expect(page.get_by_role("region", name="Stages and how long")).to_contain_text(stage)
    page.get_by_text("Source", exact=True).click()
    page.get_by_text("static void gemm").wait_for()


def test_the_verification_says_error_and_bound_of_every_check(tab: Tab, site: Site) -> None:
    page = tab.open(site.revision(site.passed), shows="Verification")
    page.get_by_text("Errors and bounds").click()
    table = page.get_by_role("region", name="Error and bound of every check")
    rows = table.get_by_role("row")
    checks = [check for check in site.passed["checks"] if check["error"] is not None]
    assert checks
    expect(rows).to_have_count(1 + len(checks))
    worst = max(checks, key=lambda check: check["of_bound"] or 0.0)
    expect(rows.nth(1)).to_contain_text(worst["family"].replace("_", " "))


def test_a_comparison_shows_every_process_and_can_be_kept(tab: Tab, site: Site) -> None:
    page = tab.open(site.revision(site.compared), shows="The processes' values")
    page.get_by_text("The processes' values").click()
    case = page.get_by_role("region", name="Median time per call").get_by_role("row")
    expect(case).to_have_count(3)
    page.locator("figure circle").first.wait_for()
    compared = page.get_by_role("region", name="Cases, the slowest first")
    expect(compared).to_contain_text("side by side")
    href = page.locator("#cases ~ p .files").get_by_role("link", name="CSV").get_attribute("href")
    assert tab.context.request.get(f"{tab.url}{href}").text().startswith("case,verdict,ratio")
    page.get_by_role("button", name="Compare with another revision").click()
    page.get_by_role("option", name="broken").wait_for(state="attached")
    page.get_by_label("against").select_option(site.broken["revision"]["id"])
    page.get_by_text("in two evaluations").or_(page.get_by_text("not measured")).first.wait_for()
    expect(page).to_have_url(re.compile("against=rev_"))


def test_the_machine_code_stands_beside_the_bases_and_over_the_revisions(tab: Tab, site: Site) -> None:
    page = tab.open(site.revision(site.compared), shows="Machine code")
    head = page.get_by_role("region", name="Machine code of").first.get_by_role("row").first
    expect(head.get_by_role("columnheader")).to_have_text(["figure", "v1", "v2", "change", "drawn"])
    page = tab.open(f"/projects/local/kernels/{site.kernel}", shows="3 revisions")
    page.get_by_text("Machine code over the revisions").click()
    page.locator(".small-line path").first.wait_for()
    table = page.get_by_role("region", name="Machine code over the revisions as a table")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table).to_contain_text("code (B)")
    expect(page).to_have_url(re.compile("code=1"))


def test_a_case_family_scales_beside_the_baseline_and_earlier_revisions(tab: Tab) -> None:
    page = tab.open("/projects/local/kernels/hgemm?class=h200", shows="beside earlier revisions")
    section = page.get_by_role("region", name="Scaling of square", exact=True)
    table = section.get_by_role("region", name="Scaling of square as a table")
    expect(table).to_contain_text("4096^3")
    expect(section.locator(".curve .baseline circle").nth(3)).to_be_attached()
    page.get_by_role("button", name="beside earlier revisions").click()
    section.locator(".curve .earlier").nth(3).wait_for()
    expect(page).to_have_url(re.compile("earlier=1"))
    for label in ("v1", "v2", "v3", "v4"):
        expect(table.get_by_role("row").first).to_contain_text(label)
    files = page.locator("section[aria-labelledby=scaling] .files")
    href = files.get_by_role("link", name="CSV").get_attribute("href")
    assert tab.context.request.get(f"{tab.url}{href}").text().startswith("family,case,x")


def test_nodes_say_what_they_measure_by_and_when_they_could_not_be_used(tab: Tab, site: Site) -> None:
    with site.stack.database.write() as session:
        worker = site.stack.client(issue_token(session, scope=Scope.WORKER, node="gpu-08")[1])
    said = {"name": "gpu-08", "device_class": "rtx4090", "host": "rack-4", "device": "NVIDIA GeForce RTX 4090"}
    worker.ok("PUT", "/nodes/gpu-08", json={**said, "healthy": False, "problem": f"Xid 79 {MARKUP}"})
    page = tab.open("/nodes", shows="Outages")
    nodes = page.get_by_role("region", name="Nodes")
    expect(nodes.get_by_role("row").filter(has_text="gpu-08")).to_contain_text("unhealthy")
    expect(nodes.get_by_role("row").filter(has_text="node-1")).to_contain_text("○ idle")
    outage = page.get_by_role("region", name="Outages, the newest first").get_by_role("row").filter(has_text="gpu-08")
    expect(outage).to_contain_text("lasts")
    expect(outage).to_contain_text("Xid 79 <img")
    tab.accessible()
    worker.ok("PUT", "/nodes/gpu-08", json=said)
    outage.get_by_text("lasts").wait_for(state="detached")


def test_a_session_that_ended_is_noticed_and_asked_for_again(tab: Tab, site: Site) -> None:
    page = tab.open("/nodes", shows="node-1")
    tab.context.clear_cookies()
    page.get_by_label("Token").wait_for()
    _sign_in(page, site.stack.token)
    page.get_by_role("region", name="Nodes").get_by_role("row").filter(has_text="node-1").wait_for()


def test_a_failed_evaluation_shows_the_compilers_words_under_the_line(tab: Tab, site: Site) -> None:
    page = tab.open(site.revision(site.broken), shows="build failed")
    expect(page.locator(".sentence > p").first).to_have_text("✕ build failed (compile error)")
    expect(page.locator(".source .said").first).to_contain_text("error")
    page.goto(f"{tab.url}/projects/local/kernels/{site.kernel}")
    row = page.get_by_role("row").filter(has_text="broken")
    expect(row).to_contain_text("✕ build failed")


def test_a_regression_is_acknowledged_with_a_reason(tab: Tab) -> None:
    page = tab.open("/regressions", shows="attention_b300 V36 is 4.5 % slower than V35")
    entry = page.locator("article", has_text="attention_b300 V36")
    entry.get_by_text("1 affected case").click()
    expect(entry.get_by_role("region", name="Affected cases")).to_contain_text("published values")
    entry.get_by_label("because").fill(f"known; {MARKUP}")
    entry.get_by_role("button", name="Say so").click()
    entry.locator(".state-word", has_text="acknowledged").wait_for()
    expect(entry).to_contain_text("known; <img")
    assert page.evaluate("window.hacked") is None


def test_names_logs_and_sources_of_a_submission_are_text_and_never_run(tab: Tab, site: Site) -> None:
    for path, shown in _pages(site).items():
        page = tab.open(path, shows=shown)
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("img").count() == 0, path
    page = tab.open(site.revision(site.broken), shows="<img src=x")
    page.get_by_text("Log", exact=True).click()
    page.locator("details pre", has_text="<img src=x").first.wait_for()
    assert page.evaluate("window.hacked") is None


def test_an_evaluation_is_followed_live_and_cancelled(tab: Tab, site: Site) -> None:
    site.stack.hold("verify")
    try:
        evaluation = site.stack.submit(revisions.files(revisions.source(), label="live"))
        until(lambda: site.stack.reached("verify"), "the judge verifies")
        page = tab.open(f"/evaluations/{evaluation}", shows="Now")
        page.locator(".progress li", has_text="verify").wait_for()
        nodes = tab.context.new_page()
        nodes.goto(f"{tab.url}/nodes")
        nodes.get_by_role("link", name=re.compile(r"^kernel\d+ live$")).wait_for()
        nodes.close()
        page.get_by_role("button", name="Cancel it").click()
        page.locator(".sentence", has_text="cancelled (by request)").wait_for()
    finally:
        site.stack.release("verify")
    site.stack.ended(evaluation)


def test_a_link_signs_in_once_and_leaves_the_address(browser: Any, site: Site) -> None:
    link = site.stack.api.ok("POST", "/session/code")
    for signs_in in (True, False):
        context = browser.new_context()
        tab = Tab(context, site.stack.url)
        page = tab.open(f"/login#code={link['code']}", shows="Kernels" if signs_in else "used already")
        expect(page).not_to_have_url(re.compile(re.escape(link["code"])))
        tab.quiet()
        context.close()


def test_a_token_signs_in_where_one_was_going_and_signing_out_ends_it(browser: Any, site: Site) -> None:
    context = browser.new_context()
    tab = Tab(context, site.stack.url)
    page = tab.open("/nodes", shows="Token")
    _sign_in(page, "kg_tok_nobody_knows_this")
    page.get_by_role("alert").wait_for()
    _sign_in(page, site.stack.token)
    page.get_by_role("heading", name="Nodes").wait_for()
    expect(page.get_by_role("region", name="Nodes").get_by_role("row").filter(has_text="node-1")).to_have_count(1)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    page.goto(tab.url + "/nodes")
    page.get_by_label("Token").wait_for()
    tab.quiet()
    context.close()


def test_the_keyboard_alone_goes_from_the_overview_to_a_revision(tab: Tab) -> None:
    page = tab.open("/projects/local", shows="New and bad")
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to the page"
    page.keyboard.press("Enter")
    for _ in range(20):
        page.keyboard.press("Tab")
        if _focused(page) == "attention_b300 V36":
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="attention_b300 V36").wait_for()
    expect(page.locator("#main")).to_be_focused()


def test_a_service_that_is_away_is_said_to_be_and_its_return_noticed(browser: Any, site: Site) -> None:
    context = browser.new_context()
    tab = Tab(context, site.stack.url)
    tab.sign_in(site.stack.token)
    page = tab.open("/nodes", shows="node-1")
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_text("The service does not answer").wait_for()
    expect(page.get_by_role("region", name="Nodes").get_by_role("row").filter(has_text="node-1")).to_have_count(1)
    page.unroute("**/api/**")
    page.get_by_text("The service does not answer").wait_for(state="detached")
    context.close()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nothing", "There is no such page"),
        ("/projects/%E0%A4%A", "there is no project"),
        ("/projects/local/kernels/😀", "has no kernel '😀'"),
        ("/evaluations/100%", "there is no evaluation '100%'"),
        (f"{B300}&range=-1", "17 revisions"),
        ("/projects/local/kernels/attention_b300?class=zzz&case=none&metric=none", "Asked for"),
    ],
)
def test_an_address_that_was_mistyped_says_what_is_not_there_or_shows_what_is(tab: Tab, path: str, said: str) -> None:
    tab.open(path, shows=said)


def test_a_page_whose_answer_makes_no_sense_says_so_and_the_others_go_on(browser: Any, site: Site) -> None:
    context = browser.new_context()
    tab = Tab(context, site.stack.url)
    tab.sign_in(site.stack.token)
    tab.page.route("**/api/v1/nodes*", lambda route: route.fulfill(json={"items": [{"name": None}], "next": None}))
    page = tab.open("/nodes", shows="This page failed")
    page.get_by_role("link", name="Regressions").click()
    page.get_by_text("attention_b300 V36").first.wait_for()
    context.close()


def test_an_empty_database_says_what_to_do_first(browser: Any, tmp_path: Path) -> None:
    empty = Stack(tmp_path)
    empty.start_redis()
    empty.start_service()
    try:
        context = browser.new_context()
        tab = Tab(context, empty.url)
        tab.sign_in(empty.token)
        tab.open("/", shows="kernelgate submit")
        tab.accessible()
        tab.open("/nodes", shows="No node yet")
        tab.open("/revisions/rev_none", shows="Not found")
        tab.quiet()
        context.close()
    finally:
        empty.stop()


def _says(chart: Any, words: str) -> None:
    expect(chart).to_have_attribute("aria-valuetext", re.compile(words))


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText")).strip()


def _sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
