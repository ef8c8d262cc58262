import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from tests.worker.jobs import until
from worker.process import Cancelled, Child, Limits, TimedOut, environment, run


def python(source: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(source)]


def finish(argv: list[str], folder: Path, **more: object):
    limits = Limits(**{"seconds": 20.0, **{k: more.pop(k) for k in list(more) if k in Limits.__dataclass_fields__}})
    return run(argv, limits=limits, cwd=folder, env=environment(home=folder), **more)


def written_pid(file: Path) -> int:
    until(lambda: file.exists() and file.read_text().strip().isdigit())
    return int(file.read_text())


# A descendant that has left its session and its parent, and holds no pipe of anyone's.
ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        devnull = os.open(os.devnull, os.O_RDWR)
        for fd in range(3): os.dup2(devnull, fd)
        open("pid", "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)
"""


def test_output_and_exit_code_come_back(tmp_path):
    done = finish(
        python("import sys; print(sys.stdin.read()[::-1]); sys.stderr.write('e'); sys.exit(3)"), tmp_path, stdin=b"abc"
    )
    assert (done.returncode, done.stdout, done.stderr, done.timed_out) == (3, b"cba\n", b"e", False)


def test_input_larger_than_a_pipe_arrives_whole(tmp_path):
    done = finish(python("import sys; print(len(sys.stdin.buffer.read()))"), tmp_path, stdin=b"x" * 3_000_000)
    assert done.stdout == b"3000000\n"


def test_a_signal_is_a_negative_return_code(tmp_path):
    assert (
        finish(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), tmp_path).returncode
        == -signal.SIGSEGV
    )


def test_a_missing_command_says_so(tmp_path):
    done = finish(["no-such-compiler"], tmp_path)
    assert done.returncode == 127
    assert b"no-such-compiler: No such file" in done.stderr


def test_a_hanging_child_and_what_escaped_from_it_are_killed_at_the_limit(tmp_path):
    done = finish(python(ESCAPE + "time.sleep(1000)"), tmp_path, seconds=1.0)
    assert done.timed_out
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


def test_what_a_finished_child_left_behind_is_killed(tmp_path):
    done = finish(python(ESCAPE), tmp_path)
    assert done.returncode == 0
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


def test_a_child_that_ignores_sigterm_is_killed(tmp_path):
    done = finish(
        python("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"),
        tmp_path,
        seconds=0.5,
    )
    assert done.timed_out
    assert done.seconds < 5


def test_a_crowd_of_forks_is_killed(tmp_path):
    source = """
    import os, time
    for _ in range(5): os.fork()
    time.sleep(1000)
    """
    before = set(psutil.pids())
    done = finish(python(source), tmp_path, seconds=1.0)
    assert done.timed_out
    assert not [p for p in set(psutil.pids()) - before if "range(5)" in " ".join(_command(p))]


def _command(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def test_endless_output_is_capped_and_costs_no_memory(tmp_path):
    before = psutil.Process().memory_info().rss
    done = finish(["yes", "0123456789" * 100], tmp_path, seconds=1.0, output_bytes=100_000)
    assert done.timed_out
    assert len(done.stdout) < 101_000
    assert b"bytes left out" in done.stdout
    assert psutil.Process().memory_info().rss - before < 50 << 20


def test_the_beginning_and_the_end_of_long_output_are_kept(tmp_path):
    done = finish(python("print('first'); print('x' * 1_000_000); print('last')"), tmp_path, output_bytes=1000)
    assert done.stdout.startswith(b"first\n")
    assert done.stdout.endswith(b"last\n")


def test_a_file_can_not_grow_beyond_its_limit(tmp_path):
    done = finish(python("open('big', 'wb').write(bytes(1 << 22))"), tmp_path, file_bytes=1 << 20)
    assert done.returncode != 0
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_memory_can_be_limited(tmp_path):
    done = finish(python("bytearray(1 << 30)"), tmp_path, memory_bytes=512 << 20)
    assert b"MemoryError" in done.stderr


def test_a_cancelled_child_is_killed_with_its_tree(tmp_path):
    def check() -> None:
        if (tmp_path / "pid").exists():
            raise Cancelled

    with pytest.raises(Cancelled):
        finish(python(ESCAPE + "time.sleep(1000)"), tmp_path, check=check)
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


def test_a_worker_killed_by_sigkill_leaves_no_process(tmp_path):
    source = f"""
    from pathlib import Path
    from worker.process import *
    here = Path({str(tmp_path)!r})
    run([{sys.executable!r}, "-c", {ESCAPE + "time.sleep(1000)"!r}],
        limits=Limits(seconds=100), cwd=here, env=environment(home=here))
    """
    worker = subprocess.Popen(python(source), env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    escaped = written_pid(tmp_path / "pid")
    children = psutil.Process(worker.pid).children(recursive=True)
    assert len(children) >= 2
    worker.kill()
    worker.wait()
    until(lambda: not psutil.pid_exists(escaped) and not any(child.is_running() for child in children))


def test_children_do_not_see_the_node_token(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELGATE_NODE_TOKEN", "kg_secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    done = finish(python("import os; print(dict(os.environ))"), tmp_path)
    assert b"secret" not in done.stdout
    assert str(tmp_path).encode() in done.stdout


def test_python_children_import_nothing_from_the_working_folder(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    done = finish([sys.executable, "-m", "json.tool", "--help"], tmp_path)
    assert done.returncode == 0, done.stderr


def test_lines_arrive_while_the_child_runs_and_its_limit_moves(tmp_path):
    source = "import time; print('begun', flush=True); time.sleep(1000)"
    with Child(python(source), limits=Limits(seconds=1000), cwd=tmp_path, env=environment(home=tmp_path)) as child:
        lines = child.lines()
        assert next(lines) == b"begun"
        child.ends_at = time.monotonic() + 0.1
        with pytest.raises(TimedOut):
            next(lines)


def test_a_silent_child_times_out(tmp_path):
    with (
        Child(["sleep", "1000"], limits=Limits(seconds=0.3), cwd=tmp_path, env=environment(home=tmp_path)) as child,
        pytest.raises(TimedOut),
    ):
        list(child.lines())


def test_a_child_that_closes_its_pipes_and_runs_on_is_waited_for(tmp_path):
    done = finish(python("import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(7)"), tmp_path)
    assert done.returncode == 7
