"""Random steps over variables with all that a caller owns: feeds, fetches, arrays of constants, what Python functions keep.

A :class:`Ledger` holds each array that is a caller's, and what is in it; ``spoil`` writes over an array, as its owner may at any
time. No step may change what is in the ledger, and nothing that is written there may change a later result.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import graphdock as tf
import numpy as np
from graphdock_differential_random_updates import SQUARE, Numbers, Tensors, Updates
from numpy.typing import NDArray


class Ledger:
    """The arrays that a caller owns, and what is in each."""

    def __init__(self) -> None:
        self._held: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._rubbish = 10**12

    def hold(self, what: str, array: Any) -> None:
        if isinstance(array, np.ndarray):
            self._held.append((what, array, array.copy()))

    def spoil(self, what: str, array: Any) -> None:
        """The owner writes over an array, and keeps it."""
        if isinstance(array, np.ndarray):
            assert array.flags.writeable, f"{what} can't be written any more"
            self._rubbish += 1
            array.fill(self._rubbish)
        self.hold(what, array)

    def check(self, when: str) -> None:
        for what, array, before in self._held:
            np.testing.assert_array_equal(array, before, err_msg=f"{when}: {what} has changed")


def define(ledger: Ledger) -> tuple[Any, Any]:
    """An op and a function that keep what they take, and what they return: one array, written again at each call."""
    returned = np.zeros(SQUARE, np.int64)

    def keep(x: NDArray[np.int64]) -> NDArray[np.int64]:
        ledger.hold("what a function took", x)
        returned[...] = x + 1
        return returned

    op = tf.custom_op("lab::keep", shapes={"x": "[*S]", "y": "[*S]"})(keep)

    def function(x: Any) -> Any:
        result = tf.py_func(keep, [x], tf.int64)
        result.set_shape(SQUARE)
        return result

    return op, function


class OwnedNumbers(Numbers):
    """Of functions over arrays: one adds 1, whatever it keeps."""

    def __init__(
        self, state: dict[int, np.ndarray], feeds: Sequence[np.ndarray], constants: Sequence[np.ndarray]
    ) -> None:
        super().__init__(state)
        self.feeds, self.constants = feeds, constants

    def feed(self, i: int) -> Any:
        return self.feeds[i]

    def constant(self, i: int) -> Any:
        return self.constants[i]

    def keep(self, i: int, x: Any) -> Any:
        return x + 1


class OwnedTensors(Tensors):
    """The same over tensors."""

    def __init__(
        self, variables: Sequence[Any], feeds: Sequence[Any], constants: Sequence[Any], keepers: Sequence[Any]
    ) -> None:
        super().__init__(variables)
        self.feeds, self.constants, self.keepers = feeds, constants, keepers

    def read(self, v: int) -> Any:
        return tf.reshape(super().read(v), SQUARE)

    def update(self, kind: str, v: int, x: Any) -> Any:
        return tf.reshape(super().update(kind, v, x), SQUARE)

    def feed(self, i: int) -> Any:
        return tf.reshape(self.feeds[i], SQUARE)

    def constant(self, i: int) -> Any:
        return self.constants[i]

    def keep(self, i: int, x: Any) -> Any:
        return self.keepers[i](tf.reshape(x, SQUARE))


class Owned(Updates):
    """A random program that also reads feeds and constants and calls functions that keep arrays.

    Attributes:
      fed: what the next step is fed. ``placeholders``: where, when it is built.
    """

    def __init__(self, seed: int, ledger: Ledger, keepers: Sequence[Any], dims: int | None = 2) -> None:
        super().__init__(seed)
        self.ledger, self.keepers, self.dims = ledger, keepers, dims
        self.shapeless = [2] if seed % 2 else []
        self.constants = [self.square() for _ in range(2)]
        self.fed = [self.square() for _ in range(3)]
        self.placeholders: list[Any] = []
        for i in range(len(self.fed)):
            self.add(f"feed {i}", [], lambda api, i=i: api.feed(i))
        for i in range(len(self.constants)):
            self.add(f"constant {i}", [], lambda api, i=i: api.constant(i))

    def square(self) -> np.ndarray:
        return self.rng.integers(-9, 9, SQUARE)

    def grow(self, count: int, depth: int = 1, late: float = 0.0) -> None:
        for _ in range(int(self.rng.integers(3))):
            i = int(self.rng.integers(len(self.keepers)))
            super().grow(len(self.nodes) + 1 + count // 4, depth, late)
            self.add(f"keep {i}", [self.any()], lambda api, x, i=i: api.keep(i, self.squared(x)))
        super().grow(max(count, len(self.nodes) + 1), depth, late)

    @staticmethod
    def squared(x: Any) -> Any:
        """Rows become squares."""
        return np.broadcast_to(x, SQUARE) if isinstance(x, np.ndarray) else x + tf.zeros(SQUARE, x.dtype)

    def numbers(self, state: dict[int, np.ndarray]) -> Numbers:
        return OwnedNumbers(state, self.fed, self.constants)

    def tensors(self, variables: Sequence[Any]) -> Tensors:
        self.placeholders = [tf.placeholder(tf.int64, [self.dims, self.dims]) for _ in self.fed]
        given = [a.copy() for a in self.constants]
        made = OwnedTensors(variables, self.placeholders, [tf.constant(a) for a in given], self.keepers)
        for array in given:
            self.ledger.spoil("what a constant was made of", array)
        return made

    def build(self, scope: Any = None) -> tuple[list[Any], list[Any]]:
        """As it is; the arrays that variables were made of are written over when all is built."""
        initial, self.initial = self.initial, [a.copy() for a in self.initial]
        built = super().build(scope)
        for array in self.initial:
            self.ledger.spoil("what a variable was made of", array)
        self.initial = initial
        return built

    def needs(self, fetches: Sequence[int], done: Container[int] = ()) -> list[int]:
        """Which feeds a step needs."""
        order = self.rest(fetches, done)
        return [i for i in range(len(self.fed)) if i in order]

    def rest(self, fetches: Sequence[int], done: Container[int]) -> list[int]:
        """What must run of a step, in order, where some is done."""
        stack = [f for f in fetches if f < len(self.nodes) and f not in done]
        needed: set[int] = set()
        while stack:
            n = stack.pop()
            if n not in needed:
                needed.add(n)
                node = self.nodes[n]
                stack.extend(i for i in (*node.inputs, *node.control, *node.late) if i not in done)
        return [n for n in self.order(fetches) if n in needed]


class Caller:
    """Runs steps of a program in every way that a session has, and writes over what it owns in between."""

    def __init__(self, program: Owned, session: Any, variables: Sequence[Any], tensors: Sequence[Any]) -> None:
        self.program, self.session, self.variables, self.tensors = program, session, variables, tensors
        self.rng, self.ledger = program.rng, program.ledger
        self.state = {i: a.copy() for i, a in enumerate(program.initial)}

    def step(self, way: str) -> None:
        program, count = self.program, self.program.fetchable
        fetched = [int(i) for i in dict.fromkeys(self.rng.integers(0, count, int(self.rng.integers(1, 6))))]
        program.fed = [program.square() for _ in program.fed]
        getattr(self, way)(fetched)
        self.ledger.check(way)
        for i, variable in enumerate(self.variables):
            if way == "pieces" or self.rng.random() < 0.4:
                self._got([len(program.nodes) + i], [self.session.run(variable)], [self.state[i]])

    def run(self, fetched: list[int]) -> None:
        feeds = self._feeds(self.program.needs(fetched))
        expected = self.program.step(self.state, fetched)
        got = self.session.run([self.tensors[i] for i in fetched], feeds)
        self._fed(feeds)
        self._got(fetched, got, expected)

    def call(self, fetched: list[int]) -> None:
        feeds = self._feeds(self.program.needs(fetched))
        expected = self.program.step(self.state, fetched)
        made = self.session.make_callable([self.tensors[i] for i in fetched], list(feeds))
        got = made(*feeds.values())
        self._fed(feeds)
        self._got(fetched, got, expected)

    def operations(self, fetched: list[int]) -> None:
        """A step without results, which may return before its work is done."""
        feeds = self._feeds(self.program.needs(fetched))
        self.program.step(self.state, fetched)
        self.session.run([self.tensors[i].op for i in fetched], feeds)
        self._fed(feeds)

    def load(self, fetched: list[int]) -> None:
        value = self.program.square()
        which = fetched[0] % len(self.variables)
        self.state[which] = value.copy()
        self.variables[which].load(value, self.session)
        self.ledger.spoil("what a variable was loaded with", value)

    def pieces(self, fetched: list[int]) -> None:
        """A partial run. Each piece runs what it needs and no piece before it has."""
        program = self.program
        places = program.placeholders
        handle = self.session.partial_run_setup([*[self.tensors[i] for i in fetched], *places], places)
        api, values, fed = program.numbers(self.state), {}, set[int]()
        for piece in np.array_split(fetched, int(self.rng.integers(1, 4))):
            wanted = [int(i) for i in piece]
            needs = [i for i in program.needs(wanted, values) if i not in fed]
            feeds = self._feeds(needs)
            for n in program.rest(wanted, values):
                if n not in values:
                    node = program.nodes[n]
                    values[n] = np.array(node.run(api, *[values[i] for i in node.inputs]))
            got = self.session.partial_run(handle, [self.tensors[i] for i in wanted], feeds)
            fed.update(needs)
            self._fed(feeds)
            count = len(program.nodes)
            self._got(wanted, got, [values[i] if i < count else self.state[i - count] for i in wanted])
        for i, value in zip(fed, self.session.partial_run(handle, [places[i] for i in fed]), strict=True):
            np.testing.assert_array_equal(value, program.fed[i], err_msg=f"what was fed for {i}")

    def _feeds(self, needed: Sequence[int]) -> dict[Any, np.ndarray]:
        return {self.program.placeholders[i]: self.program.fed[i].copy() for i in needed}

    def _fed(self, feeds: dict[Any, np.ndarray]) -> None:
        for array in feeds.values():
            self.ledger.spoil("a feed", array)

    def _got(self, fetched: Sequence[int], got: Sequence[Any], expected: Sequence[Any]) -> None:
        for i, a, b in zip(fetched, got, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=self.program.what(i))
        for i, a in zip(fetched, got, strict=True):
            keep = self.ledger.hold if self.rng.random() < 0.5 else self.ledger.spoil
            keep(f"what was fetched of {self.program.what(i)}", a)


WAYS = ["run", "run", "call", "operations", "load", "pieces", "pieces"]
