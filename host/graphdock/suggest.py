"""The name that was meant by one that nobody knows."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def _is_slip(name: str, known: str) -> bool:
    """Return whether one letter more, less, other or changed with its neighbour makes one of the other."""
    same = len(os.path.commonprefix([name, known]))
    a, b = name[same:], known[same:]
    tail = len(os.path.commonprefix([a[::-1], b[::-1]]))
    a, b = a[: len(a) - tail], b[: len(b) - tail]
    return max(len(a), len(b)) <= 1 or (len(a) == 2 and a == b[::-1])


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The nearest known name as a hint, ``"did you mean 'MatMul'?"``, or None when none is near.

    Near is what one slip of the finger explains, much the same letters, or the same in another case or with other underscores: a
    wrong suggestion is worse than none. A name of more than 100 characters is no slip; comparing takes time that grows with the
    square of its length.
    """
    if len(name) > 100:
        return None
    import difflib  # for mistakes alone

    known = list(known)
    near = [k for k in difflib.get_close_matches(name, known, cutoff=0.6) if _is_slip(name, k)]
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if not near:
        folded = {k.lower().replace("_", ""): k for k in known}
        match = folded.get(name.lower().replace("_", ""))
        near = [match] if match else []
    return f"did you mean {near[0]!r}?" if near else None
