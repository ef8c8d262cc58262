"""operator.py, beside suite.toml: the operator that a kernel's folder brings. What it says in constants is read here
without running any of it; what it computes is run in the judge and the baseline alone (worker/operators/own.py).
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator

from contract import expressions
from contract.base import Model
from contract.layout import Dtype, Role, TensorSpec
from contract.names import Identifier

FILE = "operator.py"
MAX_CHARACTERS = 32_768
PLAIN_FAMILIES = ("normal", "uniform", "heavy_tailed", "signed_zeros")
# Function -> its parameters, as it is called.
FUNCTIONS = {
    "reference": ("xp", "inputs", "dims"),
    "baseline": ("torch", "inputs", "outputs", "dims"),
    "fill": ("draw", "family", "inputs", "dims"),
    "magnitude": ("xp", "inputs", "dims"),
}
_REQUIRED = ("reference", "baseline")
_UNFIT = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
Shape = tuple[str | int, ...]
Family = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class OwnOperatorError(ValueError):
    """An operator.py that can't be taken; the message says where."""


class Signature(Model):
    """operator.py's constants, by their names in lower case. Shapes and counts are expressions of the dimensions.

    by_rows: inputs of which row i alone (first axis) goes into row i of the outputs.
    terms: how many terms the sums have that an element of the output is made of.
    families: beside the plain ones.
    """

    dims: tuple[Identifier, ...] = Field(min_length=1)
    flags: tuple[Identifier, ...] = ()
    inputs: dict[Identifier, Shape] = Field(min_length=1, max_length=16)
    outputs: dict[Identifier, Shape] = Field(min_length=1, max_length=16)
    flop: str | int
    bytes: str | int | None = None
    by_rows: tuple[Identifier, ...] = ()
    terms: str | int = 1
    families: tuple[Family, ...] = Field(default=(), max_length=32)
    baseline: str = Field(default="torch", pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]{0,39}$")
    baseline_writes: bool = Field(default=False, strict=True)

    @field_validator("inputs", "outputs")
    @classmethod
    def _ranks(cls, tensors: dict[str, Shape]) -> dict[str, Shape]:
        for name, shape in tensors.items():
            if not 1 <= len(shape) <= 4:
                raise ValueError(f"{name} must have one to four dimensions")
        return tensors

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Signature:
        parameters = (*self.dims, *self.flags)
        if len(set(parameters)) != len(parameters):
            raise ValueError("a dimension is named twice")
        if twice := set(self.inputs).intersection(self.outputs):
            raise ValueError(f"{min(twice)} is an input and an output")
        if foreign := [name for name in self.by_rows if name not in self.inputs]:
            raise ValueError(f"BY_ROWS: {foreign[0]} is not an input")
        if plain := [name for name in self.families if name in PLAIN_FAMILIES]:
            raise ValueError(f"FAMILIES: {plain[0]} is there already")
        counts = (self.flop, self.terms, *(() if self.bytes is None else (self.bytes,)))
        shapes = (*self.inputs.values(), *self.outputs.values())
        for text in (*counts, *(extent for shape in shapes for extent in shape)):
            expressions.check(str(text), parameters)
        return self

    def tensors(self, dims: Mapping[str, int], dtype: Dtype) -> tuple[TensorSpec, ...]:
        """Raises ExpressionError where a case has no such tensors."""
        roles = ((Role.INPUT, self.inputs), (Role.OUTPUT, self.outputs))
        tensors = tuple(
            TensorSpec(name=name, role=role, dtype=dtype, shape=tuple(_extent(name, each, dims) for each in shape))
            for role, shapes in roles
            for name, shape in shapes.items()
        )
        in_rows = [each for each in tensors if each.name in self.by_rows or each.role is Role.OUTPUT]
        if self.by_rows and len({each.shape[0] for each in in_rows}) != 1:
            names = ", ".join(each.name for each in in_rows)
            raise expressions.ExpressionError(f"BY_ROWS: {names} differ in their rows")
        return tensors

    def count(self, text: str | int, dims: Mapping[str, int]) -> float:
        """FLOP, bytes or terms of a case; above zero."""
        value = expressions.evaluate(str(text), dims)
        if not 0 < value < 1e30:
            raise expressions.ExpressionError(f"{text!r} is {value} for {dict(dims)}")
        return float(value)


def _extent(name: str, text: str | int, dims: Mapping[str, int]) -> int:
    value = expressions.evaluate(str(text), dims)
    if not isinstance(value, int) or not 1 <= value < 1 << 40:
        raise expressions.ExpressionError(f"{name}: {text!r} is {value} for {dict(dims)}, which is no extent")
    return value


