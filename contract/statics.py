"""What the machine code says of one function, for one architecture."""

from contract.base import Model


class FunctionStatics(Model):
    function: str
    architecture: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    code_bytes: int | None = None
