"""Whatever a submission takes, its job ends within its limit, says why, and the node serves the next one."""

import time
from pathlib import Path

import pytest

from contract.outcomes import Reason, Stage
from tests.worker.jobs import GEMM_CPU, bundle
from tests.worker.sandbox.conftest import MEMORY_BYTES, PROCESSES, Node, in_the_call
from worker.room import open_room

FORK_BOMB = "static int dead = (signal(SIGCHLD, SIG_IGN), 0); for (;;) fork();"
TAKES_EVERYTHING = "for (;;) memset(const_cast<char*>(kept = static_cast<char*>(malloc(1 << 20))), 1, 1 << 20);"
SHOUTS = 'for (;;) { fputs("a line without an end ", stdout); fputs("another ", stderr); }'
FILLS_TMP = """
  static char block[1000000], name[64];
  for (long i = 0;; ++i) {
    snprintf(name, 64, "/tmp/%ld", i);
    if (FILE* file = fopen(name, "w")) fwrite(block, 1, sizeof block, file), fclose(file);
  }"""
HEADERS = "".join(f"#include <{name}>\n" for name in ("csignal", "cstdio", "cstdlib", "cstring", "unistd.h"))
INCLUDES = HEADERS + "volatile char* kept;\n"


def includes(statements: str):
    files = in_the_call(statements)
    return files | {"kernel.cpp": INCLUDES.encode() + files["kernel.cpp"]}


HUNGRY = {
    FORK_BOMB: (Reason.TIMED_OUT, f"its limit of {PROCESSES} processes was reached"),
    TAKES_EVERYTHING: (Reason.CRASHED, f"its memory limit of {MEMORY_BYTES >> 20} MiB was reached"),
    FILLS_TMP: (Reason.CRASHED, "its memory limit of"),
    SHOUTS: (Reason.TIMED_OUT, "no answer within"),
    "for (volatile int i = 0;; i = 0) {}": (Reason.TIMED_OUT, "no answer within"),
}


def test_kernels_that_take_everything_end_one_after_the_other_and_an_honest_one_is_served(node: Node):
    for statements, (reason, words) in HUNGRY.items():
        started = time.monotonic()
        report = node.run(includes(statements))
        assert time.monotonic() - started < 60, statements
        assert report.failure is not None, statements
        assert report.failure.reason is reason, (statements, report.failure)
        assert words in report.failure.message, statements
        assert report.environment.sandbox
    assert node.serves()


ENDLESS_TEMPLATES = "template <unsigned long N, bool B> struct S : S<2 * N, B>, S<2 * N + 1, B> {}; S<1, true> s;\n"
HUGE_OBJECT = 'asm(".section .data\\n.rept 2000000000\\n.quad 1\\n.endr");\n'


def test_sources_that_compile_for_ever_end_one_after_the_other_and_an_honest_one_is_served(node: Node):
    for text in (ENDLESS_TEMPLATES, HUGE_OBJECT, '#include "kernel.cpp"\n#include "kernel.cpp"\n'):
        started = time.monotonic()
        report = node.run(bundle("gemm_cpu", kernel_cpp=text + GEMM_CPU))
        assert time.monotonic() - started < node.settings.compile_limit_s + 20, text
        assert report.failure is not None, text
        assert report.failure.stage is Stage.BUILD, report.failure
        assert report.failure.reason in {Reason.COMPILE_ERROR, Reason.COMPILE_TIMED_OUT}, text
    assert node.serves()


def write_files(count: int, size: int) -> str:
    return f"import os\nfor i in range({count}): open(str(i), 'wb').write(bytes({size}))"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (write_files(100_000, 1 << 20), "more than 64 MiB to disk"),
        (write_files(1_000_000, 0), "more than 20000 files"),
    ],
)
def test_a_build_that_fills_the_disk_is_ended(sandbox, tmp_path: Path, script, words):
    with open_room(tmp_path, sandbox=sandbox, check=lambda: None, disk_bytes=64 << 20) as room:
        out = room.folder("out")
        done = room.run(["/usr/bin/env", "python3", "-c", script], cwd=out, limit_s=60, writable=(out,))
        assert done.returncode == -9
        assert words in done.stderr.decode()
    assert not room.path.exists()


def test_a_folder_too_deep_for_python_is_cleared_away(sandbox, tmp_path: Path):
    script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    with open_room(tmp_path, sandbox=sandbox, check=lambda: None) as room:
        out = room.folder("out")
        done = room.run(["/usr/bin/env", "python3", "-c", script], cwd=out, limit_s=60, writable=(out,))
        assert done.returncode == 0 or b"File name too long" in done.stderr
    assert not room.path.exists()


def test_what_is_printed_without_end_is_kept_in_part(sandbox, tmp_path: Path):
    with open_room(tmp_path, sandbox=sandbox, check=lambda: None) as room:
        done = room.run(["yes", "a hundred gigabytes"], cwd=room.folder("out"), limit_s=1.0)
    assert done.timed_out
    assert len(done.stdout) < 2 << 20
    assert b"bytes left out" in done.stdout
