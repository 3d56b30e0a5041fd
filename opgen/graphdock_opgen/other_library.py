"""A library whose ops and names a package's specs may use besides its own: the host's, and std's for third parties."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphdock_opgen.op import Op
from graphdock_opgen.public_names import PublicNames, read_names

__all__ = ["AllOps", "OtherLibrary"]


@dataclass(frozen=True, slots=True)
class OtherLibrary:
    """Names of another library that a package's specs can use.

    Attributes:
      names: what its people write by hand. endpoints: public names of its wrappers.
      types: its op types.
      ops: the ops themselves, of which most packages name none; asked for the first time, they may read its specs.
    """

    package: str
    names: PublicNames
    endpoints: tuple[str, ...]
    types: tuple[str, ...]
    ops: Callable[[], Mapping[str, Op]]

    @classmethod
    def written(cls, package: str, directory: Path, ops: Mapping[str, Op]) -> OtherLibrary:
        """As its specs say, which have been read."""
        endpoints = tuple(e.name for op in ops.values() for e in op.spec.api.endpoints)
        return cls(package, _names(directory), endpoints, tuple(ops), lambda: ops)

    @classmethod
    def generated(
        cls, package: str, directory: Path, read: Callable[[str, Path], Mapping[str, Op]]
    ) -> OtherLibrary | None:
        """As it was generated, which takes a hundredth of the time; None where it was not."""
        try:
            types = importlib.import_module(f"{package}._gen.opdefs").OPS
            endpoints = importlib.import_module(f"{package}._gen.endpoints").ENDPOINTS
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(f"{package}._gen"):
                raise
            return None
        return cls(package, _names(directory), tuple(endpoints), tuple(types), lambda: read(package, directory))


class AllOps(Mapping[str, Op]):
    """Op type -> Op, of a package's own and of the other libraries'."""

    def __init__(self, own: Mapping[str, Op], others: Iterable[OtherLibrary]) -> None:
        self._own = own
        self._others = tuple(others)
        self._types = dict.fromkeys([*(name for other in self._others for name in other.types), *own])

    def __getitem__(self, name: str) -> Op:
        if name in self._own:
            return self._own[name]
        for other in self._others:
            if name in other.types:
                return other.ops()[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def _names(directory: Path) -> PublicNames:
    """A fault in another package's tables is shown when that package is generated."""
    return read_names(directory, report=lambda error: None)
