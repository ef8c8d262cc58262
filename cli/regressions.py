"""What the commands around regressions and the gate ask the service for."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from itertools import islice

from cli.client import Client
from cli.errors import CliError, Exit
from contract.devices import DeviceClass
from contract.gate import GateConclusion
from contract.regressions import RegressionOut, RegressionPage, RegressionState

GATE_EXITS: dict[GateConclusion, Exit] = {
    GateConclusion.SUCCESS: Exit.OK,
    GateConclusion.FAILURE: Exit.JUDGED_BAD,
    GateConclusion.NOT_MEASURED: Exit.NOT_MEASURED,
    GateConclusion.CANCELLED: Exit.NOT_MEASURED,
    GateConclusion.PENDING: Exit.NOT_MEASURED,
}
_OPEN = (RegressionState.NEW, RegressionState.ACKNOWLEDGED, RegressionState.EXPECTED)
_WHOLE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# More than anyone reads.
_MOST = 1000


def find_regressions(
    client: Client,
    *,
    project: str,
    states: Sequence[str],
    kernel: str | None,
    device_class: DeviceClass | None,
    faster: bool,
    everything: bool,
) -> list[RegressionOut]:
    """Newest first; without states or `everything` those that are open. Raises CliError for a state that is none."""
    known = [state.value for state in RegressionState]
    for state in states:
        if state not in known:
            raise CliError(f"--state {state}: not one of {', '.join(known)}")
    wanted = list(states) or ([] if everything else [state.value for state in _OPEN])
    found = client.items(
        f"/projects/{project}/regressions",
        RegressionPage,
        state=wanted or None,
        kernel=kernel,
        device_class=device_class.value if device_class else None,
        direction="faster" if faster else "slower",
    )
    return list(islice(found, _MOST))


def full_commit(name: str) -> str:
    """The whole id of a commit; a short one or a name is asked of the git repository in this folder."""
    if _WHOLE.fullmatch(name):
        return name
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        raise CliError(f"{name}: git can't be asked ({error})", hint="give the whole commit id") from error
    found = done.stdout.strip()
    if done.returncode != 0 or not _WHOLE.fullmatch(found):
        raise CliError(f"{name} is no commit of the repository in this folder", hint="give the whole commit id")
    return found
