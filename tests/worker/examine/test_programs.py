"""Where the tools are found, and what of the disk they need to see."""

from pathlib import Path

import pytest

from worker.examine import programs
from worker.examine.programs import NotHereError


def executable(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(programs, "_NSIGHT", tmp_path / "nsight-compute")
    monkeypatch.setattr(programs, "_TOOLKIT", tmp_path / "cuda")


def test_a_node_without_a_tool_says_which_and_how_to_name_it():
    with pytest.raises(NotHereError, match=r"no ncu .*KERNELGATE_NCU"):
        programs.ncu()
    with pytest.raises(NotHereError, match="no /nowhere/compute-sanitizer"):
        programs.compute_sanitizer("/nowhere/compute-sanitizer")


def test_a_named_one_goes_before_all_and_its_folder_is_seen(tmp_path):
    executable(tmp_path / "bin" / "ncu")
    named = executable(tmp_path / "elsewhere" / "ncu")
    assert programs.ncu(str(named)) == programs.Program(path=named, needs=(named.parent,))


def test_a_link_is_followed_so_that_a_sandbox_needs_only_its_target(tmp_path):
    real = executable(tmp_path / "nsight-compute" / "2025.3.1" / "ncu")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ncu").symlink_to(real)
    assert programs.ncu() == programs.Program(path=real, needs=(real.parent, tmp_path / "nsight-compute"))


def test_of_several_versions_the_newest_is_taken(tmp_path):
    for version in ("2024.3.2", "2025.10.0", "2025.3.1"):
        executable(tmp_path / "nsight-compute" / version / "ncu")
    assert programs.ncu().path.parent.name == "2025.10.0"


def test_a_toolkits_own_comes_with_the_whole_toolkit(tmp_path):
    real = executable(tmp_path / "cuda" / "bin" / "compute-sanitizer")
    assert programs.compute_sanitizer() == programs.Program(path=real, needs=(tmp_path / "cuda",))
