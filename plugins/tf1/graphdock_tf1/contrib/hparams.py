"""``tf.contrib.training.HParams``: named values of an experiment, with a type each, read from texts (``"a=0.1,b=[8,4]"``)."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.errors import UnimplementedError

_NAME = re.compile(r"\s*([A-Za-z][\w.]*)\s*(?:\[\s*(\d+)\s*\])?\s*=\s*")
_TRUE, _FALSE = ("true",), ("false",)


class HParams:
    """Values that are attributes, each of the type of its first value: ``HParams(rate=0.1, sizes=[8, 4]).rate``.

    Args:
      hparam_def: refused. model_structure: any object, kept. kwargs: name -> value, or a list of values of one type.

    Raises:
      ValueError: a list is empty, or a name is one of this class's own.
    """

    _hparam_types: dict[str, tuple[type, bool]]
    _model_structure: Any

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise UnimplementedError("HParams of an HParamDef are not here", hint="HParams(**values)")
        self._hparam_types = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a value, whose type is that of later ones.

        Raises:
          ValueError: the name is there already or one of this class's own; a list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        several = isinstance(value, (list, tuple))
        if several and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0]) if several else type(value), several)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Change a value.

        Raises:
          KeyError: there is none of that name. ValueError: it is of another type, or a list where one value was, or one for a list.
        """
        kind, several = self._hparam_types[name]
        if isinstance(value, list):
            if not several:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
        else:
            if several:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Remove a value; nothing where there is none."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Change values as a text says: ``"name=value,list=[1,2],list[0]=3"``; returns this.

        Raises:
          ValueError: the text is malformed, names a value twice or one that is not here, or has a value of another type.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        found = parse_values(values, kinds)
        for name, value in found.items():
            if isinstance(value, dict):  # places of a list
                changed = list(getattr(self, name)) if self._hparam_types[name][1] else []
                for index, each in value.items():
                    if index >= len(changed):
                        raise ValueError(f"{name}[{index}] is no place of a list of {len(changed)} values")
                    changed[index] = each
                found[name] = changed
        return self.override_from_dict(found)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """:meth:`set_hparam` of each; returns this. Errors as there."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """:meth:`override_from_dict` of a JSON object. Raises ValueError: it is none; and as there."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(
        self,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """The values as JSON, without functions; arguments as of ``json.dumps``."""
        return json.dumps(_plain(self.values()), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Name -> value."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A value; ``default`` where there is none of that name.

        Raises:
          ValueError: the default is of another type than the value.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, several = self._hparam_types[key]
            shown = f"list<{kind}>" if several else str(kind)
            wrong = ValueError(f"Hparam '{key}' of type '{shown}' is incompatible with default={default}")
            if several != isinstance(default, list):
                raise wrong
            try:
                for each in default if several else [default]:
                    _cast(key, kind, each)
            except ValueError as error:
                raise wrong from error
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keep an object that says how the model is built."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The object that was kept."""
        return self._model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def _plain(value: Any) -> Any:
    """A structure of dicts and lists without functions."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if not callable(each)}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value if not callable(each)]
    return value


def _cast(name: str, kind: type, value: Any) -> Any:
    """A value as one of a type. A bool is no number here, a float no integer, and a text nothing else.

    Raises:
      ValueError: it can't be.
    """
    if kind is type(None):
        return value
    fits = (
        (not issubclass(kind, (str, bytes)) or isinstance(value, (str, bytes)))
        and issubclass(kind, bool) == isinstance(value, bool)
        and (not issubclass(kind, numbers.Integral) or isinstance(value, numbers.Integral))
        and (not issubclass(kind, numbers.Number) or isinstance(value, numbers.Number))
    )
    if not fits:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


def parse_values(
    values: str, type_map: Mapping[str, Callable[[str], Any]], ignore_unknown: bool = False
) -> dict[str, Any]:
    """The values that a text gives to names: ``"a=1,b=[x,y],c[2]=0.5"``.

    Args:
      values: assignments with commas between them; a list stands in brackets; spaces and line ends between mean nothing.
      type_map: name -> type.
      ignore_unknown: leave names out that have no type.

    Returns:
      Name -> value, list of values, or index -> value.

    Raises:
      ValueError: it is malformed, has a name twice or one that has no type, or a value that does not read as one of its type.
    """
    found: dict[str, Any] = {}
    place = 0
    while place < len(values):
        start = _NAME.match(values, place)
        if start is None:
            raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
        name, index = start.groups()
        listed = values.startswith("[", start.end())
        end = values.find("]" if listed else ",", start.end())
        if end < 0 and listed:
            raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
        end = len(values) if end < 0 else end
        text = values[start.end() + listed : end]
        if not listed and "[" in text:
            raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
        rest = values[end + listed :].lstrip()
        if rest and not rest.startswith(","):
            raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
        place = len(values) - len(rest[1:].lstrip()) if rest else len(values)
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        if index is not None:
            if listed:
                raise ValueError(f"Assignment of a list to a list index: {name}[{index}]=[{text}]")
            places = found.setdefault(name, {})
            if not isinstance(places, dict) or int(index) in places:
                raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
            places[int(index)] = _read(name, kind, text, values)
        elif name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        elif listed:
            found[name] = [_read(name, kind, each, values) for each in re.split(r"[ ,]+", text.strip()) if each]
        else:
            found[name] = _read(name, kind, text.strip(), values)
    return found


def _read(name: str, kind: Callable[[str], Any], text: str, values: str) -> Any:
    """A text as a value of a type. Raises ValueError: it is none."""
    try:
        if kind is bool:
            low = text.lower()
            return True if low in _TRUE else False if low in _FALSE else bool(int(text))
        return kind(text)
    except ValueError as error:
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind}' with value '{text}' in {values}") from error
