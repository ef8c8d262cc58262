import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contract import bundle
from contract.api import Scope
from contract.outcomes import Reason, Stage
from contract.report import Failure
from tests.service.client import Api, report, submission
from tests.service.conftest import wait_for

COMMIT = "9c2e1f00c9a7d1b7a4b3f8f6f0a1c2d3e4f5a6b7"


@pytest.fixture(autouse=True)
def suite(api: Api) -> None:
    api.bring_suite()


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def upload(api: Api, data: bytes, **fields: Any) -> Any:
    form = {"project": "local", "kernel": "sgemm_cpu", **fields}
    return api.problem("POST", "/revisions", data=form, files={"bundle": ("b.tar.gz", data)})


def test_a_revision_is_queued_on_the_suites_classes_and_published(api: Api, publisher) -> None:
    response = api.http.post("/revisions", json=submission(commit=COMMIT, branch="main"))
    assert response.status_code == 201
    revision = response.json()
    assert response.headers["location"] == f"/api/v1/revisions/{revision['id']}"
    assert revision["label"] == "v1"
    assert revision["summary"] == "the v1 one"
    assert (revision["commit"], revision["branch"], revision["mainline"]) == (COMMIT, "main", True)
    [evaluation] = revision["evaluations"]
    wait_for(lambda: publisher.wakes)
    [wake] = publisher.wakes
    assert (wake.evaluation_id, wake.queue) == (evaluation, "cpu.normal")
    found = api.evaluation(evaluation)
    assert (found["state"], found["outcome"], found["base"], found["repeat"]) == ("queued", None, None, 1)
    assert api.ok("GET", f"/revisions/{revision['id']}") == revision


def test_the_same_bundle_commit_and_kernel_again_is_the_same_revision(api: Api) -> None:
    first = api.submit(commit=COMMIT)
    response = api.http.post("/revisions", json=submission(commit=COMMIT))
    assert response.status_code == 200
    assert response.json() == first
    assert api.submit()["id"] != first["id"]


def test_a_tar_gz_of_the_same_files_is_the_same_revision(api: Api) -> None:
    first = api.submit(commit=COMMIT)
    files = {name: text.encode() for name, text in submission()["files"].items()}
    form = {"project": "local", "kernel": "sgemm_cpu", "commit": COMMIT, "device_classes": "cpu", "build_only": "false"}
    again = api.ok("POST", "/revisions", data=form, files={"bundle": ("b.tar.gz", bundle.pack(files))})
    assert again == first


def test_many_submissions_of_one_revision_at_once_make_one(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.submit(commit=COMMIT), range(8)))
    assert len({(answer["id"], answer["evaluations"][0]) for answer in answers}) == 1
    assert len(api.ok("GET", "/evaluations")["items"]) == 1


def test_another_base_or_class_adds_an_evaluation_and_asking_again_adds_none(api: Api) -> None:
    one = api.submit("v1")
    two = api.submit("v2")
    [evaluation] = two["evaluations"]
    assert api.evaluation(evaluation)["base"]["id"] == one["id"]
    other = api.submit("v1", source="other")
    again = api.submit("v2", base=other["id"])
    assert again["id"] == two["id"]
    assert len(again["evaluations"]) == 2
    assert api.submit("v2", base=other["id"]) == again
    built = api.submit("v2", build_only=True)
    assert len(built["evaluations"]) == 3
    assert api.submit("v2", build_only=True) == built
    api.bring_suite(device_classes=["cpu", "h200"])
    assert len(api.submit("v2", device_classes=["h200"])["evaluations"]) == 4


def test_a_build_goes_to_the_queue_of_builds(api: Api, publisher) -> None:
    api.bring_suite(device_classes=["cpu", "h200"])
    api.submit("v1", device_classes=["h200"], build_only=True)
    wait_for(lambda: publisher.wakes)
    assert [wake.queue for wake in publisher.wakes] == ["build.normal"]


