import httpx
import pytest
from sqlmodel import select

from contract.api import Scope
from service.models import BrowserSession, Token
from tests.service.client import Api, submission

COOKIE = "kernelgate_session"


def test_nothing_is_answered_without_a_token(running) -> None:
    nobody = running.api()
    for method, path in (("GET", "/projects"), ("POST", "/projects"), ("GET", "/nodes"), ("GET", "/tokens")):
        assert nobody.problem(method, path)["type"] == "unauthorised"
    response = nobody.http.get("/projects")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("wrong", ["x", "kg_tok_0_x", "kg_tok_" + "0" * 26 + "_secret", "Bearer", "kg_ses_a_b"])
def test_a_wrong_token_is_refused(running, wrong: str) -> None:
    response = httpx.get(f"{running.url}/api/v1/projects", headers={"Authorization": f"Bearer {wrong}"})
    assert response.status_code == 401


def test_reading_may_be_public(make_running) -> None:
    nobody = make_running(public_read=True).api()
    assert [project["slug"] for project in nobody.ok("GET", "/projects")["items"]] == ["local"]
    assert nobody.problem("POST", "/projects", json={"slug": "x"})["status"] == 401


def test_each_scope_opens_what_it_should(running) -> None:
    may = {
        Scope.READ: [200, 403, 403, 403],
        Scope.SUBMIT: [200, 404, 403, 403],
        Scope.MAINTAIN: [200, 404, 422, 403],
        Scope.ADMIN: [200, 404, 422, 200],
        Scope.WORKER: [403, 403, 403, 403],
    }
    for scope, expected in may.items():
        http = running.api(running.token(scope)).http
        assert [
            http.get("/projects").status_code,
            http.post("/revisions", json=submission()).status_code,
            http.put("/projects/local/kernels/x/suite", json={}).status_code,
            http.get("/tokens").status_code,
        ] == expected, scope


def test_a_token_is_shown_once_kept_as_a_digest_and_revoked(api: Api, running) -> None:
    made = api.ok("POST", "/tokens", json={"scope": "read", "note": "for a page"})
    assert api.ok("GET", "/tokens")["items"][-1] == {**made, "secret": None}
    with running.database.read() as session:
        row = session.get(Token, made["id"])
        assert made["secret"] not in repr(row)
        assert row.secret_hash not in made["secret"]
    reader = running.api(made["secret"])
    reader.ok("GET", "/projects")
    api.ok("DELETE", f"/tokens/{made['id']}")
    assert reader.problem("GET", "/projects")["type"] == "unauthorised"
    assert api.problem("DELETE", f"/tokens/{made['id']}")["type"] == "unknown-token"


def test_a_workers_token_names_its_node(api: Api) -> None:
    assert api.problem("POST", "/tokens", json={"scope": "worker"})["field"] == "node"
    assert api.problem("POST", "/tokens", json={"scope": "read", "node": "n"})["field"] == "node"
    assert api.ok("POST", "/tokens", json={"scope": "worker", "node": "gpu-07"})["node"] == "gpu-07"


def test_a_token_bound_to_a_project_reaches_no_other(api: Api, running) -> None:
    api.ok("POST", "/projects", json={"slug": "other"})
    api.bring_suite()
    revision = api.submit()
    bound = api.ok("POST", "/tokens", json={"scope": "admin", "project": "other"})["secret"]
    stranger = running.api(bound)
    evaluation = revision["evaluations"][0]
    for method, path, body in (
        ("GET", "/projects/local", None),
        ("GET", f"/revisions/{revision['id']}", None),
        ("GET", f"/evaluations/{evaluation}", None),
        ("GET", f"/evaluations/{evaluation}/events", None),
        ("DELETE", f"/evaluations/{evaluation}", None),
        ("POST", "/revisions", submission()),
        ("POST", "/evaluations", {"revision": revision["id"], "device_class": "cpu"}),
        ("POST", "/projects", {"slug": "third"}),
        ("POST", "/tokens", {"scope": "read"}),
    ):
        assert stranger.problem(method, path, json=body)["type"] == "forbidden", path
    assert stranger.ok("GET", "/evaluations")["items"] == []
    assert [project["slug"] for project in stranger.ok("GET", "/projects")["items"]] == ["other"]
    assert [token["project"] for token in stranger.ok("GET", "/tokens")["items"]] == ["other"]


def test_a_browser_trades_its_token_for_a_cookie_and_needs_the_csrf_header(running) -> None:
    token = running.token(Scope.ADMIN)
    browser = running.api()
    response = browser.http.post("/session", json={"token": token})
    assert response.status_code == 201
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    csrf = response.json()["csrf"]
    browser.ok("GET", "/projects")
    assert browser.ok("GET", "/session") == {"scope": "admin", "csrf": csrf}
    assert browser.problem("POST", "/projects", json={"slug": "a"})["type"] == "csrf"
    wrong = {"X-Kernelgate-CSRF": "0" * 64}
    assert browser.problem("POST", "/projects", json={"slug": "a"}, headers=wrong)["type"] == "csrf"
    right = {"X-Kernelgate-CSRF": csrf}
    browser.ok("POST", "/projects", json={"slug": "a"}, headers=right)
    with running.database.read() as session:
        assert browser.http.cookies[COOKIE] not in repr(session.exec(select(BrowserSession)).one())
    stolen = browser.http.cookies[COOKIE]
    browser.ok("DELETE", "/session", headers=right)
    browser.http.cookies.set(COOKIE, stolen)
    assert browser.problem("GET", "/projects")["type"] == "unauthorised"


def test_a_cookie_ends_with_its_token_and_with_its_time(api: Api, running, make_running) -> None:
    made = api.ok("POST", "/tokens", json={"scope": "read"})
    browser = running.api()
    browser.ok("POST", "/session", json={"token": made["secret"]})
    browser.ok("GET", "/projects")
    api.ok("DELETE", f"/tokens/{made['id']}")
    assert browser.problem("GET", "/projects")["status"] == 401
    short = make_running(session_s=1e-6)
    late = short.api()
    cookie = late.http.post("/session", json={"token": short.token(Scope.READ)}).headers["set-cookie"]
    late.http.cookies.set(COOKIE, cookie.split("=", 1)[1].split(";")[0])
    assert late.problem("GET", "/projects")["status"] == 401


def test_a_wrong_or_a_workers_token_opens_no_session(running) -> None:
    nobody = running.api()
    assert nobody.problem("POST", "/session", json={"token": "kg_tok_x_y"})["status"] == 401
    worker = running.token(Scope.WORKER, node="n")
    assert nobody.problem("POST", "/session", json={"token": worker})["status"] == 403
