"""``tf.DeviceSpec``: a device name, whole or partial, by its parts."""

from __future__ import annotations

from typing import Any

from graphdock.device_name import DeviceSpec as Name

__all__ = ["DeviceSpec"]


class DeviceSpec:
    """A device name: parts that are None are not said. It may be given to ``tf.device``.

    Args:
      job: such as ``"worker"``. replica: a number; devices here have none, and it is left out of the name of a device.
      task: a number. device_type: such as ``"GPU"``, in capitals where it is TensorFlow's. device_index: a number.

    Raises:
      ValueError: a number is none, or a text is no device name. Not thread-safe while it is changed.
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = None if device_type is None else _capitals(str(device_type))
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a name. Raises ValueError."""
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Become what a name says, and return it. Raises ValueError."""
        name = Name.parse(spec)
        replica = next((part[8:] for part in str(spec).split("/") if part.startswith("replica:")), "*")
        self.__init__(  # type: ignore[misc]
            name.job, None if replica == "*" else int(replica), name.task, name.type, name.index
        )
        return self

    def to_string(self) -> str:
        """The name, such as ``/job:worker/task:3/device:GPU:0``."""
        parts = [f"/{key}:{value}" for key, value in self._parts().items() if value is not None and key[0] != "d"]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """One with other parts."""
        return DeviceSpec(**{**self._parts(), **kwargs})

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """One with what ``dev`` says in place of what this does."""
        return self.replace(**{key: value for key, value in dev._parts().items() if value is not None})

    def merge_from(self, dev: DeviceSpec) -> None:
        """Take over what ``dev`` says."""
        self.__init__(**self.make_merged_spec(dev)._parts())  # type: ignore[misc]

    def _parts(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "replica": self.replica,
            "task": self.task,
            "device_type": self.device_type,
            "device_index": self.device_index,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(tuple(self._parts().values()))

    def __repr__(self) -> str:
        return f"<DeviceSpec({', '.join(f'{key}={value}' for key, value in self._parts().items())})>"


def _capitals(kind: str) -> str:
    return kind.upper() if kind.lower() in ("cpu", "gpu") else kind