def test_the_default_base_is_the_revision_before_in_the_suites_list(api: Api) -> None:
    api.submit("v1")
    two = api.submit("v2")
    side = api.submit("experiment")
    assert api.evaluation(side["evaluations"][0])["base"]["id"] == two["id"]
    assert not side["mainline"]
    three = api.submit("v3")
    assert api.evaluation(three["evaluations"][0])["base"]["label"] == "v2"


def test_asking_again_without_a_base_adds_nothing_though_the_newest_revision_is_another(api: Api) -> None:
    api.submit("v1")
    side = api.submit("experiment")
    api.submit("v2")
    assert api.submit("experiment") == side


def test_a_revision_known_to_be_wrong_is_nobodys_default_base(api: Api, node: Api) -> None:
    one = api.submit("v1")
    two = api.submit("v2")

    job = node.claim(two["evaluations"][0])
    failure = Failure(reason=Reason.WRONG_VALUES, stage=Stage.VERIFY, message="off by one")
    node.finish(job, report(failure=failure))
    three = api.submit("v3")
    assert api.evaluation(three["evaluations"][0])["base"]["id"] == one["id"]


def test_only_scope_maintain_on_the_main_branch_adds_to_the_main_line(api: Api, running) -> None:
    submitter = running.api(running.token(Scope.SUBMIT))
    assert submitter.submit("v1")["mainline"] is False
    assert api.submit("v1", source="2")["mainline"] is True
    assert api.submit("v1", source="3", branch="topic")["mainline"] is False


def test_a_base_is_named_by_label_digest_or_id(api: Api) -> None:
    one = api.submit("v1")
    for name in ("v1", one["digest"], one["id"]):
        revision = api.submit("v3", source=name, base=name)
        assert api.evaluation(revision["evaluations"][0])["base"]["id"] == one["id"]
    problem = api.problem("POST", "/revisions", json=submission("v3", base="v7"))
    assert (problem["status"], problem["type"], problem["field"]) == (422, "unknown-base", "base")


def test_an_idempotency_key_answers_the_same_and_refuses_another_request(api: Api) -> None:
    key = {"Idempotency-Key": "one"}
    first = api.ok("POST", "/revisions", json=submission(), headers=key)
    assert api.ok("POST", "/revisions", json=submission(), headers=key) == first
    problem = api.problem("POST", "/revisions", json=submission("v2"), headers=key)
    assert (problem["status"], problem["type"]) == (409, "idempotency-key-reused")
    assert len(api.ok("GET", "/revisions?project=local")["items"]) == 1
    api.ok("POST", "/projects", json={"slug": "other"})


