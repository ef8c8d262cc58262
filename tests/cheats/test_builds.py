"""Items 28, 47 and 52: what a build's child leaves where this program reads and writes next."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from contract.bundle import check
from contract.outcomes import Reason
from tests.worker.jobs import bundle, suite
from worker.process import Finished
from worker.room import open_room
from worker.sandbox import choose
from worker.settings import WorkerSettings
from worker.toolchains import BuildFailed, Built, Request, toolchain_for

# A cubin without functions: one empty section.
CUBIN = struct.pack(
    "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 2, 190, 1, 0, 0, 64, 0, 64, 0, 0, 64, 1, 0
) + bytes(64)  # fmt: skip
DIGEST = hashlib.sha256(CUBIN).hexdigest()
HONEST = {"functions": [{"function": "f", "cubin": "f.code", "shared_bytes": 0, "threads": 32}]}

LEAVES = """
import os, socket, sys
out = sys.argv[1]
os.makedirs(out + "/deep")
for folder in (out, out + "/deep"):
    open(folder + "/kept", "w").write("kept")
    os.symlink(sys.argv[2], folder + "/link")
    os.symlink("/", folder + "/folder")
    os.mkfifo(folder + "/pipe")
socket.socket(socket.AF_UNIX).bind(out + "/socket")
"""


def built(tmp_path: Path, plant: Any, said: dict[str, object]) -> Built:
    """Of a Triton launcher whose process calls `plant` with each folder that it may write, and says `said`."""

    def run(*_: Any, writable: tuple[Path, ...], **__: Any) -> Finished:
        for folder in writable:
            (folder / "f.code").write_bytes(CUBIN)
            (folder / "compiled.json").write_text(json.dumps(said), encoding="ascii")
            plant(folder)
        return Finished(returncode=0, stdout=b"", stderr=b"", timed_out=False, seconds=0.0)

    head = bundle("copy_triton")
    folders = {name: tmp_path / name for name in ("bundle", "out", "scratch")}
    for folder in folders.values():
        folder.mkdir()
    for name, content in head.items():
        (folders["bundle"] / name).write_bytes(content)
    request = Request(
        **folders,
        manifest=check(head),
        suite=suite("fp16"),
        architecture="sm_90a",
        compile_cases=suite("fp16").cases,
        limit_s=1.0,
        memory_bytes=0,
        run=run,
    )
    return toolchain_for("triton", WorkerSettings()).build(request)


def test_28_52_an_honest_builds_code_is_taken(tmp_path: Path) -> None:
    assert built(tmp_path, lambda _: None, HONEST).cubins == {DIGEST: f"{DIGEST}.cubin"}
    assert (tmp_path / "out" / f"{DIGEST}.cubin").read_bytes() == CUBIN


@pytest.mark.parametrize("name", [f"{DIGEST}.cubin", "built.json"])
def test_28_52_no_link_of_a_builds_child_leads_this_program_elsewhere(tmp_path: Path, name: str) -> None:
    """Triton's launchers run while they are compiled, and know the names that are written next."""
    victim = tmp_path / "victim"
    victim.write_text("the host's", encoding="ascii")
    built(tmp_path, lambda folder: (folder / name).symlink_to(victim), HONEST)
    (tmp_path / "out" / "built.json").write_text("the build's", encoding="ascii")
    assert victim.read_text(encoding="ascii") == "the host's"


@pytest.mark.parametrize(
    "said",
    [
        {"functions": [{**HONEST["functions"][0], "cubin": "../../victim"}]},
        {"error": "not my fault", "reason": "toolchain_missing"},
        {"error": "mine"},
        {},
    ],
)
def test_28_47_what_a_builds_child_says_is_its_own_fault(tmp_path: Path, said: dict[str, object]) -> None:
    (tmp_path / "victim").write_bytes(CUBIN)
    with pytest.raises(BuildFailed) as caught:
        built(tmp_path, lambda _: None, said)
    assert caught.value.reason is Reason.COMPILE_ERROR


def test_28_52_of_what_a_child_leaves_only_files_and_folders_stay(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("the host's", encoding="ascii")
    sandbox = choose(WorkerSettings())
    assert sandbox.isolates, f"bubblewrap is needed: {sandbox.problem}"
    with open_room(tmp_path, sandbox=sandbox, check=lambda: None) as room:
        out = room.folder("out")
        argv = [sys.executable, "-I", "-S", "-c", LEAVES, str(out), str(victim)]
        done = room.run(argv, cwd=room.folder("scratch"), limit_s=20, writable=(out,))
        assert (done.returncode, done.stderr) == (0, b"")
        left = sorted(str(path.relative_to(out)) for path in out.rglob("*"))
    sandbox.close()
    assert left == ["deep", "deep/kept", "kept"]
    assert victim.read_text(encoding="ascii") == "the host's"
