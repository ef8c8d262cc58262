"""Lists of the web view come page by page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from service.columns import now
from service.models import Node, Project
from tests.e2e.browser import Tab, chromium
from tests.e2e.stack import Stack

MORE = 10
PAGE = 50


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path)
    with stack.database.write() as session:
        for number in range(PAGE + MORE):
            name = f"gpu-{number:02d}"
            seen = {"last_seen_at": now(), "device_class": "h200", "device": "NVIDIA H200", "host": "rack-1"}
            session.add_all([Node(name=name, **seen), Project(slug=f"owner--{name}", name=f"the {name}")])
    stack.start_redis()
    stack.start_service()
    return stack


def test_a_list_longer_than_a_page_goes_on_where_it_is_asked_to(stack: Stack) -> None:
    try:
        with chromium() as browser:
            tab = Tab(browser.new_context(), stack.url)
            tab.sign_in(stack.token)
            page = tab.open("/nodes", shows="gpu-00")
            rows = page.get_by_role("region", name="Nodes").get_by_role("row")
            expect(rows).to_have_count(1 + PAGE)
            page.get_by_role("button", name="More nodes").click()
            expect(rows).to_have_count(1 + PAGE + MORE)
            expect(page.get_by_role("button", name="More nodes")).to_have_count(0)
            page = tab.open("/", shows="the gpu-00")
            projects = page.locator("ul.plain li")
            expect(projects).to_have_count(PAGE)
            page.get_by_role("button", name="More projects").click()
            expect(projects.filter(has_text=f"the gpu-{PAGE + MORE - 1}")).to_be_visible()
            tab.accessible()
            tab.quiet()
    finally:
        stack.stop()
