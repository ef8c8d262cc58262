"""hgemm's revisions compile without spills; each for one of the three architectures, by turns."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contract.devices import ARCHITECTURES, DeviceClass
from tests.kernels.shipped import INCLUDE, KERNELS, manifest_of, suite_of
from worker.toolchains.nvcc import find_nvcc

TURNS = [ARCHITECTURES[name] for name in (DeviceClass.RTX4090, DeviceClass.H200, DeviceClass.B300)]


def _compiler_report(folder: Path, architecture: str, to: Path) -> str:
    virtual = architecture.replace("sm_", "compute_")
    done = subprocess.run(
        [
            str(find_nvcc(None).path), "-O3", "-std=c++17", f"-gencode=arch={virtual},code={architecture}",
            "-Xptxas=-v", "-Werror=all-warnings", "-cubin", f"-I{INCLUDE}", str(folder / manifest_of(folder).source),
            "-o", str(to),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_no_revision_spills_or_warns(tmp_path: Path):
    folders = [KERNELS / "hgemm" / name for name in suite_of("hgemm").revisions]
    jobs = [(folder, TURNS[place % 3], tmp_path / f"{folder.name}.cubin") for place, folder in enumerate(folders)]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda job: _compiler_report(*job), jobs))
    for (folder, architecture, _), report in zip(jobs, reports, strict=True):
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", report)
        assert spills, report
        assert set(spills) == {"0"}, f"{folder.name} for {architecture}"
