"""Errors as plain data, on their way from task to task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdock import errors
from graphdock.errors import format_error

__all__ = ["failure_of", "raised"]

_FIELDS = ("site", "expected", "got", "hint")


def failure_of(error: BaseException, task: str = "") -> dict[str, Any]:
    """An error as plain data.

    Args:
      task: where it was raised, to be noted.
    """
    notes = list(getattr(error, "__notes__", ()))
    if task and not any(note.startswith("raised on /job:") for note in notes):
        notes.append(f"raised on {task}")
    if not isinstance(error, errors.GraphdockError):
        return {"kind": "UnknownError", "message": f"{type(error).__name__}: {error}", "notes": notes}
    op = error.op if isinstance(error.op, (str, type(None))) else error.op.name
    said: dict[str, Any] = {"kind": _kind(error), "message": str(error.message), "op": op, "notes": notes}
    said.update({name: getattr(error, name) for name in _FIELDS if getattr(error, name, None) is not None})
    return said


def raised(failure: Mapping[str, Any]) -> errors.GraphdockError:
    """The error of its plain data; what is no such data is an InternalError that shows it."""
    kind = getattr(errors, str(failure.get("kind", "")), None)
    if not (isinstance(kind, type) and issubclass(kind, errors.GraphdockError)):
        return errors.InternalError(f"a task answered an error of no known kind: {format_error(Exception(failure))}")
    error: errors.GraphdockError = kind(str(failure.get("message", "")))
    for name in ("op", *_FIELDS):
        if failure.get(name) is not None:
            setattr(error, name, str(failure[name]))
    for note in failure.get("notes", ()):
        error.add_note(str(note))
    return error


def _kind(error: errors.GraphdockError) -> str:
    """Name of the class, or of the nearest base that every task knows."""
    for kind in type(error).__mro__:
        if getattr(errors, kind.__name__, None) is kind:
            return str(kind.__name__)
    return "UnknownError"
