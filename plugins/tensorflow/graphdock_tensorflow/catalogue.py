"""The public names of TensorFlow 1.15's core API: which are here, which will be, and which will not, with the reason.

``names.tsv`` has a line per name: the name below ``tf``, and ``here`` or the group that says why not. ``groups.toml`` has the
groups, and the names that TensorFlow dropped before 1.0 with those of today. Names are facts; keras, lite, tpu, raw_ops and contrib
are no part of the core; what there is of contrib say the plugins that publish it.

Threads: read-only after the first use.
"""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import graphdock

__all__ = ["Entry", "Status", "catalogue", "counts", "entry", "hint", "renamed"]

_FOLDER = Path(__file__).parent
#: Where a name stands: ``renamed`` ones are older than TensorFlow 1.0.
Status: TypeAlias = Literal["here", "planned", "refused", "renamed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One public name.

    Attributes:
      name: below ``tf``, such as ``"nn.conv2d"``.
      status: whether it is here.
      group: what it belongs to, of those that are not; empty for those that are.
      why: the reason, or when; one sentence.
      instead: what to write today; None where there is nothing.
    """

    name: str
    status: Status
    group: str = ""
    why: str = ""
    instead: str | None = None


@functools.cache
def _groups() -> Mapping[str, Mapping[str, str]]:
    with (_FOLDER / "groups.toml").open("rb") as file:
        found: Mapping[str, Mapping[str, str]] = tomllib.load(file)
    return found


def renamed() -> Mapping[str, str]:
    """Name of before TensorFlow 1.0 -> today's."""
    return _groups()["renamed"]


@functools.cache
def catalogue() -> Mapping[str, Entry]:
    """Name -> entry, in the order of the alphabet."""
    found = {}
    for line in (_FOLDER / "names.tsv").read_text(encoding="utf-8").splitlines():
        name, group = line.split("\t")
        if group == "here":
            found[name] = Entry(name, "here")
        else:
            about = _groups()[group]
            status: Status = "planned" if about["status"] == "planned" else "refused"
            instead = _groups()["instead"].get(name, about.get("instead"))
            found[name] = Entry(name, status, group, about["why"], instead)
    return found


def entry(name: str) -> Entry | None:
    """Return what is known of a name below ``tf``; None for one that TensorFlow 1 does not have.

    A namespace (``summary``) is answered for by its names, where they all stand alike.
    """
    known = catalogue()
    if name in known:
        return known[name]
    if name.partition(".")[0] == "contrib":
        return _published(name)
    if name in renamed():
        return Entry(name, "renamed", "renamed", "TensorFlow renamed it before 1.0", f"tf.{renamed()[name]}")
    later = _groups()["of_tensorflow_2"].get(name) or _groups()["of_tensorflow_2"].get(name.partition(".")[0])
    if later is not None:
        return Entry(name, "refused", "of_tensorflow_2", "it is TensorFlow 2's", later)
    inner = {(e.status, e.group, e.why, e.instead) for n, e in known.items() if n.startswith(name + ".")}
    about = _groups().get(name)
    if len(inner) == 1:
        return Entry(name, *inner.pop())
    if not inner and about is not None:
        return Entry(name, "refused", name, about["why"], about.get("instead"))
    return None


def _published(name: str) -> Entry:
    """Return what is known of a name of contrib, no part of the core: it is here where a plugin publishes it."""
    parts = name.split(".")
    here = _depth(parts)
    if here == len(parts):
        return Entry(name, "here")
    about = _groups()[parts[0]]
    package = ".".join(parts[:2])
    if here >= 2:
        return Entry(
            name,
            "refused",
            parts[0],
            f"of {package} only what people use is here",
            f"dir(tf.{package}) lists what there is",
        )
    return Entry(name, "refused", parts[0], about["why"], about.get("instead"))


def _depth(parts: Sequence[str]) -> int:
    """Return how many parts of a dotted name there are below ``tf``, asking for none that is not: that would ask for a hint."""
    space: Any = graphdock
    for depth, part in enumerate(parts):
        space = getattr(space, parts[depth - 1]) if depth else space
        if part not in dir(space):
            return depth
    return len(parts)


def hint(name: str) -> str | None:
    """Return what an error says of a name that TensorFlow 1 has and graphdock has not; None where there is nothing to say."""
    found = entry(name)
    if found is None or found.status == "here":
        return None
    if found.status == "renamed":
        return f"use {found.instead}"
    when = "not yet" if found.status == "planned" else "not"
    return f"it is {when} here: {found.why}" + (f"; {found.instead}" if found.instead else "")


def counts() -> Mapping[Status, int]:
    """Return how many names stand where."""
    return Counter(e.status for e in catalogue().values())
