"""Kernels, nodes and tokens as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from cli.show.cases import plain_table
from cli.text import duration
from contract.api import KernelOut, TokenOut
from contract.text import one_line
from contract.views import NodeDetail

_NODE_STYLES = {"idle": "", "busy": "green", "offline": "red", "unhealthy": "red"}


def kernel_table(kernels: Sequence[KernelOut]) -> Table:
    table = plain_table(
        ("kernel", "left"),
        ("operator", "left"),
        ("revisions", "right"),
        ("newest", "left"),
        ("cases", "right"),
        ("classes", "left"),
        ("summary", "left"),
    )
    for kernel in kernels:
        table.add_row(
            kernel.name,
            one_line(kernel.operator),
            str(kernel.revisions),
            one_line(kernel.newest or ""),
            str(len(kernel.cases)),
            ", ".join(klass.value for klass in kernel.device_classes),
            one_line(kernel.summary, limit=60),
        )
    return table


def _doing(node: NodeDetail) -> str:
    if node.work:
        return one_line(f"{node.work.kernel} {node.work.label}")
    return node.evaluation or one_line(node.problem or "")


def node_table(nodes: Sequence[NodeDetail], *, now: datetime | None = None) -> Table:
    table = plain_table(
        ("node", "left"),
        ("class", "left"),
        ("device", "left"),
        ("driver", "left"),
        ("state", "left"),
        ("doing", "left"),
        ("last seen", "right"),
    )
    for node in nodes:
        ago = ((now or datetime.now(UTC)) - node.last_seen_at).total_seconds()
        table.add_row(
            one_line(node.name),
            node.device_class.value,
            one_line(node.device),
            one_line(node.driver or ""),
            Text(node.state, style=_NODE_STYLES[node.state]),
            _doing(node),
            f"{duration(max(0.0, ago))} ago",
        )
    return table


def token_table(tokens: Sequence[TokenOut]) -> Table:
    table = plain_table(
        ("token", "left"), ("scope", "left"), ("project", "left"), ("node", "left"), ("made", "left"), ("note", "left")
    )
    for token in tokens:
        table.add_row(
            token.id,
            token.scope.value,
            token.project or "all",
            one_line(token.node or ""),
            f"{token.created_at:%Y-%m-%d %H:%M}",
            one_line(token.note),
        )
    return table
