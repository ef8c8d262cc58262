"""The base of every model: unknown fields are errors, instances are immutable."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# What a database and JSON can hold.
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
