"""Graphs of dataflow's primitives, and what TensorFlow computes of them.

``python primitive_graphs.py`` with TensorFlow installed writes both into ``primitive_graphs.json``; DEAD is no value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Graphs:
    """Builders of the graphs, each of which returns what is fed and what is fetched.

    Args:
      tf, gen: TensorFlow, and its module of these ops.
    """

    def __init__(self, tf: Any, gen: Any) -> None:
        self.tf, self.gen = tf, gen

    def beside(self, near: Any, value: int) -> Any:
        """A constant in the frame of a tensor."""
        with self.tf.control_dependencies([near]):
            return self.tf.constant(value)

    def loop(self, frame: str, first: Sequence[Any], cond: Callable[..., Any], body: Callable[..., Any]) -> list[Any]:
        gen = self.gen
        merges = [gen.merge([e, e])[0] for e in [gen.enter(t, frame, False, 3) for t in first]]
        going = gen.loop_cond(cond(*merges))
        switches = [gen.switch(m, going) for m in merges]
        for merge, value in zip(merges, body(*[s[1] for s in switches]), strict=True):
            merge.op._update_input(1, gen.next_iteration(value))
        return [gen._exit(s[0]) for s in switches]

    def three_ways(self) -> Any:
        tf, gen = self.tf, self.gen
        x, p, q = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
        a, b = gen.switch(x, p)
        c, d = gen.switch(b, q)
        return [x, p, q], [*gen.merge([a * 2.0, c + 1.0, d - 1.0]), a, c, d]

    def loop_in_a_loop(self) -> Any:
        tf, gen = self.tf, self.gen
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
        most = gen.enter(n, "outer", True, 10)

        def inner(i: Any, a: Any) -> Any:
            limit = gen.enter(most, "inner", True, 10)
            return self.loop(
                "inner",
                [tf.zeros_like(i), a, i],
                lambda j, b, k: j < limit,
                lambda j, b, k: (j + self.beside(j, 1), b * tf.cast(k, tf.float32) + b, k),
            )[1]

        ends = self.loop(
            "outer", [tf.constant(0), x], lambda i, a: i < most, lambda i, a: (i + self.beside(i, 1), inner(i, a))
        )
        return [n, x], ends

    def exit_from_within(self) -> Any:
        """It leaves in the iteration in which the variable is 3, and the loop goes on."""
        tf, gen = self.tf, self.gen
        n = tf.placeholder(tf.int32, [])
        limit = gen.enter(n, "f", True, 4)
        entered = gen.enter(tf.constant(0), "f", False, 4)
        merged, _ = gen.merge([entered, entered])
        out, on = gen.switch(merged, gen.loop_cond(merged < limit))
        within = gen._exit(gen.switch(on, tf.equal(on, self.beside(on, 3)))[1])
        merged.op._update_input(1, gen.next_iteration(on + self.beside(on, 1)))
        return [n], [gen._exit(out), within]

    def loop_in_a_branch(self) -> Any:
        tf, gen = self.tf, self.gen
        x, p = tf.placeholder(tf.int32, []), tf.placeholder(tf.bool, [])
        no, yes = gen.switch(x, p)
        (end,) = self.loop("g", [yes], lambda i: i < self.beside(i, 10), lambda i: [i + self.beside(i, 1)])
        return [x, p], [gen.merge([no - 100, end])[0]]

    def branches_in_a_loop(self) -> Any:
        tf, gen = self.tf, self.gen
        a, b = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])

        def body(x: Any, y: Any) -> Any:
            more = x > y
            (x0, x1), (y0, y1) = gen.switch(x, more), gen.switch(y, more)
            return gen.merge([x0, x1 - y1])[0], gen.merge([y0 - x0, y1])[0]

        return [a, b], self.loop("gcd", [a, b], tf.not_equal, body)

    def growing(self) -> Any:
        tf, gen = self.tf, self.gen
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
        limit = gen.enter(n, "grow", True, 10)

        def body(i: Any, v: Any) -> Any:
            return i + self.beside(i, 1), tf.concat([v, v], self.beside(i, 0))

        return [n, x], self.loop("grow", [tf.constant(0), x], lambda i, v: i < limit, body)


#: Graph -> what is fed, one time after another.
FED: dict[str, list[list[Any]]] = {
    "three_ways": [[[1.0, 2.0], p, q] for p in (True, False) for q in (True, False)],
    "loop_in_a_loop": [[k, 1.5] for k in (0, 1, 3)],
    "exit_from_within": [[k] for k in (0, 2, 6)],
    "loop_in_a_branch": [[3, True], [3, False]],
    "branches_in_a_loop": [[12, 18], [7, 13], [5, 5]],
    "growing": [[3, [1.0, 2.0]], [0, [5.0]]],
}


def _answers() -> None:
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import gen_control_flow_ops

    tf.disable_v2_behavior()
    found: dict[str, Any] = {}
    for name, given in FED.items():
        with tf.Graph().as_default() as graph, tf.Session() as session:
            fed, fetched = getattr(Graphs(tf, gen_control_flow_ops), name)()

            def value(tensor: Any, feeds: Any, session: Any = session) -> Any:
                try:
                    return session.run(tensor, feeds).tolist()
                except tf.errors.InvalidArgumentError:
                    return "DEAD"

            values = [[value(t, dict(zip(fed, row, strict=True))) for t in fetched] for row in given]
            text = base64.b64encode(graph.as_graph_def().SerializeToString()).decode()
            found[name] = {"graph": text, "fed": [t.name for t in fed], "fetched": [t.name for t in fetched]}
            found[name] |= {"given": given, "values": values}
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _answers()
