"""Random programs of branches, loops and TensorArrays, nested in one another, written for any module that has TensorFlow 1's names.

``python random_control_flow.py`` with TensorFlow installed writes what it computes into ``random_control_flow.json``.
"""

from __future__ import annotations

import random
from typing import Any

#: Programs, and elements of their tensors.
COUNT, SIZE = 500, 3
#: Deepest nesting of branches and loops.
DEPTH = 3


class Program:
    """One program, from a seed: a function of a vector, an integer and a flag.

    Args:
      tf: the module. It is asked for the same things in the same order, whatever it is.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf = tf
        self.drawn = random.Random(seed)

    def build(self) -> tuple[list[Any], list[Any]]:
        """Placeholders, and what is fetched: the result, and its gradient by the vector."""
        tf = self.tf
        x = tf.placeholder(tf.float64, [SIZE])
        n, flag = tf.placeholder(tf.int32, []), tf.placeholder(tf.bool, [])
        self.n, self.flag = n, flag
        result = self.block([x, tf.tanh(x)], DEPTH, self.drawn.randint(2, 4))
        (slope,) = tf.gradients(tf.reduce_sum(result), x)
        return [x, n, flag], [result, tf.zeros_like(x) if slope is None else slope]

    def feeds(self) -> list[Any]:
        return [
            [self.drawn.uniform(-1.5, 1.5) for _ in range(SIZE)],
            self.drawn.randint(0, 4),
            self.drawn.random() < 0.5,
        ]

    def block(self, values: list[Any], depth: int, count: int) -> Any:
        """A vector that so many statements make of some; what came last is worth most."""
        values = list(values)
        for _ in range(count):
            kinds = ["arithmetic", "arithmetic"]
            if depth:
                kinds += ["branch", "loop", "rows", "recurrence"]
            values.append(getattr(self, self.drawn.choice(kinds))(values, depth - 1))
        return self.tf.tanh(values[-1] + 0.5 * self.drawn.choice(values))

    def arithmetic(self, values: list[Any], depth: int) -> Any:
        tf, (a, b) = self.tf, self.drawn.choices(values, k=2)
        return self.drawn.choice(
            [
                lambda: a + b * self.drawn.uniform(-1, 1),
                lambda: a * b,
                lambda: tf.maximum(a, b) - tf.minimum(a, 0.25),
                lambda: tf.tanh(a - b),
                lambda: tf.reverse(a, [0]) * tf.reduce_mean(b),
                lambda: tf.where(a > b, a, tf.sin(b)),
            ]
        )()

    def test(self, values: list[Any]) -> Any:
        tf, (a, b) = self.tf, self.drawn.choices(values, k=2)
        return self.drawn.choice(
            [
                lambda: self.flag,
                lambda: tf.reduce_sum(a) > tf.reduce_sum(b) + self.drawn.uniform(-0.5, 0.5),
                lambda: tf.logical_and(tf.logical_not(self.flag), self.n > self.drawn.randint(0, 3)),
            ]
        )()

    def branch(self, values: list[Any], depth: int) -> Any:
        test, counts = self.test(values), [self.drawn.randint(1, 2) for _ in range(2)]
        return self.tf.cond(test, *[lambda c=c: self.block(values, depth, c) for c in counts])

    def times(self) -> Any:
        return self.drawn.choice([self.n, self.drawn.randint(0, 3), self.drawn.randint(1, 3)])

    def loop(self, values: list[Any], depth: int) -> Any:
        """Two variables; the test looks at one of them too."""
        tf, count, most = self.tf, self.times(), self.drawn.uniform(1, 3)
        first = self.drawn.choices(values, k=2)

        def going(i: Any, a: Any, b: Any) -> Any:
            return tf.logical_and(i < count, tf.reduce_sum(a) < most)

        def body(i: Any, a: Any, b: Any) -> Any:
            made = self.block([*values, a, b], depth, self.drawn.randint(1, 2))
            return i + 1, made + 0.1 * tf.cast(i, tf.float64), self.drawn.choice([a, b, made])

        return tf.while_loop(going, body, [0, *first])[1 + self.drawn.randrange(2)]

    def rows(self, values: list[Any], depth: int) -> Any:
        """A loop that writes each row of an array, which is then read whole."""
        tf, count = self.tf, self.times()
        first = self.drawn.choice(values)
        made = tf.TensorArray(tf.float64, count, element_shape=[SIZE], clear_after_read=False)

        def body(i: Any, a: Any, out: Any) -> Any:
            row = self.block([*values, a], depth, 1)
            return i + 1, row, out.write(count - 1 - i, row)

        out = tf.while_loop(lambda i, *_: i < count, body, [0, first, made])[2]
        return tf.reduce_sum(out.stack(), 0) + first

    def recurrence(self, values: list[Any], depth: int) -> Any:
        """A loop that reads what it has written, and rows that it was given."""
        tf, count = self.tf, self.times()
        first, second = self.drawn.choices(values, k=2)
        given = tf.TensorArray(tf.float64, 3, clear_after_read=False).unstack(tf.stack([first, second, first * second]))
        out = tf.TensorArray(tf.float64, 0, dynamic_size=True, clear_after_read=False, element_shape=[SIZE])
        ways = self.drawn.random() < 0.5

        def body(i: Any, out: Any) -> Any:
            row = tf.tanh(out.read(i) + given.read(i % 3))
            if ways:
                even = tf.equal(i % 2, 0)
                return i + 1, tf.cond(even, lambda: out.write(i + 1, row), lambda: out.write(i + 1, row * first))
            return i + 1, out.write(i + 1, self.block([row, first], depth, 1))

        out = tf.while_loop(lambda i, *_: i < count, body, [0, out.write(0, second)])[1]
        return out.read(out.size() - 1)


def _answers() -> None:
    import json
    import sys
    from pathlib import Path

    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    found: list[Any] = []
    for seed in range(COUNT):
        with tf.Graph().as_default(), tf.Session() as session:
            program = Program(tf, seed)
            try:
                feeds, fetches = program.build()
                found.append([v.tolist() for v in session.run(fetches, dict(zip(feeds, program.feeds(), strict=True)))])
            except Exception as error:  # noqa: BLE001 - what TensorFlow can't do is told, and not compared
                print(seed, type(error).__name__, str(error)[:100], file=sys.stderr)
                found.append(None)
    text = ",\n".join(json.dumps(f) for f in found)
    Path(__file__).with_suffix(".json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    _answers()