def test_revisions_are_listed_newest_first_a_page_at_a_time(api: Api) -> None:
    made = [api.submit("v1", source=str(place))["id"] for place in range(5)]
    listed: list[str] = []
    after = None
    while True:
        query = {"project": "local", "kernel": "sgemm_cpu", "limit": 2, **({"after": after} if after else {})}
        page = api.ok("GET", "/revisions", params=query)
        listed += [item["id"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert listed == made[::-1]


@pytest.mark.parametrize(
    ("change", "status", "kind", "said"),
    [
        ({"files": {}}, 422, "bundle-no-files", "a revision needs files"),
        ({"files": {"kernel.toml": "label = 3"}}, 422, "bundle-bad-manifest", "kernel.toml: label"),
        ({"files": {"kernel.toml": "=", "a.cpp": ""}}, 422, "bundle-bad-manifest", "kernel.toml"),
        ({"files": {"a.cpp": ""}}, 422, "bundle-bad-manifest", "kernel.toml is missing"),
        ({"files": {"../a.cpp": ""}}, 422, "bundle-bad-path", "'../a.cpp'"),
        ({"files": {"/etc/passwd": ""}}, 422, "bundle-bad-path", "/etc/passwd"),
        ({"files": {"a.cpp": "x" * (1 << 20), "b.cpp": "x"}}, 413, "bundle-too-large", "at most 1048576"),
        ({"files": {f"f{n}": "" for n in range(65)}}, 413, "bundle-too-large", "65 files"),
        ({"kernel": "nothing"}, 404, "unknown-kernel", "'nothing'"),
        ({"project": "nowhere"}, 404, "unknown-project", "'nowhere'"),
        ({"device_classes": ["gtx"]}, 422, "invalid-request", "device_classes.0"),
        ({"device_classes": ["h200"]}, 422, "device-class-not-in-suite", "(cpu)"),
        ({"commit": "abc"}, 422, "invalid-request", "commit"),
        ({"colour": "red"}, 422, "invalid-request", "colour"),
        ({"files": {"kernel.toml": "\ud800"}}, 422, "invalid-request", "files"),
    ],
)
def test_bad_input_is_refused_in_words_and_leaves_nothing(
    api: Api, change: dict[str, Any], status: int, kind: str, said: str
) -> None:
    problem = api.problem(
        "POST",
        "/revisions",
        content=json.dumps(submission(**change)),
        headers={"Content-Type": "application/json"},
    )
    assert (problem["status"], problem["type"]) == (status, kind)
    assert said in problem["detail"]
    assert api.ok("GET", "/revisions?project=local")["items"] == []


def test_a_constraint_that_names_no_dimension_is_refused(api: Api) -> None:
    body = submission()
    body["files"]["kernel.toml"] += "[constraints.multiple_of]\nq = 16\n"
    problem = api.problem("POST", "/revisions", json=body)
    assert problem["detail"] == "kernel.toml: constraints.multiple_of.q is not a dimension of gemm (m, n, k)"


def test_a_body_that_is_no_json_or_of_another_kind_is_refused(api: Api) -> None:
    json_type = {"Content-Type": "application/json"}
    assert api.problem("POST", "/revisions", content=b"{", headers=json_type)["type"] == "invalid-json"
    assert api.problem("POST", "/revisions", content=b"[" * 100_000, headers=json_type)["type"] == "invalid-json"
    assert api.problem("POST", "/revisions", json=[1])["status"] == 422
    assert api.problem("POST", "/revisions", content=b"x")["type"] == "unsupported-media-type"
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    assert api.problem("POST", "/revisions", content=b"nothing of the kind", headers=broken)["status"] == 422
    assert api.problem("POST", "/revisions", data={"project": "local"}, files={"other": b""})["field"] == "other"


def test_a_hostile_archive_is_refused(api: Api) -> None:
    def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        return info

    for name in ("../up", "/absolute", "a/../../b"):
        assert upload(api, archive((named(name), b"x")))["type"] == "bundle-bad-path"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        assert upload(api, archive((named("kernel.toml", kind, "/etc/passwd"), b"")))["type"] == "bundle-bad-path"
    assert upload(api, archive((named("zeros"), bytes(8 << 20))))["type"] == "bundle-too-large"
    folders = [(named(f"d{n}", tarfile.DIRTYPE), b"") for n in range(5_000)]
    assert upload(api, archive(*folders))["type"] == "bundle-too-large"
    assert upload(api, archive((named("a"), b""), (named("a"), b"")))["type"] == "bundle-bad-archive"
    assert upload(api, b"no archive")["type"] == "bundle-bad-archive"
    assert upload(api, bundle.pack({"a": b"x" * 9000})[:60])["type"] == "bundle-bad-archive"
    assert upload(api, archive())["type"] == "bundle-no-files"


def test_a_body_past_the_limit_is_refused_unread(make_running) -> None:
    running = make_running(max_request_bytes=1000)
    api = running.api(running.token(Scope.ADMIN))
    assert api.problem("POST", "/projects", content=b"x" * 2000)["type"] == "request-too-large"

    def chunks():
        for _ in range(20):
            yield b"x" * 100

    assert api.problem("POST", "/projects", content=chunks())["status"] == 413


def test_text_that_steers_terminals_is_disarmed(api: Api) -> None:
    body = submission(branch="a\x1b[31mb")
    body["files"]["kernel.toml"] = body["files"]["kernel.toml"].replace("the v1 one", "red \\u001b[31m\\u202e")
    revision = api.ok("POST", "/revisions", json=body)
    assert revision["summary"] == "red"
    assert revision["branch"] == "ab"
