"""What is wrong with a submission has its own stable reason, and the next job runs as if nothing had been."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from tests.e2e.revisions import files, source
from tests.e2e.stack import Stack, until

# ------------------------------------------------------------ refused by the API


def _archive(*members: tarfile.TarInfo, content: bytes = b"x") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def _link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


BAD_FILES: dict[str, tuple[dict[str, str], int, str, str]] = {
    "no files": ({}, 422, "bundle-no-files", "files"),
    "an unknown manifest field": (files("int x;", manifest='languge = "cpp"\n'), 422, "bundle-bad-manifest", "languge"),
    "a wrong manifest value": (
        {**files("int x;"), "kernel.toml": files("int x;")["kernel.toml"].replace('"cpp"', '"c"')},
        422,
        "bundle-bad-manifest",
        "language",
    ),
    "a dimension that the operator lacks": (
        files("int x;", manifest="[constraints]\nmultiple_of = { q = 2 }\n"),
        422,
        "bundle-bad-manifest",
        "q",
    ),
    "a source that isn't there": (
        {"kernel.toml": files("int x;")["kernel.toml"]},
        422,
        "bundle-bad-manifest",
        "gemm.cpp",
    ),
    "a path that leaves the folder": ({**files("int x;"), "../x.h": ""}, 422, "bundle-bad-path", "../x.h"),
    "too much": (files("x" * ((1 << 20) + 1)), 413, "bundle-too-large", "1048576"),
}
BAD_ARCHIVES: dict[str, tuple[bytes, str]] = {
    "a path upwards": (_archive(tarfile.TarInfo("../evil.cpp")), "bundle-bad-path"),
    "an absolute path": (_archive(tarfile.TarInfo("/etc/evil.cpp")), "bundle-bad-path"),
    "a symbolic link": (_archive(_link("gemm.cpp", "/etc/passwd", tarfile.SYMTYPE)), "bundle-bad-path"),
    "a hard link": (_archive(_link("gemm.cpp", "/etc/passwd", tarfile.LNKTYPE)), "bundle-bad-path"),
    "a device": (_archive(_link("gemm.cpp", "", tarfile.CHRTYPE)), "bundle-bad-path"),
    "no archive": (b"not a tar", "bundle-bad-archive"),
    "more than it may hold": (_archive(tarfile.TarInfo("a.h"), content=bytes(8 << 20)), "bundle-too-large"),
}


@pytest.fixture
def nothing_added(stack: Stack) -> Any:
    before = stack.api.ok("GET", "/evaluations")["items"]
    yield
    assert stack.api.ok("GET", "/evaluations")["items"] == before


@pytest.mark.parametrize("wrong", BAD_FILES)
@pytest.mark.usefixtures("nothing_added")
def test_files_that_make_no_bundle_are_refused_and_the_answer_says_which_and_where(stack: Stack, wrong: str) -> None:
    content, status, kind, named = BAD_FILES[wrong]
    body = {"project": "local", "kernel": stack.kernel(), "files": content}
    problem = stack.api.problem("POST", "/revisions", json=body)
    assert (problem["status"], problem["type"]) == (status, kind)
    assert named in f"{problem['detail']} {problem.get('field')}"


@pytest.mark.parametrize("wrong", BAD_ARCHIVES)
@pytest.mark.usefixtures("nothing_added")
def test_archives_that_reach_outside_are_refused(stack: Stack, wrong: str) -> None:
    archive, kind = BAD_ARCHIVES[wrong]
    form = {"project": "local", "kernel": stack.kernel()}
    problem = stack.api.problem("POST", "/revisions", data=form, files={"bundle": ("b.tar.gz", archive)})
    assert problem["type"] == kind


@pytest.mark.usefixtures("nothing_added")
def test_a_kernel_that_nobody_knows_is_named(stack: Stack) -> None:
    body = {"project": "local", "kernel": "nosuch", "files": stack.right()}
    problem = stack.api.problem("POST", "/revisions", json=body)
    assert (problem["status"], problem["type"]) == (404, "unknown-kernel")
    assert "nosuch" in problem["detail"]


# ------------------------------------------------------------ found by the worker

_ENDLESS = """template <long A, long B> struct Tree {
  static constexpr long value = Tree<A - 1, 2 * B>::value + Tree<A - 1, 2 * B + 1>::value;
};
template <long B> struct Tree<0, B> { static constexpr long value = B; };
static_assert(Tree<40, 1>::value > 0);
"""
_DEEP = (
    "template <int N> struct Deep { static constexpr int value = Deep<N + 1>::value; };\nint deep = Deep<0>::value;\n"
)
_LOUD = """static char block[1 << 20];
static const int loud = [] {
  for (auto& c : block) c = 'x';
  for (int i = 0; i < 1024; ++i)
    if (write(1, block, sizeof block) < 0 || write(2, block, sizeof block) < 0) break;
  return 0;
}();
"""
BAD_KERNELS: dict[str, tuple[str, str, str]] = {
    "does not compile": (source("this is no statement;"), "build_failed", "compile_error"),
    "recurses for ever in a template": (source(before=_DEEP), "build_failed", "compile_error"),
    "keeps the compiler busy for ever": (source(before=_ENDLESS), "build_failed", "compile_timed_out"),
    "has another entry": (
        source().replace("kernelgate_run", "kernelgate_ran"),
        "build_failed",
        "(compile_error|entry_missing)",
    ),
    "crashes": (source("*(volatile int*)8 = 1;"), "incorrect", "crashed"),
    "hangs": (source("for (volatile int i = 0;;) (void)i;"), "incorrect", "timed_out"),
    "returns an error code": (source("return 7;"), "incorrect", "returned_error"),
    "writes NaN": (source('c[3] = __builtin_nanf("");'), "incorrect", "nan_values"),
    "writes wrong numbers": (source("c[3] += 1.0f;"), "incorrect", "wrong_values"),
    "writes past its output": (
        source("c[call->out[0].shape[0] * call->out[0].shape[1]] = 1.0f;"),
        "incorrect",
        "out_of_bounds_write",
    ),
    "modifies its input": (
        source("const_cast<float*>(static_cast<const float*>(call->in[0].data))[0] += 1.0f;"),
        "incorrect",
        "input_modified",
    ),
}


@pytest.mark.parametrize("wrong", BAD_KERNELS)
def test_a_kernel_that_is_wrong_ends_with_its_own_reason(stack: Stack, wrong: str) -> None:
    text, outcome, reason = BAD_KERNELS[wrong]
    kernel = stack.kernel()
    bad = stack.submit(files(text), kernel=kernel)
    ended = stack.ended(bad)
    assert ended["outcome"] == outcome, ended
    assert ended["reason"] in reason.strip("()").split("|"), ended
    assert len(ended["attempts"]) == 1
    assert 0 < len(ended["message"]) <= 8000
    for private in (str(stack.folder), "/tmp/", str(stack.worker.work)):
        assert private not in ended["message"]
    until(stack.idle, "nothing of it is left")


def test_after_all_of_these_a_good_revision_passes_though_they_are_its_kernels_history(stack: Stack) -> None:
    kernel = stack.kernel()
    for wrong in ("crashes", "does not compile"):
        text, outcome, _ = BAD_KERNELS[wrong]
        label = wrong.split()[0]
        assert stack.ended(stack.submit(files(text, label=label), kernel=kernel))["outcome"] == outcome
    good = stack.ended(stack.submit(stack.right("good"), kernel=kernel))
    assert (good["outcome"], good["base"]) == ("passed", None)


def test_a_gigabyte_of_output_ends_nowhere(stack: Stack) -> None:
    evaluation = stack.submit(files(source(before="#include <unistd.h>\n" + _LOUD)))
    ended = stack.ended(evaluation)
    assert ended["outcome"] in {"passed", "incorrect"}
    response = stack.api.http.get(f"/evaluations/{evaluation}/log")
    assert response.status_code in {200, 404}
    assert len(response.content) <= 2 << 20
    stack.passed(stack.submit())
