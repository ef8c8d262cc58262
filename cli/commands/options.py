"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contract.devices import DeviceClass

Project = Annotated[str, typer.Option("--project", "-p", envvar="KERNELGATE_PROJECT", help="Slug of the project.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Classes = Annotated[
    list[DeviceClass] | None,
    typer.Option("--device-class", "-d", help="Class of card; repeat for several. By default the suite's."),
]
OneClass = Annotated[DeviceClass | None, typer.Option("--device-class", "-d", help="Class of card.")]
Profile = Annotated[
    bool, typer.Option("--profile", help="Read the card's counters too, where it permits that: tensor pipe, stalls.")
]
Folder = Annotated[Path, typer.Argument(help="Folder of a revision: kernel.toml and its source.")]
Folders = Annotated[list[Path], typer.Argument(help="Folders of revisions: kernel.toml and its source.")]
EvaluationId = Annotated[str, typer.Argument(help="ev_…, or a revision's rev_…")]
DEFAULT_PROJECT = "local"
