"""The rows of a manifest's kernels: one kernel a line, which is parsed when its op is first asked for.

A first session asks for the kernels of a few ops out of hundreds, and its time counts: so the text is only split in lines, and of a
line in the form that ``graphdock opgen manifest`` writes only the op, the device and the module are taken. What follows them is the
same in most lines, and is parsed once for all of these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from graphdock import dtypes
from graphdock.contracts.kernel_facts import LAYOUTS
from graphdock.contracts.lazy_dataclass import changed, lazy_dataclass
from graphdock.errors import ManifestError, did_you_mean
from graphdock.plugin.toml_text import Key, ManifestReader

#: First line of the rows, and the second.
HEADER = "[kernels]\nrows = [\n"
_TEXT = r'"([^"\\\x00-\x1f\x7f]+)"'
_USUAL = re.compile(rf"\{{op = {_TEXT}, device = {_TEXT}(?:, name = {_TEXT})?(?:, module = {_TEXT})?((?:, .*)?)\}},?")


_KEYS = {
    "op": Key(str, True),
    "device": Key(str, True),
    "name": Key(str),
    "module": Key(str),
    "types": Key(dict),
    "attrs": Key(dict),
    "layout": Key(str, False, LAYOUTS.__contains__, "there is no layout {!r}", "one of " + ", ".join(LAYOUTS), LAYOUTS),
    "priority": Key(int),
    "label": Key(str),
    "deterministic": Key(bool),
}


@lazy_dataclass(frozen=True, slots=True)
class KernelRow:
    """Row of a manifest about one kernel; fields as of a :class:`graphdock.contracts.KernelDef`.

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
        if self.name:
            return self.name
        from graphdock.contracts.kernel import snake_case  # a listing needs no kernel's contract

        return snake_case(self.op)


#: A row that is not parsed yet: its line's number and text, and the match of the usual form, None where it has another.
_Line: TypeAlias = tuple[int, str, re.Match[str] | None]


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
        self._modules: dict[str | None, dict[tuple[str, str], int]] = {}
        self._read: dict[str, tuple[KernelRow, ...]] = {}
        self._facts: dict[str, KernelRow] = {}
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

    def _add(self, number: int, text: str) -> None:
        usual = _USUAL.fullmatch(text)
        if usual is not None and (usual[4] or "module" not in text):
            op, device, module = usual.group(1, 2, 4)
        else:
            usual, row = None, self._parsed(number, text)
            op, device, module = row.op, row.device, row.module
        self._lines.setdefault(op, []).append((number, text, usual))
        counts = self._modules.setdefault(module, {})
        counts[op, device] = counts.get((op, device), 0) + 1

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def ops(self, module: str) -> dict[str, int]:
        """Op -> how many kernels a module has for it."""
        counts: Counter[str] = Counter()
        for (op, _), count in self._modules.get(module, {}).items():
            counts[op] += count
        return counts

    def modules(self) -> set[str | None]:
        """The modules that rows name; None is among them where a row names none."""
        return set(self._modules)

    def devices(self, module: str | None = None) -> set[str]:
        """The device types that kernels are for: those of a module, or all."""
        chosen = self._modules.values() if module is None else [self._modules.get(module, {})]
        return {device for counts in chosen for _, device in counts}

    def of(self, op: str) -> tuple[KernelRow, ...]:
        """The rows of an op. Raises ManifestError for a bad one; names file, line and key."""
        found = self._read.get(op)
        if found is None:
            rows = tuple([self._row(line) for line in self._lines.get(op, ())])
            found = self._read[op] = rows
        return found

    def __iter__(self) -> Iterator[KernelRow]:
        """Every row, by op. Raises ManifestError."""
        for op in self._lines:
            yield from self.of(op)

    def check(self) -> None:
        """Raise ManifestError for a bad row, as reading every one would."""
        for lines in self._lines.values():
            for line in lines:
                if line[2] is None or line[2][5] not in self._facts:
                    self._row(line)

    def _row(self, line: _Line) -> KernelRow:
        number, text, usual = line
        if usual is None:
            return self._parsed(number, text)
        op, device, name, module, more = usual.groups()
        facts = self._facts.get(more)
        row = self._parsed(number, text) if facts is None else facts
        here = changed(row, op=op, device=device, name=name or "", module=module)
        if facts is None and row == here:
            self._facts[more] = row
        return row if facts is None else here

    def _parsed(self, number: int, line: str) -> KernelRow:
        reader = ManifestReader(f"kernels = {line.removesuffix(',')}", self._label, number - 1)
        path = ("kernels",)
        row = reader.table(reader.root["kernels"], path, _KEYS)
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
        return KernelRow(**row)
