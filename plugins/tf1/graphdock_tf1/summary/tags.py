"""Names of summaries: the scope of an operation, and the tag that TensorBoard shows."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError

_log = logging.getLogger("graphdock")
_ILLEGAL = re.compile(r"[^-/\w\.]")


def clean_tag(name: str | None) -> str | None:
    """The name with ``_`` for every character that no operation's name may have, and without slashes at its beginning."""
    if name is None:
        return None
    cleaned = _ILLEGAL.sub("_", name).lstrip("/")
    if cleaned != name:
        _log.info("summary name %s is illegal; using %s instead", name, cleaned)
    return cleaned


@contextlib.contextmanager
def summary_scope(name: str, family: str | None, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The scope of a summary's operations; yields its tag and the scope.

    The tag is the operation's name, other scopes around it included; with a family, which is a tab of TensorBoard, that begins it
    once more.

    Raises:
      InvalidArgumentError: there is no name.
    """
    name_, family = clean_tag(name), clean_tag(family)
    if name_ is None:
        raise InvalidArgumentError("a summary needs a name", expected="a string", got="None")
    with _tf.name_scope(name_ if family is None else f"{family}/{name_}", None, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def collect(summary: Any, collections: Sequence[Any] | None, default: Sequence[Any]) -> None:
    """Add a summary to its collections: ``default`` where none are named."""
    for key in default if collections is None else collections:
        _tf.add_to_collection(key, summary)
