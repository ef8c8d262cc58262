"""Arithmetic over dimensions, as text: `"2 * m * n * k"`. Integers, names, + - * // / and brackets; nothing is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

MAX_CHARACTERS = 200
Number = int | float
_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}


class ExpressionError(ValueError):
    """An expression that can't be read or has no value; the message quotes it."""


def check(text: str, names: Collection[str]) -> None:
    """Raise ExpressionError where it is no arithmetic, or names something else than `names`."""
    used = {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}
    if unknown := sorted(used.difference(names)):
        raise ExpressionError(f"{text!r}: {unknown[0]} is not a dimension ({', '.join(names)})")


def evaluate(text: str, values: Mapping[str, int]) -> Number:
    try:
        return _value(_parsed(text), values)
    except (ArithmeticError, KeyError) as error:
        raise ExpressionError(f"{text!r} has no value for {dict(values)}: {error}") from error


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"{text[:40]!r}...: at most {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} can't be read: {error}") from error
    for node in ast.walk(tree):
        known = isinstance(node, (ast.Name, ast.BinOp, ast.expr_context, *_OPERATORS))
        if not known and not (isinstance(node, ast.Constant) and type(node.value) is int):
            raise ExpressionError(f"{text!r}: only integers, dimensions, + - * // / and brackets")
    return tree


def _value(node: ast.expr, values: Mapping[str, int]) -> Number:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Name):
        return values[node.id]
    assert isinstance(node, ast.Constant)  # noqa: S101 - `_parsed` lets nothing else through
    return int(node.value)  # type: ignore[arg-type]
