"""``tf.flags``: options of a script, which modules define and ``FLAGS`` reads from the command line.

The command line is read as by TensorFlow: ``--name=value``, ``--name value``, ``--name`` and ``--noname`` for booleans, one dash or
two, ``--`` before what is no option. An option that nobody defined is left alone, so that a script runs under a notebook or a test
runner.

Threads: define and parse in one thread; reading is safe from any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.errors import AlreadyExistsError, InvalidArgumentError, did_you_mean

_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")


@dataclass
class _Flag:
    """One option: how its text is read, and its value so far. ``multi``: each use adds one more value to a list."""

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any
    multi: bool = False
    boolean: bool = False
    required: bool = False
    value: Any = field(init=False)
    given: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.value = self.default

    def take(self, text: str) -> None:
        """Read one use on the command line.

        Raises:
          InvalidArgumentError: the text does not read as a value of the option's kind.
        """
        try:
            one = self.read(text)
        except ValueError as error:
            raise InvalidArgumentError(f"flag --{self.name}={text}: {error}") from error
        self.value = (self.value if self.given else []) + [one] if self.multi else one
        self.given = True


class FlagValues:
    """The options that were defined and their values: ``FLAGS.name``. The first read reads ``sys.argv``, unless ``FLAGS(argv)`` or
    ``tf.app.run`` has read the command line before; ``FLAGS.name = value`` changes a value."""

    def __init__(self) -> None:
        self.__dict__.update(_flags={}, _parsed=False)

    def __call__(self, argv: Sequence[str]) -> list[str]:
        """Read a command line, whose first word is the program's name; returns the words that are no defined option.

        Raises:
          InvalidArgumentError: a value does not fit its option, or is missing; a required option is not given.
        """
        self.__dict__["_parsed"] = True
        words = list(argv)
        left = words[:1]
        rest = iter(words[1:])
        for word in rest:
            if word == "--":
                left += rest
            elif not self._take(word, rest):
                left.append(word)
        missing = [f"--{flag.name}" for flag in self._flags.values() if flag.required and flag.value is None]
        if missing:
            raise InvalidArgumentError(f"flags that are required are not given: {', '.join(missing)}")
        return left

    def _take(self, word: str, rest: Iterator[str]) -> bool:
        """Take one word, and the value behind it from ``rest``; whether it is an option of ours."""
        name, equals, text = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        flag = self._flags.get(name)
        if not word.startswith("-"):
            return False
        if flag is None:
            off = self._flags.get(name.removeprefix("no"))
            if off is None or not off.boolean or not name.startswith("no") or equals:
                return False
            off.take("false")
            return True
        if not equals:
            text = "true" if flag.boolean else next(rest, None)  # type: ignore[assignment]
            if text is None:
                raise InvalidArgumentError(f"flag --{name} needs a value")
        flag.take(text)
        return True

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":  # programs of before TensorFlow 1.5 print them all
            return self.flag_values_dict()
        if name == "_parse_flags":  # and read the command line by it
            return lambda args=None: self([sys.argv[0], *(sys.argv[1:] if args is None else args)])
        flag = self._flags.get(name)
        if flag is None:
            near = did_you_mean(name, sorted(self._flags))
            raise AttributeError(f"no flag named {name!r} is defined" + (f"; {near}" if near else ""))
        if not self._parsed:
            self(sys.argv)
        return flag.value

    def __setattr__(self, name: str, value: Any) -> None:
        flag = self._flags.get(name)
        if flag is None:
            near = did_you_mean(name, sorted(self._flags))
            raise AttributeError(f"no flag named {name!r} is defined" + (f"; {near}" if near else ""))
        flag.value, flag.given = value, True

    def __delattr__(self, name: str) -> None:
        if self._flags.pop(name, None) is None:
            raise AttributeError(f"no flag named {name!r} is defined")

    def __getitem__(self, name: str) -> _Flag:
        """The option itself, with its ``value``, ``default``, ``name`` and ``help``."""
        if name not in self._flags:
            raise KeyError(name)
        if not self._parsed:
            self(sys.argv)
        return self._flags[name]  # type: ignore[no-any-return]

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._flags))

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> Iterable[str]:
        return sorted([*self._flags, "flag_values_dict", "get_help", "is_parsed", "mark_as_parsed", "unparse_flags"])

    def flag_values_dict(self) -> dict[str, Any]:
        """Name -> value, of all options; reads the command line where that has not been done."""
        return {name: getattr(self, name) for name in self}

    def is_parsed(self) -> bool:
        """Return whether a command line has been read."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Keep the values as they are: no command line is read any more."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self) -> None:
        """Take the defaults again; the next read reads the command line."""
        self.__dict__["_parsed"] = False
        for flag in self._flags.values():
            flag.value, flag.given = flag.default, False

    def get_help(self) -> str:
        """The options as ``--help`` shows them, a line or two each."""
        lines = []
        for name in self:
            flag = self._flags[name]
            lines.append(f"  --{'[no]' if flag.boolean else ''}{name}: {flag.help}")
            if flag.default is not None:
                lines.append(f"    (default: {flag.default!r})")
        return "\n".join(lines)

    def _define(self, flag: _Flag) -> None:
        if flag.name in self._flags:
            raise AlreadyExistsError(
                f"the flag {flag.name!r} is defined already", hint=f"delattr(tf.flags.FLAGS, {flag.name!r}) removes it"
            )
        self._flags[flag.name] = flag


