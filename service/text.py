"""What reports bring, made fit for databases and pages."""

import math
from typing import Any

from contract.text import clean


def clean_json(value: Any) -> Any:
    """The same for every string inside; numbers that JSON can't say (NaN, infinities) become None."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(each) for each in value]
    return value
