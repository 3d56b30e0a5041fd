"""The rows of a manifest's kernels: one kernel a line, which is parsed when its op is first asked for.

A first session asks for the kernels of a few ops out of hundreds, and its time counts: so the text is only split in lines, and of a
line in the form that ``graphdock opgen manifest`` writes only the op, the device and the module are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdock import dtypes
from graphdock.contracts.kernel import snake_case
from graphdock.contracts.kernel_facts import LAYOUTS
from graphdock.errors import ManifestError, did_you_mean
from graphdock.plugin.manifest_reader import ManifestReader

__all__ = ["HEADER", "KernelRow", "KernelRows"]

#: First line of the rows, and the second.
HEADER = "[kernels]\nrows = [\n"
_USUAL = re.compile(
    r'\{op = "(?P<op>[^"\\]+)", device = "(?P<device>[^"\\]+)"(?:, name = "[^"\\]+")?'
    r'(?:, module = "(?P<module>[^"\\]+)")?(?:, .*)?\},?'
)
_KEYS: dict[str, type] = {
    "op": str,
    "device": str,
    "name": str,
    "module": str,
    "types": dict,
    "attrs": dict,
    "layout": str,
    "priority": int,
    "label": str,
    "deterministic": bool,
}


@dataclass(frozen=True, slots=True)
class KernelRow:
    """What a manifest says of one kernel; fields as of a :class:`graphdock.contracts.KernelDef`.

    Attributes:
      module: where the KernelDef is; None for one that ``register_kernels`` returns itself.
    """

    op: str
    device: str
    name: str = ""
    module: str | None = None
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attrs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    layout: str = "contiguous"
    priority: int = 0
    label: str = ""
    deterministic: bool = True

    @property
    def short_name(self) -> str:
        return self.name or snake_case(self.op)


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    device: str
    module: str | None


class KernelRows:
    """The rows of one manifest.

    Args:
      text: from the line ``[kernels]`` on; empty where there are none. label: names the file in messages.
      offset: how many lines of the file are above the text.

    Raises:
      ManifestError: the text is not rows of a line each; names file and line.
    """

    def __init__(self, text: str, label: str, offset: int) -> None:
        self._label = label
        self._lines: dict[str, list[_Line]] = {}
        self._read: dict[str, tuple[KernelRow, ...]] = {}
        if not text:
            return
        if not text.startswith(HEADER):
            raise ManifestError(
                f"{label}:{offset + 1}: the rows of kernels begin in another way",
                expected=repr(HEADER),
                hint="`graphdock opgen manifest` writes them",
            )
        lines = enumerate(text.splitlines(), offset + 1)
        for number, line in lines:
            line = line.strip()
            if line == "]":
                break
            if line and not line.startswith("#") and number > offset + 2:
                self._add(number, line)
        else:
            raise ManifestError(f"{label}:{number}: the rows of kernels do not end", expected="a line ]")
        for number, line in lines:
            if line.strip():
                raise ManifestError(f"{label}:{number}: there is more behind the rows of kernels", got=line.strip())

    def _add(self, number: int, line: str) -> None:
        usual = _USUAL.fullmatch(line)
        if usual is not None and (usual["module"] or "module" not in line):
            op, device, module = usual.group("op", "device", "module")
        else:
            row = self._parsed(number, line)
            op, device, module = row.op, row.device, row.module
        self._lines.setdefault(op, []).append(_Line(number, line, device, module))

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def ops(self, module: str) -> dict[str, int]:
        """Op -> how many kernels a module has for it."""
        counts = {op: sum(line.module == module for line in lines) for op, lines in self._lines.items()}
        return {op: count for op, count in counts.items() if count}

    def modules(self) -> set[str | None]:
        """The modules that rows name; None is among them where a row names none."""
        return {line.module for lines in self._lines.values() for line in lines}

    def devices(self, module: str | None = None) -> set[str]:
        """The device types that kernels are for: those of a module, or all."""
        return {line.device for lines in self._lines.values() for line in lines if module in (None, line.module)}

    def of(self, op: str) -> tuple[KernelRow, ...]:
        """The rows of an op. Raises ManifestError for a bad one; names file, line and key."""
        found = self._read.get(op)
        if found is None:
            rows = tuple(self._parsed(line.number, line.text) for line in self._lines.get(op, ()))
            found = self._read[op] = rows
        return found

    def __iter__(self) -> Iterator[KernelRow]:
        """Every row, by op. Raises ManifestError."""
        for op in self._lines:
            yield from self.of(op)

    def _parsed(self, number: int, line: str) -> KernelRow:
        reader = ManifestReader(f"kernels = {line.removesuffix(',')}", self._label, number - 1)
        path = ("kernels",)
        row = reader.table(reader.root["kernels"], path, _KEYS, ("op", "device"))
        for kind in ("types", "attrs"):
            for name, values in row.get(kind, {}).items():
                if not isinstance(values, list):
                    raise reader.fail((*path, kind), f"{kind}.{name} must be an array", got=repr(values))
                row[kind][name] = tuple([tuple(v) if isinstance(v, list) else v for v in values])
        for variable, names in row.get("types", {}).items():
            for name in names:
                if name not in dtypes.ALL:
                    raise reader.fail(
                        (*path, "types"),
                        f"types.{variable} holds {name!r}, which is no dtype",
                        hint=did_you_mean(str(name), dtypes.ALL),
                    )
        if row.get("layout", LAYOUTS[0]) not in LAYOUTS:
            raise reader.fail(
                (*path, "layout"),
                f"there is no layout {row['layout']!r}",
                expected="one of " + ", ".join(LAYOUTS),
                hint=did_you_mean(row["layout"], LAYOUTS),
            )
        return KernelRow(**row)