#: The options of this process.
FLAGS = FlagValues()


def _one(read: Callable[[str], Any], what: str) -> Callable[..., None]:
    def define(name: str, default: Any, help: str | None = None, **more: Any) -> None:
        value = read(default) if isinstance(default, str) else default
        FLAGS._define(_Flag(name, read, help or "", value))

    define.__doc__ = (
        f"Define an option whose value is {what}; further keywords of TensorFlow's are taken and mean nothing."
    )
    return define


def _many(read: Callable[[str], Any], what: str) -> Callable[..., None]:
    def define(name: str, default: Any, help: str | None = None, **more: Any) -> None:
        value = list(default) if isinstance(default, (list, tuple)) else default if default is None else [default]
        FLAGS._define(_Flag(name, read, help or "", value, multi=True))

    define.__doc__ = f"Define an option that may be given several times, each time {what}; its value is a list."
    return define


def _bool(text: str) -> bool:
    low = text.lower()
    if low not in _TRUE + _FALSE:
        raise ValueError(f"invalid value for a boolean: {text!r}")
    return low in _TRUE


def _integer(text: str) -> int:
    return int(text, 0)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


DEFINE_string = _one(str, "a text")
DEFINE_integer = _one(_integer, "an integer")
DEFINE_float = _one(float, "a number")
DEFINE_list = _one(_list, "a list of texts with commas between them")
DEFINE_multi_string = _many(str, "a text")
DEFINE_multi_integer = _many(_integer, "an integer")
DEFINE_multi_float = _many(float, "a number")


def DEFINE_boolean(name: str, default: Any, help: str | None = None, **more: Any) -> None:  # noqa: N802 - TensorFlow's name
    """Define an option that is on or off: ``--name``, ``--noname``, ``--name=true``."""
    value = _bool(default) if isinstance(default, str) else default if default is None else bool(default)
    FLAGS._define(_Flag(name, _bool, help or "", value, boolean=True))


DEFINE_bool = DEFINE_boolean


def DEFINE_enum(  # noqa: N802 - TensorFlow's name
    name: str, default: str | None, enum_values: Sequence[str], help: str | None = None, **more: Any
) -> None:
    """Define an option whose value is one of some texts.

    Raises:
      InvalidArgumentError: the default is none of them.
    """

    def read(text: str) -> str:
        if text not in enum_values:
            raise ValueError(f"{text!r} is none of {', '.join(enum_values)}")
        return text

    flag = _Flag(name, read, help or "", default)
    if default is not None:
        flag.take(default)
        flag.given = False
    FLAGS._define(flag)


def mark_flag_as_required(flag_name: str) -> None:
    """Refuse a command line that gives no value to an option whose default is None.

    Raises:
      AttributeError: there is no such option.
    """
    if flag_name not in FLAGS:
        raise AttributeError(f"no flag named {flag_name!r} is defined")
    FLAGS._flags[flag_name].required = True


def mark_flags_as_required(flag_names: Iterable[str]) -> None:
    """``mark_flag_as_required`` of each."""
    for name in flag_names:
        mark_flag_as_required(name)
