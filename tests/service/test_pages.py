"""Every list comes in pages that begin after a key: each row once, also where rows come and go meanwhile."""

import pytest

from contract.api import Scope
from tests.service.client import node_info, submission

NAMES = ("a", "b", "c", "d", "e")


def bring(api, running):
    api.bring_suite()
    for name in NAMES:
        api.ok("POST", "/projects", json={"slug": name})
        api.bring_suite(kernel=name)
        node = running.api(running.token(Scope.WORKER, node=f"node-{name}"))
        node.ok("PUT", f"/nodes/node-{name}", json=node_info(f"node-{name}"))
        api.ok("POST", "/revisions", json=submission(f"v-{name}"))


# Revisions and evaluations are a project's.
OF = {"/revisions": {"project": "local"}, "/evaluations": {"project": "local"}}
LISTS = {
    "/projects": "slug",
    "/projects/local/kernels": "name",
    "/nodes": "name",
    "/tokens": "id",
    "/revisions": "id",
    "/evaluations": "id",
}


@pytest.mark.parametrize("path", LISTS)
def test_pages_together_are_the_whole_list(api, running, path):
    bring(api, running)
    key = LISTS[path]
    whole = [each[key] for each in api.ok("GET", path, params=OF.get(path))["items"]]
    assert len(whole) == len(set(whole)) >= len(NAMES)
    paged, after = [], None
    for _ in whole:
        page = api.ok("GET", path, params={**OF.get(path, {}), "limit": 2, **({"after": after} if after else {})})
        assert len(page["items"]) <= 2
        paged += [each[key] for each in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert paged == whole
    assert after is None


@pytest.mark.parametrize("path", LISTS)
def test_no_page_is_longer_than_a_page(api, path):
    for limit in (0, 201):
        assert api.problem("GET", path, params={**OF.get(path, {}), "limit": limit})["type"] == "invalid-request"
    assert api.problem("GET", path, params={**OF.get(path, {}), "after": "x" * 101})["type"] == "invalid-request"


def test_what_is_new_before_the_page_shifts_nothing(api):
    for name in ("b", "c"):
        api.ok("POST", "/projects", json={"slug": name})
    first = api.ok("GET", "/projects", params={"limit": 1})
    api.ok("POST", "/projects", json={"slug": "a"})
    second = api.ok("GET", "/projects", params={"limit": 1, "after": first["next"]})
    assert [page["items"][0]["slug"] for page in (first, second)] == ["b", "c"]
