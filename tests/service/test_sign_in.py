"""One-time links: a code for a browser, spent by its first use."""

from concurrent.futures import ThreadPoolExecutor

from sqlmodel import select

from contract.api import Scope
from service.auth import COOKIE
from service.models import SignInCode


def test_a_code_signs_one_browser_in_once(api, running):
    made = api.ok("POST", "/session/code")
    assert made["url"].endswith(f"/login#code={made['code']}")
    browser = running.api()
    answer = browser.http.post("/session", json={"code": made["code"]})
    assert answer.status_code == 201
    assert answer.json()["scope"] == "admin"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    browser.ok("GET", "/projects")
    assert browser.problem("POST", "/projects", json={"slug": "a"})["type"] == "csrf"
    browser.ok("POST", "/projects", json={"slug": "a"}, headers={"X-Kernelgate-CSRF": answer.json()["csrf"]})
    again = running.api().problem("POST", "/session", json={"code": made["code"]})
    assert (again["status"], again["field"]) == (401, "code")


def test_of_many_that_use_a_code_at_once_one_gets_in(api, running):
    code = api.ok("POST", "/session/code")["code"]
    browsers = [running.api() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda browser: browser.http.post("/session", json={"code": code}), browsers))
    assert sorted(answer.status_code for answer in answers) == [201, *[401] * 5]


def test_a_code_is_kept_as_a_digest_and_ends_with_its_time_and_its_token(api, running, make_running):
    code = api.ok("POST", "/session/code")["code"]
    with running.database.read() as session:
        assert code not in repr(session.exec(select(SignInCode)).one())
    short = make_running(sign_in_code_s=1e-6)
    late = short.api(short.token(Scope.READ)).ok("POST", "/session/code")["code"]
    assert short.api().problem("POST", "/session", json={"code": late})["status"] == 401
    token = api.ok("POST", "/tokens", json={"scope": "read"})
    code = running.api(token["secret"]).ok("POST", "/session/code")["code"]
    api.ok("DELETE", f"/tokens/{token['id']}")
    assert running.api().problem("POST", "/session", json={"code": code})["status"] == 401


def test_a_code_has_no_more_rights_than_the_token_that_made_it(running):
    code = running.api(running.token(Scope.READ)).ok("POST", "/session/code")["code"]
    browser = running.api()
    signed_in = browser.ok("POST", "/session", json={"code": code})
    headers = {"X-Kernelgate-CSRF": signed_in["csrf"]}
    assert browser.problem("POST", "/projects", json={"slug": "a"}, headers=headers)["type"] == "forbidden"
    worker = running.api(running.token(Scope.WORKER, node="n"))
    assert worker.problem("POST", "/session/code")["type"] == "forbidden"


def test_where_reading_is_public_nobody_gets_a_code_for_nobody(make_running):
    assert make_running(public_read=True).api().problem("POST", "/session/code")["status"] == 401


def test_a_code_is_no_bearer_token_and_no_cookie(api, running):
    code = api.ok("POST", "/session/code")["code"]
    assert running.api(code).problem("GET", "/projects")["status"] == 401
    browser = running.api()
    browser.http.cookies.set(COOKIE, code)
    assert browser.problem("GET", "/projects")["status"] == 401


def test_a_session_takes_a_token_or_a_code_and_no_other_sites_page_may_open_one(api, running):
    code = api.ok("POST", "/session/code")["code"]
    for body in ({}, {"token": "a", "code": "b"}):
        assert running.api().problem("POST", "/session", json=body)["type"] == "invalid-request"
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert running.api().problem("POST", "/session", json={"code": code}, headers=foreign)["type"] == "csrf"
    running.api().ok("POST", "/session", json={"code": code}, headers={"Sec-Fetch-Site": "same-origin"})


def test_signing_out_ends_the_cookie(api, running):
    browser = running.api()
    signed_in = browser.ok("POST", "/session", json={"code": api.ok("POST", "/session/code")["code"]})
    stolen = browser.http.cookies[COOKIE]
    browser.ok("DELETE", "/session", headers={"X-Kernelgate-CSRF": signed_in["csrf"]})
    browser.http.cookies.set(COOKIE, stolen)
    assert browser.problem("GET", "/projects")["status"] == 401
