"""The gate: the evaluations of a commit and the policy in, one conclusion and the sentence that says why out. Pure."""

from verdict.gate.deciding import gate

__all__ = ["gate"]
