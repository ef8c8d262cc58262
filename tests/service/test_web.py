"""The built web view, served by the service; and the headers that keep pages from running what they show."""

import gzip

import httpx
import pytest

from service.web import PAGE_POLICY

INDEX = "<!doctype html><title>Kernelgate</title><script type=module src=/assets/app-1a2b3c.js></script>"
SCRIPT = "export const words = 'kernelgate ';\n" * 200


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "favicon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (folder / "assets" / "app-1a2b3c.js").write_text(SCRIPT)
    (tmp_path / "secret.txt").write_text("not yours")
    (folder / "leak.txt").symlink_to(tmp_path / "secret.txt")
    return folder


@pytest.fixture
def page(make_running, dist):
    running = make_running(web_dir=str(dist))
    with httpx.Client(base_url=running.url, verify=False) as client:
        yield client


def test_every_pages_address_answers_the_page_with_a_strict_policy(page):
    for path in ("/", "/login", "/projects/local/kernels/hgemm", "/projects/local/kernels/x/revisions/v1.2"):
        answer = page.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.text) == (200, INDEX), path
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["content-security-policy"] == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert "default-src 'none'" in PAGE_POLICY


def test_hashed_files_are_kept_for_ever_and_travel_compressed(page):
    answer = page.get("/assets/app-1a2b3c.js")
    assert answer.text == SCRIPT
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith(("text/javascript", "application/javascript"))
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) == len(gzip.compress(SCRIPT.encode(), mtime=0)) < len(SCRIPT)
    again = page.get("/assets/app-1a2b3c.js", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    plain = page.get("/assets/app-1a2b3c.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == SCRIPT


def test_a_file_that_is_not_there_is_no_page(page):
    for path in ("/assets/app-0.js", "/robots.txt"):
        answer = page.get(path, headers={"Accept": "*/*"})
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:kernelgate:problem:not-found"), path
    assert page.get("/assets/app-0.js", headers={"Accept": "text/html"}).status_code == 404


def test_nothing_outside_the_folder_is_served(page):
    for path in ("/%2e%2e/secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/leak.txt", "/..%2fsecret.txt", "/%00"):
        answer = page.get(path, headers={"Accept": "text/html"})
        assert "not yours" not in answer.text, path


def test_an_unknown_address_of_the_api_is_a_problem_and_a_wrong_method_too(page):
    for path in ("/api", "/api/v1/nothing", "/badge/x", "/webhooks/nobody"):
        answer = page.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path
    assert page.post("/projects/local").status_code == 404
    assert page.delete("/api/v1/projects").status_code == 405


def test_every_answer_has_the_headers_that_a_browser_obeys(page):
    for path in ("/", "/assets/app-1a2b3c.js", "/api/v1/projects", "/api/v1/nothing", "/healthz", "/favicon.svg"):
        headers = page.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "default-src 'none'" in headers["content-security-policy"]
    assert page.get("/api/v1/projects").headers["cache-control"] == "no-store"


def test_a_rebuilt_page_is_served_at_once(page, dist):
    assert page.get("/").text == INDEX
    (dist / "index.html").write_text(INDEX + "<!-- newer -->")
    assert page.get("/").text.endswith("<!-- newer -->")


def test_without_a_build_a_plain_page_says_how_to_make_one(make_running, tmp_path):
    running = make_running(web_dir=str(tmp_path / "nothing"))
    answer = httpx.get(running.url, headers={"Accept": "text/html"}, verify=False)
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
    assert "make web" in answer.text
    assert httpx.get(f"{running.url}/healthz", verify=False).is_success
