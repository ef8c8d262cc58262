"""The client of a command, and what an id on the command line stands for."""

from __future__ import annotations

from cli.client import Client
from cli.errors import CliError
from cli.local.home import find_home, service_address
from contract.api import RevisionOut


def connect() -> Client:
    url, token = service_address(find_home())
    return Client(url, token)


def evaluation_ids(client: Client, name: str) -> tuple[str, ...]:
    """The evaluation `ev_…`, or all of a revision `rev_…`, oldest first; raises CliError where there is none."""
    if name.startswith("ev_"):
        return (name,)
    if not name.startswith("rev_"):
        raise CliError(f"{name} is no id", hint="ids begin with ev_ or rev_; `kernelgate history KERNEL` shows them")
    revision = client.get(f"/revisions/{name}", RevisionOut)
    if not revision.evaluations:
        raise CliError(f"{name} has no evaluations ({revision.origin})")
    return tuple(reversed(revision.evaluations))
