"""What an operator's dimensions and element types are called. What it computes lives in worker/operators, or in the
operator.py that a kernel's folder brings."""

from contract.base import Model


class OperatorSchema(Model):
    """Dimensions in the order in which a case's id names them; flags are dimensions of value 0 or 1."""

    name: str
    dims: tuple[str, ...]
    flags: tuple[str, ...] = ()
    dtypes: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.dims + self.flags


OPERATORS: dict[str, OperatorSchema] = {
    schema.name: schema
    for schema in (
        OperatorSchema(name="gemm", dims=("m", "n", "k"), dtypes=("fp16", "fp32")),
        OperatorSchema(
            name="attention",
            dims=("batch", "heads", "kv_heads", "seqlen", "head_dim"),
            flags=("causal",),
            dtypes=("fp16",),
        ),
    )
}
