"""Checks of whether what a KernelDef says can be so: by itself, when it is made, and of its op, once that is known.

A name that nothing has would otherwise constrain nothing: a kernel for ``{"TT": ["float32"]}`` would be taken for every dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.version import renamed_word
from graphdock.dtypes import ALL
from graphdock.errors import InvalidArgumentError, did_you_mean

if TYPE_CHECKING:
    from graphdock.contracts.kernel import KernelDef
    from graphdock.contracts.opdef import OpDef

__all__ = ["check_against", "check_by_itself", "unknown_names"]

LAYOUTS = ("contiguous", "strided")
MODES = ("planned", "fresh", "all_or_nothing", "view", "inplace")


def check_by_itself(kernel: KernelDef) -> None:
    """Raise InvalidArgumentError for a value that no op could make right."""
    for field, noun in (
        ("types", "dtype names per type variable"),
        ("attrs", "values per attribute"),
        ("inplace", "input names per output name"),
        ("views", "a ViewRule per output name"),
    ):
        found = getattr(kernel, field)
        if not isinstance(found, Mapping):
            raise _wrong(kernel, field, f"a mapping: {noun}", found)
    for field in ("types", "attrs", "inplace"):
        for name, values in getattr(kernel, field).items():
            if not _several(values):
                raise _wrong(kernel, f"{field}[{name!r}]", "a list", values)
    for field in ("host", "modes"):
        if not _several(getattr(kernel, field)):
            raise _wrong(kernel, field, "a tuple of names", getattr(kernel, field))
    for variable, names in kernel.types.items():
        _each_of(kernel, f"types[{variable!r}]", names, ALL)
    _each_of(kernel, "modes", kernel.modes, MODES)
    _each_of(kernel, "layout", (kernel.layout,), LAYOUTS)
    if not isinstance(kernel.device, str) or kernel.device != kernel.device.lower() or not kernel.device:
        raise _wrong(kernel, "device", "a device type in lower case", kernel.device)


def _several(values: Any) -> bool:
    return isinstance(values, (Sequence, set, frozenset)) and not isinstance(values, (str, bytes))


def _each_of(kernel: KernelDef, field: str, values: Iterable[Any], known: Iterable[str]) -> None:
    for value in values:
        if value not in known:
            raise _wrong(
                kernel, field, "of " + ", ".join(known), value, renamed_word(value) or did_you_mean(str(value), known)
            )


def _wrong(kernel: KernelDef, field: str, expected: str, got: Any, hint: str | None = None) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the kernel for {kernel.op} on {kernel.device} has a wrong {field}",
        expected=expected,
        got=repr(got),
        hint=hint,
    )


def unknown_names(kernel: KernelDef, opdef: OpDef) -> Iterator[str]:
    """Names in the kernel that its op does not have, each with the nearest name that it has."""
    variables = [t.name for t in opdef.types]
    attrs = [a.name for a in opdef.attrs]
    inputs, outputs = [a.name for a in opdef.inputs], [a.name for a in opdef.outputs]
    taken = [name for names in kernel.inplace.values() for name in names]
    for field, names, noun, known in (
        ("types", kernel.types, "type variable", [*variables, *(a.name for a in opdef.attrs if "type" in a.type)]),
        ("attrs", kernel.attrs, "attribute", [*attrs, *variables]),
        ("host", kernel.host, "input or output", [*inputs, *outputs]),
        ("inplace", kernel.inplace, "output", outputs),
        ("inplace", taken, "input", inputs),
        ("views", kernel.views, "output", outputs),
        ("views", [rule.input for rule in kernel.views.values()], "input", inputs),
    ):
        for name in names:
            if name not in known:
                near = did_you_mean(str(name), known)
                end = f"; {near}" if near else f"; it has {', '.join(known)}" if known else ""
                yield f"{field} of kernel {kernel.short_name} names {name!r}, and {opdef.name} has no such {noun}{end}"


def check_against(kernel: KernelDef, opdef: OpDef, owner: str = "") -> None:
    """Raise InvalidArgumentError for the first name that the op does not have.

    Args:
      owner: the plugin that brings the kernel, for the message.
    """
    for text in unknown_names(kernel, opdef):
        raise InvalidArgumentError(f"plugin {owner!r}: {text}" if owner else text)
