"""suite.toml: what a kernel is measured on and what its gate allows. Trusted; never from the change that is judged."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Literal, Self, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from contract.base import Model
from contract.devices import DeviceClass
from contract.layout import DTYPE_BYTES, Dtype
from contract.names import CaseId, KernelName, Label
from contract.operators import OPERATORS, OperatorSchema
from contract.own_operator import Signature, read_signature
from contract.statics import StaticMetric

Fraction = Annotated[float, Field(gt=0, lt=1)]

# What a C int holds.
Dim = Annotated[int, Field(lt=1 << 31)]

SanitizerTool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]


class Case(Model):
    """One set of dimensions. `dims` maps each parameter of the operator to its value; a flag is 0 or 1."""

    dims: dict[str, Dim]
    title: str | None = None
    family: str | None = Field(default=None, description="cases of one family form a scaling curve")
    allowed_slowdown: Fraction | None = None
    allowed_slowdown_on: dict[DeviceClass, Fraction] = {}

    @property
    def id(self) -> CaseId:
        return ",".join(f"{name}={value}" for name, value in self.dims.items())


class Allowance(Model):
    """A slowdown of `revision` over `base`, in one case and class, that the gate forgives."""

    revision: Label
    base: Label
    case: CaseId
    device_class: DeviceClass
    reason: str


class Prediction(Model):
    """What a step of the ladder should bring: time_base / time_revision between `at_least` and `at_most`."""

    revision: Label
    base: Label
    case: CaseId
    device_class: DeviceClass
    at_least: float = Field(gt=0)
    at_most: float | None = None
    why: str


class StaticLimit(Model):
    """A limit on what the machine code for an architecture says of itself (`static_value`); `growth` is over the
    base's."""

    metric: StaticMetric
    at_most: int | None = Field(default=None, ge=0)
    growth: float | None = Field(default=None, ge=0)
    device_classes: tuple[DeviceClass, ...] = ()

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.at_most is None and self.growth is None:
            raise ValueError(f"the limit on {self.metric} needs at_most or growth")
        return self


class Anchor(Model):
    """Many slowdowns that are each allowed add up: nothing may be slower than this over `revision`."""

    revision: Label
    allowed_slowdown: Fraction = 0.02


class Policy(Model):
    """What the gate allows. Verdicts follow from the allowed slowdown, the rest is applied to them (verdict/gate)."""

    allowed_slowdown: Fraction = 0.005
    allowed_slowdown_on: dict[DeviceClass, Fraction] = {}
    inconclusive: Literal["pass", "fail"] = "pass"
    missing: Literal["pass", "fail"] = "fail"
    required_device_classes: tuple[DeviceClass, ...] = ()
    build_only_device_classes: tuple[DeviceClass, ...] = ()
    static_limits: tuple[StaticLimit, ...] = ()
    anchor: Anchor | None = None

    @model_validator(mode="after")
    def _requirements_fit(self) -> Self:
        both = [each.value for each in self.required_device_classes if each in self.build_only_device_classes]
        if both:
            raise ValueError(f"{both[0]} can't be both required and build-only")
        return self


