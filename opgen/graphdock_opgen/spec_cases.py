"""From the specs of op libraries to the data of conformance cases: what their ``tests:`` say, and what follows from the OpDefs."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from graphdock.contracts.cache import cache_dir, read_cache, write_cache
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import ALL
from graphdock.errors import NotFoundError, OpSpecError, UnknownOpError

from graphdock_opgen import names, reader
from graphdock_opgen.names import op_type
from graphdock_opgen.reader import read

__all__ = ["spec_cases"]

_TENSOR_TYPES = ("type", "list(type)")


def spec_cases(package: str, opdef: Callable[[str], OpDef]) -> dict[str, Mapping[str, Any]]:
    """Op type -> what the package's specs say of its conformance, in the order of files and entries.

    A file is read once per process, and again when it changes. The data of an op, all keys present:
      samples      tuple of dicts: ``inputs`` (input name -> tensor; a tuple of tensors for a list argument, None for an
                   absent optional one), ``attrs`` (given attributes, and type variables that no input binds), ``types``
                   (type variable -> dtype name, or tuple of them, that this sample is about; others are free), ``note``.
                   A tensor is a dict: ``shape`` (random elements) or ``value`` (a literal), and maybe ``low``, ``high``,
                   ``dtype``.
      errors       the same with ``match``: a regular expression to be found in the message of the error that building or
                   running must raise, and ``error``: the name of its class, or nothing.
      types        type variable -> tuple of dtype names it may stand for.
      args         input name -> its dtype or type variable.
      tolerances   dtype name -> {"rtol": x, "atol": y}.
      gradcheck    names of the inputs whose gradient is compared with central differences in float64.
      gradcheck_options  ``eps``, ``rtol``, ``atol`` where the spec sets them.
      reference    "module:function" of the oracle, or None.

    Args:
      package: dotted name of the package whose folder ``specs`` has the files. opdef: op type -> its OpDef.

    Raises:
      NotFoundError: the package has no specs. OpSpecError: one of them can't be read, or has an op that ``opdef`` does not know.
    """
    folder = Path(importlib.import_module(package).__path__[0]) / "specs"
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise NotFoundError(
            f"the specs of {package} should lie in {folder}, and there is no *.yaml",
            hint="a wheel of an op library ships them: conformance reads their samples",
        )
    found: dict[str, Mapping[str, Any]] = {}
    for path in paths:
        for name, (entry, (line, column)) in _entries(path, path.stat().st_mtime_ns).items():
            try:
                found[name] = _case(opdef(name), entry)
            except UnknownOpError as error:
                message = f"{name} is not among the ops of {package}"
                hint = "run `graphdock opgen generate`"
                raise OpSpecError(message, file=str(path), line=line, column=column, hint=hint) from error
    return found


@lru_cache(maxsize=512)
def _entries(path: Path, changed: int) -> Mapping[str, tuple[Mapping[str, Any], tuple[int, int]]]:
    """Op type -> its entry in a file of a modification time, lists as tuples; and the line and column of its name.

    What was read is kept as JSON under the text and this reader's own: parsing YAML is most of a conformance run's start.
    """
    try:
        text = path.read_bytes()
    except OSError:
        text = b""  # the reader says why
    kept = cache_dir() / "specs" / f"{sha256(_reader_digest() + text).hexdigest()}.json"
    if (data := read_cache(kept)) is None:
        document = read(path)
        namespace = document.data["namespace"]
        data = json.dumps(
            [
                (op_type(namespace, entry["name"]), entry, document.position(("ops", i, "name")))
                for i, entry in enumerate(document.data["ops"])
            ]
        ).encode()
        write_cache(kept, data)
    return {name: (_frozen(entry), tuple(position)) for name, entry, position in json.loads(data)}


@lru_cache(maxsize=1)
def _reader_digest() -> bytes:
    return b"".join(sha256(Path(str(module.__file__)).read_bytes()).digest() for module in (reader, names))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(v) for key, v in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _case(opdef: OpDef, entry: Mapping[str, Any]) -> dict[str, Any]:
    tests = entry.get("tests") or {}
    check = tests.get("gradcheck", True)
    options = dict(check) if isinstance(check, Mapping) else {}
    inputs = options.pop("inputs", () if check is False else None)
    return {
        "samples": tuple(_sample(opdef, s) for s in tests.get("samples", ())),
        "errors": tuple(
            {**_sample(opdef, s), "match": s["match"], "error": s.get("error", "")}
            for s in tests.get("error_samples", ())
        ),
        "types": {t.name: t.allow or tuple(ALL) for t in opdef.types},
        "args": {a.name: a.dtype for a in opdef.inputs},
        "tolerances": {
            dtype: {"rtol": float(t.get("rtol", 0)), "atol": float(t.get("atol", 0))}
            for dtype, t in tests.get("tolerances", {}).items()
        },
        "gradcheck": _differentiable(opdef) if inputs is None else inputs,
        "gradcheck_options": options,
        "reference": opdef.reference,
    }


def _sample(opdef: OpDef, sample: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "inputs": {a.name: sample[a.name] for a in opdef.inputs if a.name in sample},
        "attrs": dict(sample.get("attrs") or {}),
        "types": dict(sample.get("types") or {}),
        "note": sample.get("note", ""),
    }


def _differentiable(opdef: OpDef) -> tuple[str, ...]:
    """The inputs that have a gradient and may be as wide as differences need them."""
    dtypes = {t.name: t.allow or tuple(ALL) for t in opdef.types}
    dtypes |= {a.name: tuple(ALL) for a in opdef.attrs if a.type in _TENSOR_TYPES}
    able = (n for n, kind in opdef.gradient_kinds.items() if kind in ("formula", "op", "fn"))
    by_name = {a.name: a.dtype for a in opdef.inputs}
    return tuple(n for n in able if {"float64", "complex128"} & set(dtypes.get(by_name[n], (by_name[n],))))
