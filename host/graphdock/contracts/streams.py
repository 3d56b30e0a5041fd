"""Streams of random numbers, which kernels draw from: the same program draws the same numbers in every plan, executor and backend.

Every random op draws from Philox4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011),
as :class:`numpy.random.Philox` implements it. Its key is the op's two seeds; its 256-bit counter is, least significant word first,

    (block, outer, iteration, ordinal)

``ordinal`` counts the steps of the session in which the op ran, ``iteration`` is the number of the innermost loop's iteration,
``outer`` those of the loops around it (0 where there are none), and ``block`` counts the blocks of four 64-bit words within one
execution. NumPy increments the counter *before* it computes a block, so that a generator whose state is set to counter ``(0, outer,
iteration, ordinal)`` yields first the block of counter ``(1, outer, iteration, ordinal)``: the first block is number 1.

An op is known by its name: its ordinal is reserved once per step, whatever copies of its node a plan holds, and its iterations are
those of its loops, however often it ran. So the same numbers are drawn in any order of iterations, by any executor, and by a node
that is computed twice. The ordinals live in the session: a new plan for another feed shape goes on where the last one stopped. How
64-bit words become values is part of each op's spec. Who calls a function of the graph many times, such as an iterator of a
dataset, may have its ordinals counted apart (:meth:`RandomOrdinals.anew`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode

__all__ = ["RandomOrdinals", "RandomStream", "StreamName", "random_key", "streams_of"]


@lazy_dataclass(frozen=True, slots=True)
class StreamName:
    """Identity of a stream: all nodes that draw from it, in one step and iteration, draw the same numbers.

    Attributes:
      name: of the user's operation. A session keeps one key for it, and reserves one ordinal of it for each step.
      seed, seed2: as its attributes say; two zeros stand for no seed.
    """

    name: str
    seed: int = 0
    seed2: int = 0


def streams_of(node: PlanNode) -> tuple[StreamName, ...]:
    """The streams that a node's kernel is given, one argument each, behind its inputs.

    A node whose op has the effect ``random`` has a stream of its own, unless its ``streams`` say whose it draws from: those of the
    nodes that it stands for. Other nodes have none.
    """
    if "random" not in node.opdef.effects:
        return ()
    if node.streams is not None:
        return node.streams
    attrs = node.attrs
    return (StreamName(node.origin, int(attrs.get("seed", 0)), int(attrs.get("seed2", 0))),)


_MASK = (1 << 64) - 1
_LONGEST = 1 << 21


def random_key(seed: int, seed2: int) -> tuple[int, int]:
    """The Philox key of an op with these two seed attributes, as two unsigned 64-bit numbers.

    Two zeros stand for no seed: the key is then taken from the operating system, new at each call. A session asks once per op
    and keeps the answer.
    """
    if seed == 0 and seed2 == 0:
        return int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))
    return seed & _MASK, seed2 & _MASK


class RandomStream:
    """Position of one random op of one running step. A kernel reads ``key`` and :meth:`counter`; the executor moves it.

    Belongs to one instance of a plan, and to the thread that runs it.

    Attributes:
      key: two unsigned 64-bit numbers.
      ordinal: number of this step among those that ran the op, from 0.
      iteration: number of the innermost loop's iteration, from 0.
      outer: numbers of the other loops' iterations, in one word.
      slot: where the ordinal lies in the queue's step arguments (bytes from their begin, a little-endian uint64), for a kernel
        on a device with queues; else None. Such a kernel reads it there when its work runs, because a recorded launch is
        replayed with other ordinals. Key, iteration and outer are read at launch.
    """

    __slots__ = ("iteration", "key", "ordinal", "outer", "slot")

    def __init__(self, key: tuple[int, int], ordinal: int = 0) -> None:
        self.key = key
        self.ordinal = ordinal
        self.iteration = 0
        self.outer = 0
        self.slot: int | None = None

    def begin(self, ordinal: int) -> None:
        """Start a step: the op's next execution has this ordinal and iteration 0."""
        self.ordinal = ordinal
        self.iteration = 0
        self.outer = 0

    def at(self, *iterations: int) -> None:
        """The next execution stands in these iterations of its loops, the innermost last."""
        self.iteration = iterations[-1]
        if len(iterations) > 1:
            self.outer = _one_word(iterations[:-1])

    def counter(self) -> tuple[int, int, int]:
        """``(ordinal, iteration, outer)`` of the execution that is under way: the upper words of the counter, highest first."""
        return self.ordinal, self.iteration, self.outer

    def __repr__(self) -> str:
        return f"<RandomStream key={self.key} ordinal={self.ordinal} iteration={self.iteration}>"


def _one_word(iterations: Sequence[int]) -> int:
    """Iteration numbers of up to three loops, 21 bits each; of more or longer ones a hash of them."""
    word = 0
    if len(iterations) <= 3 and max(iterations) < _LONGEST:
        for number in iterations:
            word = word << 21 | number
        return word
    for number in iterations:
        word = ((word ^ number) * 0x9E3779B97F4A7C15 + 0xBF58476D1CE4E5B9) & _MASK
    return word


class RandomOrdinals:
    """A session's memory of its random ops: the key of each, and how many steps have run it. Safe from any thread."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[int, int]] = {}
        self._unseeded: set[str] = set()
        self._next: dict[str, int] = {}
        self._lock = new_lock()

    def key(self, name: str, seed: int, seed2: int) -> tuple[int, int]:
        """The key of the op of that name; an op without seeds keeps for the session's life the one drawn first."""
        with self._lock:
            found = self._keys.get(name)
            if found is None:
                found = self._keys[name] = random_key(seed, seed2)
                if seed == seed2 == 0:
                    self._unseeded.add(name)
            return found

    def stream(self, name: str, seed: int, seed2: int) -> RandomStream:
        """A new stream for the op of that name; ``begin`` it with :meth:`reserve` at every step."""
        return RandomStream(self.key(name, seed, seed2))

    def reserve(self, name: str) -> int:
        """The ordinal of the step that begins now."""
        with self._lock:
            ordinal = self._next.get(name, 0)
            self._next[name] = ordinal + 1
            return ordinal

    def anew(self) -> Callable[[str], int]:
        """A :meth:`reserve` that counts by itself, from 0; ops without seeds go on with the session, and draw no number twice."""
        counts = RandomOrdinals()
        return lambda name: (self if name in self._unseeded else counts).reserve(name)
