"""The scripts behind `make`, on a PATH that holds only what a test puts there."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash")


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(**scripts: str) -> Path:
        for name, script in scripts.items():
            file = folder / name.replace("gxx", "g++").replace("_", "-").replace("python311", "python3.11")
            file.write_text(f"#!{BASH}\n{script}\n")
            file.chmod(0o755)
        return folder

    return put


def _run(script: str, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BASH, ROOT / "scripts" / script, *arguments],
        cwd=path.parent,
        env={"PATH": str(path), "LOG": str(path.parent / "log")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _real(*names: str) -> dict[str, str]:
    return {name: f'exec {shutil.which(name)} "$@"' for name in names}


def _log(path: Path) -> str:
    log = path.parent / "log"
    return log.read_text() if log.exists() else ""


LOGGED = 'echo "$(basename "$0") $*" >> "$LOG"'


def test_nothing_is_installed_where_nothing_is_missing(path):
    found = path(gxx="", bwrap="", chromium="", npm="", initdb="", apt_get=LOGGED)
    assert _run("system-packages", found).returncode == 0
    assert _log(found) == ""


def test_without_root_it_names_the_one_command_and_stops(path):
    found = path(gxx="", chromium="", npm="", initdb="", id="echo 1000", sudo="exit 1", apt_get=LOGGED)
    done = _run("system-packages", found)
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends bubblewrap" in done.stderr
    assert _log(found) == ""


def test_as_root_it_says_what_it_installs_and_then_does(path):
    found = path(gxx="", chromium="", npm="", initdb="", id="echo 0", apt_get=LOGGED, **_real("basename", "env"))
    done = _run("system-packages", found)
    assert done.returncode == 0, done.stderr
    assert "running: apt-get install -y --no-install-recommends bubblewrap" in done.stdout
    assert _log(found).splitlines() == [
        "apt-get update -qq",
        "apt-get install -y --no-install-recommends bubblewrap -qq",
    ]


def test_another_distribution_is_told_what_is_needed(path):
    done = _run("system-packages", path(gxx="", chromium="", npm="", initdb=""))
    assert done.returncode == 1
    assert "bubblewrap" in done.stderr


def test_set_up_passes_over_a_python_that_does_not_run_and_one_that_is_too_old(path):
    found = path(python311="exit 127", python3='[ "$1" = --version ] && echo "Python 3.9.2" && exit; exit 1')
    done = _run("set-up", found, "venv", "dev")
    assert done.returncode == 1
    assert "Python 3.11 or 3.12" in done.stderr
    assert "found: Python 3.9.2" in done.stderr


def test_set_up_says_which_package_brings_the_venv_module(path):
    script = '[[ "$2" == *ensurepip* ]] && exit 1; exit 0'
    done = _run("set-up", path(python311=script, **_real("basename")), "venv", "dev")
    assert done.returncode == 1
    assert "apt-get install python3.11-venv" in done.stderr
