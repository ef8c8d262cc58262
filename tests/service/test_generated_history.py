import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_a_generated_history_is_what_the_pages_are_timed_on(tmp_path):
    url = f"sqlite:///{tmp_path / 'large.db'}"
    small = ("--kernels", "1", "--revisions", "30", "--long", "60", "--cases", "2")
    for script, given in (("generate_history.py", small), ("bench_api.py", ("--count", "2"))):
        command = [sys.executable, SCRIPTS / script, url, *given]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 19
    assert all(line.count(".") >= 3 for line in lines[1:]), done.stdout