@lru_cache(maxsize=64)
def read_signature(source: str) -> Signature:
    """Raises OwnOperatorError."""
    check_text(source)
    try:
        tree = ast.parse(source, filename=FILE)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = getattr(error, "msg", None) or str(error) or "it is nested too deeply"
        raise OwnOperatorError(f"{FILE}:{getattr(error, 'lineno', 1)}: {said}") from error
    defined = _check_functions(tree)
    constants = _constants(tree)
    try:
        signature = Signature.model_validate(constants)
    except ValidationError as error:
        problem = error.errors()[0]
        where = str(problem["loc"][0]).upper() if problem["loc"] else ""
        message = "is missing" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
        raise OwnOperatorError(f"{FILE}: {where} {message}".replace(":  ", ": ")) from error
    if signature.families and "fill" not in defined:
        raise OwnOperatorError(f"{FILE}: FAMILIES needs a function fill({', '.join(FUNCTIONS['fill'])})")
    return signature


def check_text(source: str) -> None:
    """A reviewer has to see what there is: no control characters, none that turn the direction of text."""
    if len(source) > MAX_CHARACTERS:
        raise OwnOperatorError(f"{FILE}: {len(source)} characters; at most {MAX_CHARACTERS} are allowed")
    if (unfit := _UNFIT.search(source)) is not None:
        line = source.count("\n", 0, unfit.start()) + 1
        raise OwnOperatorError(f"{FILE}:{line}: the character U+{ord(unfit.group()):04X} is not allowed")


def _check_functions(tree: ast.Module) -> set[str]:
    defined: dict[str, ast.FunctionDef] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if node.name in FUNCTIONS and node.name in defined:
                raise OwnOperatorError(f"{FILE}:{node.lineno}: {node.name} is there twice")
            defined[node.name] = node
    for name, line in _bound(tree, besides=defined.values()):
        if name in FUNCTIONS:
            raise OwnOperatorError(f"{FILE}:{line}: {name} must be defined once, at the top: def {name}(...)")
    for name, parameters in FUNCTIONS.items():
        if name not in defined:
            if name in _REQUIRED:
                raise OwnOperatorError(f"{FILE}: a function {name}({', '.join(parameters)}) is missing")
            continue
        found = tuple(argument.arg for argument in defined[name].args.args)
        if found != parameters:
            raise OwnOperatorError(f"{FILE}:{defined[name].lineno}: {name} takes ({', '.join(parameters)})")
    return set(defined)


def _bound(tree: ast.Module, *, besides: Iterable[ast.AST] = ()) -> Iterator[tuple[str, int]]:
    """(name, line) of what the module itself binds, by whatever statement; its functions' own names are theirs."""
    known = set(besides)
    waiting: deque[ast.AST] = deque(tree.body)
    while waiting:
        node = waiting.popleft()
        line = getattr(node, "lineno", 1)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node not in known:
                    yield node.name, line
                taken = [each for each in ast.walk(node) if isinstance(each, ast.Global)]
                yield from ((name, each.lineno) for each in taken for name in each.names)
                continue
            case ast.Lambda():
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name, line
            case ast.alias():
                yield node.asname or node.name.partition(".")[0], line
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, line
            case ast.MatchMapping(rest=str(name)):
                yield name, line
        waiting.extend(ast.iter_child_nodes(node))


def _constants(tree: ast.Module) -> dict[str, Any]:
    """The assignments at the top whose names the signature has. What binds one in another way is refused: it would be
    another value when the text is run than the one that is read here."""
    known = {name.upper(): name for name in Signature.model_fields}
    found: dict[str, Any] = {}
    read: set[ast.AST] = set()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if not isinstance(target, ast.Name) or target.id not in known:
                continue
            name = target.id
            read.add(target)
            if known[name] in found:
                raise OwnOperatorError(f"{FILE}:{node.lineno}: {name} is there twice")
            found[known[name]] = _written_out(name, node)
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and each.id in known and each not in read and not isinstance(each.ctx, ast.Load):
            raise OwnOperatorError(f"{FILE}:{each.lineno}: {each.id} must be set once, at the top: {each.id} = ...")
    bound = [(name, line) for name, line in _bound(tree) if name in known]
    for place, (name, line) in enumerate(bound):
        if known[name] not in found or name in dict(bound[:place]):
            raise OwnOperatorError(f"{FILE}:{line}: {name} must be set once, at the top: {name} = ...")
    return found


def _written_out(name: str, node: ast.stmt) -> Any:
    try:
        value = ast.literal_eval(node.value)  # type: ignore[attr-defined]
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise OwnOperatorError(f"{FILE}:{node.lineno}: {name} must be written out, without calls or names") from error
    # Python counts True as 1.
    truths = [each for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, bool)]
    if truths and name != "BASELINE_WRITES":
        raise OwnOperatorError(f"{FILE}:{node.lineno}: {name} holds {truths[0].value!r}, which is no number or text")
    return value
