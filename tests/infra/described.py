"""A model's fields as the documentation's tables write them: name, type, default."""

import re
import types
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

Row = tuple[str, str, str]


def rows_of(model: type[BaseModel]) -> list[Row]:
    return [(name, type_words(field.annotation), default_words(field)) for name, field in model.model_fields.items()]


def type_words(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_words(arguments[0])
    if origin in {Union, types.UnionType}:
        return type_words(next(argument for argument in arguments if argument is not type(None)))
    if origin is Literal:
        *most, last = [f"`{value}`" for value in arguments]
        return f"{', '.join(most)} or {last}" if most else last
    if origin is tuple:
        return f"list of {type_words(arguments[0])}"
    if origin is dict:
        return f"table of {type_words(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return re.sub(r"(?<!^)(?=[A-Z])", " ", annotation.__name__).lower()
    words: dict[Any, str] = {str: "text", int: "integer", float: "number", bool: "yes or no"}
    return (words | {Path: "path", SecretStr: "secret"})[annotation]


def default_words(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "its defaults" if type(value).model_fields and any(value.model_dump().values()) else "empty"
    if value in ((), {}, ""):
        return "empty"
    assert value is not PydanticUndefined
    return ", ".join(f"`{each}`" for each in value) if isinstance(value, tuple) else str(value)


def tables_by_heading(markdown: str) -> dict[str, list[list[str]]]:
    """The rows of the tables below each heading, cells stripped, without header and rule."""
    found: dict[str, list[list[str]]] = {}
    heading, in_code, seen = "", False, 0
    for line in markdown.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code and line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif not in_code and line.startswith("|"):
            seen += 1
            if seen > 2:
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                found.setdefault(heading, []).append(cells)
            continue
        seen = 0
    return found


def code_blocks(markdown: str, language: str) -> list[str]:
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", markdown, flags=re.DOTALL | re.MULTILINE)
