"""Native code of kernels, and calls of it, of which a plan makes one for several kernels that stand one behind the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["Native", "NativeCall", "NativeShapes"]


@lazy_dataclass(frozen=True, slots=True)
class NativeCall:
    """One call of native code. An int among the buffers is the place of one that is given when a run is called. ``numbers``,
    ``brief`` and ``status``: as of its :class:`Native`; an int64 array in the place of the numbers is read anew by each call.
    """

    address: int
    buffers: tuple[Any, ...]
    numbers: Any = ()
    brief: bool = False
    status: bool = False


class NativeShapes(ABC):
    """Shapes of one kernel's calls in an instance, where only a step knows them. Used by one thread at a time.

    Attributes:
      numbers: int64, what the function gets; changed by :meth:`read`. ``within``: a context that the next call is to be made in, or
        None; as of a :class:`~graphdock.contracts.kernel.Prepared`, but also changed by it.
    """

    numbers: Any
    within: AbstractContextManager[Any] | None = None

    @abstractmethod
    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """The shapes of all outputs, for inputs of these shapes. What is called or made next is of these.

        Raises:
          ShapeError: the kernel can't compute that, or not so: a run calls its launches one by one then, and ``compute`` decides.
        """

    @abstractmethod
    def make(self, output: int) -> Any:
        """An array for an output that is returned."""


@lazy_dataclass(frozen=True, slots=True)
class Native:
    """A kernel of host memory as native code, ``void f(void **buffers, const int64_t *numbers)``.

    Attributes:
      address: of the function. Its buffers are those of ``compute``, in order: it is called in the place of that, without Python's
        lock, by the thread that runs the step.
      chain: ``chain(calls, count)`` gives a function of ``count`` buffers that makes the calls, one behind the other, whosever
        kernels they are, and returns None. It keeps what they point at. Behind a call of ``status`` that failed it makes none, and
        returns the number of that call.
      numbers: what it gets as its second argument.
      brief: it takes some microseconds, waits for nothing and calls no Python, so that Python's lock may be kept meanwhile.
      sized: makes what says the shapes of its calls, for each instance, where a plan does not know them; its numbers then stand in
        the place of ``numbers``, and what it makes for outputs that are returned, in the place of these among the outputs.
      status: it may fail, of an index out of range, say. Behind its buffers it then gets one more, an int64 that is 0 before each
        call. Where it leaves another number there, it has written nothing but outputs of its own that lie in no other's memory;
        ``compute`` is called in its place, and raises the error, and so is that of each launch behind it. Without it the function
        can't fail.
    """

    address: int
    chain: Callable[[Sequence[NativeCall], int], Callable[..., int | None]]
    numbers: tuple[int, ...] = ()
    brief: bool = False
    sized: Callable[[], NativeShapes] | None = None
    status: bool = False
