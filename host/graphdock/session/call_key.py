"""Key of a call of ``run``: a hashable form of its fetches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["call_key"]


def call_key(fetches: Any) -> Any:
    """A hashable key of a fetch structure: what ``run`` looks up at once, unless it is nested or a namedtuple."""
    if type(fetches) in (list, tuple) and not any(isinstance(f, (list, tuple, Mapping)) for f in fetches):
        return type(fetches), *fetches
    return _frozen(fetches)


def _frozen(fetches: Any) -> Any:
    """A hashable form of a fetch structure."""
    if isinstance(fetches, (list, tuple)):
        return type(fetches), tuple([_frozen(f) for f in fetches])
    if isinstance(fetches, Mapping):
        return type(fetches), tuple([(k, _frozen(v)) for k, v in fetches.items()])
    return fetches
