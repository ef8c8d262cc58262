"""What `up` tells its worker to run where this machine has no sandbox."""

import json

import pytest

from cli.bundles import read_folder
from cli.local.trust import KERNELS, operator_variables, sandbox_variables
from contract.devices import DeviceClass
from worker.settings import WorkerSettings


@pytest.fixture
def no_bubblewrap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


def said_and_set(host: str = "127.0.0.1", node: DeviceClass = DeviceClass.CPU) -> tuple[str, dict[str, str]]:
    said: list[str] = []
    variables = sandbox_variables(host=host, node=node, say=said.append)
    return "\n".join(said), variables


@pytest.mark.usefixtures("no_bubblewrap")
def test_on_loopback_the_shipped_kernels_are_trusted_and_nothing_else(monkeypatch):
    said, variables = said_and_set()
    assert "bubblewrap is not installed" in said
    assert "the kernels that ship with the program, and nothing else" in said
    shipped = [read_folder(KERNELS / "sgemm_cpu" / name).digest for name in ("v0_naive", "v1_blocked")]
    assert set(shipped) <= set(json.loads(variables["KERNELGATE_TRUSTED_BUNDLES"]))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert set(shipped) <= set(WorkerSettings().trusted_bundles)


@pytest.mark.usefixtures("no_bubblewrap")
@pytest.mark.parametrize(("host", "node"), [("0.0.0.0", DeviceClass.CPU), ("127.0.0.1", DeviceClass.H200)])
def test_for_others_or_on_a_card_nothing_is_trusted(host, node):
    said, variables = said_and_set(host, node)
    assert "takes nothing" in said
    assert variables == {}


def test_operators_of_the_machines_own_project_run_on_loopback_and_as_the_environment_says(monkeypatch):
    monkeypatch.delenv("KERNELGATE_OWN_OPERATORS", raising=False)
    assert operator_variables(host="0.0.0.0") == {}
    monkeypatch.setenv("KERNELGATE_OWN_OPERATORS", operator_variables(host="127.0.0.1")["KERNELGATE_OWN_OPERATORS"])
    settings = WorkerSettings()
    assert (settings.runs_operators_of("local"), settings.runs_operators_of("acme--kernels")) == (True, False)
    monkeypatch.setenv("KERNELGATE_OWN_OPERATORS", "[]")
    assert operator_variables(host="127.0.0.1") == {}


def test_with_a_sandbox_there_is_nothing_to_say():
    assert said_and_set() == ("", {})


def test_switched_off_it_is_said_aloud(monkeypatch):
    monkeypatch.setenv("KERNELGATE_SANDBOX", "off")
    said, variables = said_and_set()
    assert "WITHOUT A SANDBOX" in said
    assert variables == {}
