"""A gate as GitHub's check run: its body, made from where the gate stands."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from contract.gate import RowStatus
from contract.outcomes import Verdict
from service.github.annotations import annotations_of
from service.github.conclusions import Decision, decide, hold_back
from service.github.markdown import shorten
from service.github.repository import CHECK_NAME
from service.github.standing import Scene
from service.github.summary import texts_of
from service.github.tables import GithubGate

AGAIN, ACCEPT, APPROVE = "again", "accept", "approve"
_BUTTONS = {
    AGAIN: {"label": "Measure again", "description": "A repeat; the evidence adds up", "identifier": AGAIN},
    ACCEPT: {"label": "Accept", "description": "Accept what this check shows", "identifier": ACCEPT},
    APPROVE: {"label": "Let it run", "description": "Run this commit of a fork", "identifier": APPROVE},
}
_TITLE_BYTES = 250


@dataclass(frozen=True, kw_only=True)
class Check:
    """`body`: without annotations, which are appended, at most 50 a request, once nothing more is to come.
    `key`: what GitHub has once this is sent."""

    status: str
    body: dict[str, Any]
    annotations: list[dict[str, Any]]
    key: str


def check_of(scene: Scene, *, public_url: str) -> Check:
    others = [(_name(each.gate), decide(each.standing)) for each in scene.beside]
    decision = hold_back(decide(scene.standing), others)
    summary, text = texts_of(scene, decision, public_url=public_url)
    output: dict[str, Any] = {"title": _title(decision), "summary": summary}
    if text is not None:
        output["text"] = text
    body: dict[str, Any] = {
        "name": CHECK_NAME,
        "details_url": f"{public_url}/",
        "status": decision.status,
        "output": output,
    }
    if decision.status != "queued":
        body["started_at"] = _time(scene.gate.started_at or scene.gate.created_at)
    if decision.conclusion is not None:
        body["conclusion"] = decision.conclusion
        body["actions"] = _actions(scene, decision)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    final = decision.conclusion is not None and not scene.open and scene.plan is not None
    return Check(
        status=decision.status,
        body=body,
        annotations=annotations_of(scene.plan, scene.evaluations) if final and scene.plan else [],
        key=f"{decision.status}:{digest[:40]}",
    )


def external_id_of(gate: GithubGate) -> str:
    """Which check run this is: found again by it where the answer that named its number was lost."""
    return f"{gate.id}.{gate.checks}"


def _name(gate: GithubGate) -> str:
    return f"pull request #{gate.number} to {gate.base_ref}" if gate.number else f"the merge queue of {gate.base_ref}"


def _title(decision: Decision) -> str:
    unproven = decision.conclusion == "success" and decision.sentence.startswith("not proven")
    return shorten("not proven" if unproven else decision.sentence, _TITLE_BYTES)


def _actions(scene: Scene, decision: Decision) -> list[dict[str, str]]:
    standing = scene.standing
    if standing.ended is not None:
        return []
    if standing.unapproved:
        return [_BUTTONS[APPROVE]]
    rows = standing.answer.rows if standing.answer else ()
    names = [AGAIN] if rows or standing.broken else []
    slower = any(row.status is RowStatus.BAD and row.verdict is Verdict.SLOWER for row in rows)
    if standing.holds or (slower and decision.conclusion == "failure"):
        names.append(ACCEPT)
    return [_BUTTONS[name] for name in names]


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
