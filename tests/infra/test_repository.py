import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and line[0] not in "#-")


def test_make_alone_lists_every_target_with_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    # Without what a make that runs the tests tells the makes below it.
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    shown = subprocess.run(["make"], cwd=ROOT, env=plain, capture_output=True, text=True, check=True).stdout
    listed = dict(line.strip().removeprefix("make ").split(None, 1) for line in shown.splitlines())
    assert list(listed) == targets
    assert {"demo", "up", "test", "lint", "format", "gpu-test", "clean"} <= set(targets)


def test_imports_run_one_way():
    linted = subprocess.run([BIN / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("cli.main", {"service", "worker", "torch", "triton", "cupy", "cuda", "numpy", "fastapi", "celery"}),
        ("service.app", {"worker", "torch", "triton", "cupy", "cuda", "pynvml"}),
        ("worker.app", {"service", "torch", "triton", "cupy", "fastapi", "sqlmodel", "sqlalchemy"}),
        ("worker.pipeline", {"service", "torch", "triton", "cupy", "fastapi", "sqlmodel", "celery"}),
        ("worker.operators", {"torch", "triton", "cupy"}),
    ],
)
def test_importing_a_part_brings_in_nothing_that_it_must_not(module, never):
    program = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert never & set(loaded.stdout.split()) == set()


def test_no_tracked_file_names_a_path_of_the_machine_it_was_written_on():
    own = re.compile(rb"(?<![\w.}])/(?:work|root|farm)/|(?<![\w.])\.\./shared/")
    assert [path.name for path in _tracked() if path.suffix != ".gz" and own.search(path.read_bytes())] == []


def test_the_environment_is_the_one_that_the_constraints_pin():
    pins = _pins("constraints-base.txt") | _pins("constraints.txt")
    installed = {
        distribution.metadata["Name"]: distribution.version.partition("+")[0]
        for distribution in importlib.metadata.distributions()
    }
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in installed.items()}
    differing = {
        name: (pin, found)
        for name, pin in pins.items()
        if (found := normal.get(re.sub(r"[-_.]+", "-", name).lower(), pin)) != pin
    }
    assert differing == {}
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    assert sorted(set(normal) - pinned - {"kernelgate", "pip", "setuptools"}) == []


def test_what_must_be_pinned_is_pinned_and_torch_only_where_a_gpu_node_does_not_look():
    everything, base = _pins("constraints.txt"), _pins("constraints-base.txt")
    assert everything["torch"] == "2.13.0"
    assert "triton" in everything
    assert base["celery"].startswith("5.7")
    assert base["kombu"].startswith("5.7")
    assert {"torch", "triton", "cuda-bindings", "cupy-cuda13x"} & set(base) == set()
    assert "-c constraints-base.txt" in (ROOT / "constraints.txt").read_text()
    assert "torch==2.13.0" in (ROOT / "scripts/set-up").read_text()


def test_ci_lints_and_tests_and_stops_at_the_first_failure():
    script = (ROOT / ".ci/run").read_text()
    assert script.index("set -euo pipefail") < script.index("make lint") < script.index("make test")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_pre_commit_runs_the_tools_that_make_lint_runs():
    subprocess.run([BIN / "pre-commit", "validate-config"], cwd=ROOT, check=True, capture_output=True)
    recipe = re.search(r"^lint:.*?\n\n", (ROOT / "Makefile").read_text(), flags=re.DOTALL | re.MULTILINE)
    assert recipe
    tools = set(re.findall(r"\$\(BIN\)/([a-z-]+)", recipe[0]))
    configured = (ROOT / ".pre-commit-config.yaml").read_text()
    assert [tool for tool in sorted(tools) if f".venv/bin/{tool}" not in configured] == []


def test_the_licence_is_the_one_that_the_package_names():
    assert PYPROJECT["project"]["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_every_relative_link_leads_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        linked = (ROOT / page).parent / name if name else ROOT / page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, target
