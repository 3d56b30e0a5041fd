"""Row that ``register_kernels`` returns instead of a module's KernelDefs, so that the module is imported when a plan needs it."""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.errors import InvalidArgumentError

__all__ = ["KernelModule"]


@dataclass(frozen=True, slots=True)
class KernelModule:
    """A module that holds a list ``KERNELS`` of KernelDefs, the same on every machine.

    What the list says stands in the plugin's manifest, written by ``graphdock opgen manifest``; kernels are listed and chosen by
    that. The module is imported once, when one of its kernels is chosen or its ``check`` is asked, on the thread that plans, under
    the planner's lock, and compared with the manifest. It is imported at once, while the plugin loads, where the plugin has no
    manifest, or one without rows of it.

    Attributes:
      name: dotted, such as ``graphdock_mychip.kernels.math``.

    Raises:
      InvalidArgumentError: the name is none of a module.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not all(part.isidentifier() for part in self.name.split(".")):
            raise InvalidArgumentError("a KernelModule names no module", expected="package.module", got=repr(self.name))
