"""RMSNorm, one program a row.

Notes: the block is the row, rounded up to a power of two. What the sum of squares was made of is still in registers
when its root is known, so that each element crosses memory once in and once out. A row has to fit: 16384 columns are
128 a thread.
"""

import triton
import triton.language as tl

EPSILON = 1e-5


@triton.jit
def normalise(x, weight, y, columns, epsilon, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / columns + epsilon)
    weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + at, (values * scale * weights).to(y.dtype.element_ty), mask=inside)


def run(inputs, outputs, params, workspace):
    """inputs: x (rows, columns), weight (columns,); outputs: y like x."""
    x, weight = inputs
    (y,) = outputs
    block = triton.next_power_of_2(params["columns"])
    normalise[(params["rows"],)](x, weight, y, params["columns"], EPSILON, block=block, num_warps=4)