class Suite(Model):
    kernel: KernelName
    operator_source: str | None = Field(default=None, description="the text of the operator.py beside suite.toml")
    operator: str
    dtype: str
    summary: str = ""
    device_classes: tuple[DeviceClass, ...] = Field(min_length=1)
    revisions: tuple[str, ...] = Field(default=(), description="folder names in order; the last is the current one")
    cases: tuple[Case, ...] = Field(min_length=1)
    verify_cases: tuple[Case, ...] = ()
    tolerances: dict[str, float] = {}
    sanitize: tuple[SanitizerTool, ...] = Field(
        default=("memcheck",), description="tools of compute-sanitizer that look at GPU code, where a node has them"
    )
    policy: Policy = Policy()
    allowances: tuple[Allowance, ...] = ()
    predictions: tuple[Prediction, ...] = ()

    @field_validator("revisions")
    @classmethod
    def _listed_once(cls, revisions: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for place, name in enumerate(revisions) if name in revisions[:place]), None)
        if twice is not None:
            raise ValueError(f"{twice[:80]} is listed twice")
        return revisions

    @field_validator("operator_source")
    @classmethod
    def _readable(cls, source: str | None) -> str | None:
        if source is None:
            return None
        source = source.replace("\r\n", "\n")
        read_signature(source)
        return source

    @field_validator("operator")
    @classmethod
    def _known_operator(cls, name: str, info: ValidationInfo) -> str:
        """It ships, or its source came with it: never both, so that none is shadowed."""
        own = info.data.get("operator_source") is not None
        if own and name in OPERATORS:
            raise ValueError(f"{name} ships with Kernelgate: an operator.py needs another name")
        if own and not re.fullmatch("[a-z][a-z0-9_]{0,62}", name):
            raise ValueError(f"{name[:80]!r} is no name for an operator: lower-case letters, digits, _")
        if not own and name not in OPERATORS:
            raise ValueError(f"{name} is not an operator ({', '.join(OPERATORS)}), and there is no operator.py")
        return name

    @model_validator(mode="after")
    def _cases_fit_the_operator(self) -> Self:
        schema = self.operator_schema
        if self.dtype not in schema.dtypes:
            raise ValueError(f"dtype {self.dtype} is not one of {self.operator}'s ({', '.join(schema.dtypes)})")
        for case in (*self.cases, *self.verify_cases):
            if tuple(sorted(case.dims)) != tuple(sorted(schema.parameters)):
                raise ValueError(f"case {case.id} must give exactly {', '.join(schema.parameters)}")
            wrong = [name for name, value in case.dims.items() if value < (0 if name in schema.flags else 1)]
            if wrong:
                raise ValueError(f"case {case.id}: {wrong[0]} is too small")
            if any(case.dims[flag] > 1 for flag in schema.flags):
                raise ValueError(f"case {case.id}: {', '.join(schema.flags)} must be 0 or 1")
            if self.signature is not None:
                self.signature.tensors(case.dims, cast("Dtype", self.dtype))
        ids = [case.id for case in self.cases]
        if len(set(ids)) != len(ids):
            raise ValueError("two cases have the same dimensions")
        named = [entry.case for entry in self.allowances] + [entry.case for entry in self.predictions]
        for case_id in named:
            if case_id not in ids:
                raise ValueError(f"{case_id} is not a case of this suite ({'; '.join(ids)})")
        return self

    @field_validator("cases", "verify_cases", mode="after")
    @classmethod
    def _canonical_order(cls, cases: tuple[Case, ...], info: ValidationInfo) -> tuple[Case, ...]:
        if "operator" not in info.data or "operator_source" not in info.data:
            return cases
        schema = _schema(info.data["operator"], info.data["operator_source"])
        order = {name: place for place, name in enumerate(schema.parameters)}
        return tuple(
            case.model_copy(
                update={"dims": dict(sorted(case.dims.items(), key=lambda item: order.get(item[0], len(order))))}
            )
            for case in cases
        )

    @property
    def signature(self) -> Signature | None:
        """What the suite's own operator says of itself; None for one that ships."""
        return None if self.operator_source is None else read_signature(self.operator_source)

    @property
    def operator_schema(self) -> OperatorSchema:
        return _schema(self.operator, self.operator_source)

    @property
    def digest(self) -> str:
        """SHA-256 of everything but the list of revisions: appending to that list is no edit of the suite."""
        content = self.model_dump(mode="json", exclude={"revisions"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def allowed_slowdown(self, case_id: str, *, device_class: DeviceClass) -> float:
        """The narrowest that is given: the case's on the class, the case's, the policy's on the class, the policy's."""
        case = next(case for case in self.cases if case.id == case_id)
        return (
            case.allowed_slowdown_on.get(device_class)
            or case.allowed_slowdown
            or self.policy.allowed_slowdown_on.get(device_class)
            or self.policy.allowed_slowdown
        )

    def allowance(self, *, revision: str, base: str, case: str, device_class: DeviceClass) -> Allowance | None:
        wanted = (revision, base, case, device_class)
        return next(
            (a for a in self.allowances if (a.revision, a.base, a.case, a.device_class) == wanted),
            None,
        )


def _schema(operator: str, source: str | None) -> OperatorSchema:
    if source is None:
        return OPERATORS[operator]
    signature = read_signature(source)
    return OperatorSchema(name=operator, dims=signature.dims, flags=signature.flags, dtypes=tuple(DTYPE_BYTES))
