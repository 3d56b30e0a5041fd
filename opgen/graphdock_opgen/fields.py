"""Fields of the blocks of an OpDef file: their base, and kinds of values with their messages and their JSON Schema."""

from __future__ import annotations

import keyword
from typing import Annotated, Any

from graphdock.errors import did_you_mean
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from graphdock_opgen.names import LONGEST, is_name

__all__ = ["ONE_OR_MANY", "Name", "Number", "Spec", "choice", "enum", "kind_of", "one_or_many"]


class Spec(BaseModel):
    """Base of every block: frozen, and an unknown key is an error that names the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise PydanticCustomError("not_mapping", f"expected a mapping, got {kind_of(data)}")
        known = [f.alias or name for name, f in cls.model_fields.items()]
        for key in data:
            if key not in known:
                raise PydanticCustomError(
                    "unknown_key",
                    f"unknown key {key!r}",
                    {"key": key, "hint": did_you_mean(key, known), "known": ", ".join(known)},
                )
        return data


def kind_of(value: Any) -> str:
    """Return what a value of a file is, for messages."""
    return {
        dict: "a mapping",
        list: "a list",
        str: "a string",
        bool: "a bool",
        int: "an integer",
        float: "a number",
    }.get(type(value), "nothing" if value is None else type(value).__name__)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number", f"expected a number, got {kind_of(value)}")
    return value


def choice(*values: str) -> BeforeValidator:
    """A check that a value is one of ``values``; the nearest is suggested."""

    def check(value: Any) -> Any:
        if value not in values:
            raise PydanticCustomError(
                "choice",
                f"expected one of {', '.join(values)}; got {value!r}",
                {"hint": did_you_mean(str(value), values)},
            )
        return value

    return BeforeValidator(check)


def enum(values: tuple[str, ...]) -> WithJsonSchema:
    """One of ``values``, as the JSON Schema shows it."""
    return WithJsonSchema({"enum": list(values)})


def _identifier(value: Any) -> Any:
    if isinstance(value, str) and keyword.iskeyword(value):
        raise PydanticCustomError("identifier", f"{value!r} is a Python keyword", {"hint": f"call it {value}_"})
    if not is_name(value):
        raise PydanticCustomError(
            "identifier",
            f"expected a letter, then letters, digits and underscores, {LONGEST} at most; got {value!r}",
        )
    return value


Name = Annotated[str, BeforeValidator(_identifier)]
Number = Annotated[Any, BeforeValidator(_number), WithJsonSchema({"type": "number"})]

#: One string or a list of them, as the JSON Schema shows it.
ONE_OR_MANY = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})


def one_or_many(value: Any) -> Any:
    """A string as the list of it."""
    return [value] if isinstance(value, str) else value
