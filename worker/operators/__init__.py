"""The operators by name. Importing this imports neither NumPy, CuPy nor torch."""

from worker.operators.attention import ATTENTION
from worker.operators.base import Operator
from worker.operators.gemm import GEMM

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in (GEMM, ATTENTION)}
