"""Commands that are used wrongly, or are stopped: each says what happened and what to do."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from contract.api import KernelPage
from contract.devices import DeviceClass
from contract.views import NodePage
from tests.cli.stub import Stub, evaluation, node, queued
from tests.cli.test_reading import KERNEL

ONE = "GET /evaluations/ev_1"
runner = CliRunner()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("KERNELGATE_URL", "localhost:8000", "it begins with http:// or https://"),
        ("KERNELGATE_URL", "ftp://kernelgate", "it begins with http:// or https://"),
        ("KERNELGATE_TOKEN", "kg_tök", "KERNELGATE_TOKEN holds what no token does"),
        ("KERNELGATE_TOKEN", "kg_tok_one\nkg_tok_two", "KERNELGATE_TOKEN holds what no token does"),
    ],
)
def test_an_address_or_a_token_that_can_be_none_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv("KERNELGATE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(variable, value)
    result = runner.invoke(app, ["kernels"])
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path))
    monkeypatch.setenv("KERNELGATE_URL", " ")
    result = runner.invoke(app, ["kernels"])
    assert result.exit_code == 3
    assert "no service is known here" in result.stderr


def test_a_folder_that_is_not_there_is_told_from_one_without_a_manifest(stub: Stub, tmp_path: Path) -> None:
    assert "nowhere: no such folder" in runner.invoke(app, ["submit", str(tmp_path / "nowhere")]).stderr
    assert "kernel.toml is missing" in runner.invoke(app, ["submit", str(tmp_path)]).stderr
    assert stub.requests == []


def test_whoever_stops_watching_is_told_that_the_evaluation_goes_on(
    stub: Stub, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    stub.routes[ONE] = queued()
    monkeypatch.setattr("cli.show.live.follow", interrupted)
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait"])
    assert result.exit_code == 130
    assert "the evaluation goes on" in result.stderr
    assert "`kernelgate watch ev_1`" in result.stderr
    assert stub.asked("DELETE /evaluations/ev_1") == []


def test_what_waits_for_a_class_without_a_node_says_so(stub: Stub, kernel: Path) -> None:
    stub.routes[ONE] = queued()
    away = node(state="offline"), node(device_class=DeviceClass.RTX4090)
    stub.routes["GET /nodes"] = NodePage(items=away, next=None)
    said = "no node of class h200 is here now"
    assert said in runner.invoke(app, ["submit", str(kernel / "v4")]).output
    stub.routes["GET /nodes"] = NodePage(items=(*away, node(state="busy")), next=None)
    assert said not in runner.invoke(app, ["submit", str(kernel / "v4")]).output
    stub.routes["GET /nodes"] = NodePage(items=away, next=None)
    stub.routes[ONE] = evaluation()
    assert said not in runner.invoke(app, ["submit", str(kernel / "v4")]).output


def test_a_narrow_terminal_folds_names_and_loses_none(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stub.routes["GET /projects/local/kernels"] = KernelPage(items=(KERNEL,), next=None)
    lines = runner.invoke(app, ["kernels"]).output.splitlines()
    assert any(line.startswith("hgemm") for line in lines)


def test_the_version_is_said() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"kernelgate {metadata.version('kernelgate')}\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_is_said_in_a_line(stub: Stub, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    stub.routes["GET /projects/local/kernels"] = KernelPage(items=(KERNEL,), next=None)
    errors = io.StringIO()
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        monkeypatch.setattr("sys.stderr", errors)
        with pytest.raises(SystemExit) as ended:
            app(["kernels", *options])
        with suppress(OSError):
            full.close()
    assert ended.value.code == 3
    assert errors.getvalue().splitlines() == ["error: standard output: No space left on device"]


@pytest.mark.parametrize("command", [["verdict", "--help"], ["kernels", "--json"]])
def test_a_closed_standard_output_is_no_traceback(command: list[str]) -> None:
    shell = f"{sys.executable} -m cli.main {' '.join(command)} >&-"
    environment = {"KERNELGATE_URL": "http://127.0.0.1:9", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", shell], env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
