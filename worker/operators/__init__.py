"""The operators by name, and the one that a suite brings. Importing this imports neither NumPy, CuPy nor torch."""

from functools import lru_cache
from typing import cast

from contract.layout import Dtype, TensorSpec
from contract.suite import Case, Suite
from worker.operators.attention import ATTENTION
from worker.operators.base import Operator
from worker.operators.gemm import GEMM
from worker.operators.own import OwnOperator

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in (GEMM, ATTENTION)}


@lru_cache(maxsize=64)
def operator_of(name: str, source: str | None) -> Operator:
    """`source`: of an operator that ships with a suite instead of with this program. None of it is run yet."""
    return OPERATORS[name] if source is None else OwnOperator(name, source)


def operator_of_suite(suite: Suite) -> Operator:
    return operator_of(suite.operator, suite.operator_source)


def tensors_of(suite: Suite, case: Case) -> tuple[TensorSpec, ...]:
    """Told from what the suite says: nothing of an operator of its own is run."""
    return operator_of_suite(suite).tensors(case.dims, cast("Dtype", suite.dtype))
