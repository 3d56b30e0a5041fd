"""Device names: ``/job:worker/task:17/device:cuda:3``, whole or partial, and how partial ones merge.

A name is a frozen :class:`DeviceSpec`; a field of None is not said. Short forms (``cpu``, ``cpu:1``, ``/cpu:0``, ``/gpu:0``)
are read; the long form is written. Device types are open strings, folded to lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from graphdock.errors import InvalidArgumentError

__all__ = ["DeviceSpec"]

_FIELD = (
    r"/job:(?P<job>[A-Za-z_][A-Za-z0-9_]*|\*)"
    r"|/replica:(?P<replica>\d+|\*)"
    r"|/task:(?P<task>\d+|\*)"
    r"|/device:(?P<type>[A-Za-z_][A-Za-z0-9_]*|\*)(?::(?P<index>\d+|\*))?"
    r"|/(?P<short>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<sindex>\d+|\*))?"
)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A whole or partial device name. ``parse(str(spec)) == spec`` for every spec."""

    job: str | None = None
    task: int | None = None
    type: str | None = None
    index: int | None = None

    @classmethod
    def parse(cls, text: Any) -> DeviceSpec:
        """Read a device name. ``""`` and None are the empty spec.

        Raises:
          InvalidArgumentError: the text is not a device name, or says a field twice.
        """
        if isinstance(text, DeviceSpec):
            return text
        if text is not None and not isinstance(text, str) and hasattr(text, "to_string"):
            text = text.to_string()  # tf.DeviceSpec
        if not text:
            return cls()
        if not isinstance(text, str):
            raise InvalidArgumentError(
                f"{text!r} is not a device name",
                expected="a form such as '/job:worker/task:1/device:cuda:0', 'cuda:0' or 'cuda'",
            )
        source = text
        found: dict[str, str | None] = {"job": None, "task": None, "type": None, "index": None}
        if not text.startswith("/"):
            text = "/" + text
        position = 0

        def say(field: str, value: str | None) -> None:
            if value is None or value == "*":
                return
            if found[field] is not None:
                raise InvalidArgumentError(f"device name {source!r} says {field} twice")
            found[field] = value

        while position < len(text):
            match = re.compile(_FIELD).match(text, position)
            if match is None or match.end() == position:
                raise InvalidArgumentError(
                    f"{source!r} is not a device name",
                    expected="a form such as '/job:worker/task:1/device:cuda:0', 'cuda:0' or 'cuda'",
                )
            position = match.end()
            part = match.groupdict()
            say("job", part["job"])
            say("task", part["task"])
            say("type", (part["type"] or part["short"] or "*").lower())
            say("index", part["index"] or part["sindex"])
        task, index = found["task"], found["index"]
        return cls(
            found["job"], None if task is None else int(task), found["type"], None if index is None else int(index)
        )

    def merge(self, inner: DeviceSpec) -> DeviceSpec:
        """This spec overridden by what ``inner`` says, as nested device scopes do.

        An inner device type drops the outer index: ``cuda:3`` then ``cpu`` is ``cpu``, not ``cpu:3``.
        """
        index = inner.index
        if index is None and (inner.type is None or inner.type == self.type):
            index = self.index
        return DeviceSpec(
            self.job if inner.job is None else inner.job,
            self.task if inner.task is None else inner.task,
            self.type if inner.type is None else inner.type,
            index,
        )

    def matches(self, whole: DeviceSpec) -> bool:
        """Return whether ``whole`` satisfies every field this spec says."""
        return all(
            mine is None or mine == theirs
            for mine, theirs in (
                (self.job, whole.job),
                (self.task, whole.task),
                (self.type, whole.type),
                (self.index, whole.index),
            )
        )

    def short(self) -> str:
        """``cpu:0``; what tables print."""
        text = self.type or "*"
        return text if self.index is None else f"{text}:{self.index}"

    def to_string(self) -> str:
        """As TensorFlow writes it: ``/device:CPU:0`` and ``/device:GPU:1`` in capitals, other types as they are."""
        if self.type in ("cpu", "gpu"):
            return str(self).replace(f"/device:{self.type}", f"/device:{self.type.upper()}")
        return str(self)

    def __bool__(self) -> bool:
        return self != DeviceSpec()

    def __str__(self) -> str:
        text = ""
        if self.job is not None:
            text += f"/job:{self.job}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.type is not None or self.index is not None:
            text += f"/device:{self.type or '*'}"
            if self.index is not None:
                text += f":{self.index}"
        return text
