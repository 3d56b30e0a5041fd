"""P4: a while_loop with a small body; times are per iteration of the (innermost) body.

TensorFlow runs with its version-1 control flow (Switch, Merge, Enter, Exit) and as `tensorflow/flow_v2` with functional
loops; the bars take the better. The iteration count is fed, so that no compiler can unroll the loop; LLVM, under JAX,
still replaces loops that only count by their result, so the bar for compiled loops stands on the float body. PyTorch,
which has no loop to compile with a fed count, runs eagerly. JAX's gradient needs a scan of fixed length.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import LLVM, session_builders
from benchmarks.program import Bar, Case, Program

COUNT, FLOATS, OUTER, INNER = 10_000, 2_000, 100, 100
#: Programs of the gradient: iterations, and elements of x.
GRADIENTS = {
    "gradient": (500, 10),
    "gradient_long": (2_000, 1_000),
    "gradient_few": (10, 10),
    "gradient_many": (10_000, 10),
}
#: Program of the gradient of a loop within a loop: iterations of each, and elements of x.
NESTED = {"outer": 20, "inner": 50, "size": 10}
#: Programs of recurrent networks: lines, steps, inputs and units.
RECURRENT = {"lstm_small": (8, 50, 16, 32), "lstm": (32, 50, 64, 128)}
#: The same of a loop over TensorArrays.
ARRAYS = {"lstm_arrays": (8, 50, 16, 16)}


def _vector(size: int = 10) -> Any:
    import numpy as np

    return np.random.RandomState(4).normal(size=size).astype("float32")


def _weights(size: int) -> Any:
    import numpy as np

    return np.random.RandomState(5).uniform(0.4, 0.6, size=size).astype("float32")


def _session_case(session: Any, fetches: Any, feed: dict[Any, Any], iterations: int) -> Case:
    return Case(lambda: session.run(fetches, feed), lambda: [session.run(fetches, feed)], iterations)


def counter_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """while i < n: i = i + 1, with int32 scalars."""
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i: tf.less(i, n), lambda i: tf.add(i, 1), [tf.constant(0)])
    return _session_case(open_session(), y, {n: COUNT}, COUNT)


def counter_numpy() -> Case:
    """The same with 0-d arrays and out=."""
    import numpy as np

    n, one, i, more = np.array(COUNT, "int32"), np.array(1, "int32"), np.array(0, "int32"), np.empty((), bool)

    def call(less: Any = np.less, add: Any = np.add) -> Any:
        i[...] = 0
        while less(i, n, more):
            add(i, one, i)
        return i

    return Case(call, lambda: [i], COUNT)


def counter_jax() -> Case:
    """lax.while_loop."""
    import jax
    import numpy as np

    loop = jax.jit(lambda n: jax.lax.while_loop(lambda i: i < n, lambda i: i + 1, np.int32(0)))
    n = np.array(COUNT, "int32")
    return Case(lambda: loop(n).block_until_ready(), lambda: [loop(n)], COUNT)


def counter_torch() -> Case:
    """Eager, a Python loop over 0-d tensors."""
    import torch

    n = torch.tensor(COUNT, dtype=torch.int32)

    def call() -> Any:
        i = torch.tensor(0, dtype=torch.int32)
        while i < n:
            i = i + 1
        return i

    return Case(call, lambda: [call().numpy()], COUNT)


def body_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """while i < n: i, x = i + 1, x * 0.5 + 1, with x of 10 float32."""
    n = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [10])
    _, y = tf.while_loop(lambda i, _: tf.less(i, n), lambda i, v: (i + 1, v * 0.5 + 1.0), [tf.constant(0), x])
    return _session_case(open_session(), y, {n: FLOATS, x: _vector()}, FLOATS)


def body_numpy() -> Case:
    """The same with a Python counter and out=."""
    import numpy as np

    x, v = _vector(), np.empty(10, "float32")
    half, one = np.array(0.5, "float32"), np.array(1.0, "float32")

    def call(multiply: Any = np.multiply, add: Any = np.add) -> Any:
        np.copyto(v, x)
        i = 0
        while i < FLOATS:
            i += 1
            multiply(v, half, v)
            add(v, one, v)
        return v

    return Case(call, lambda: [v], FLOATS)


def body_jax() -> Case:
    """lax.while_loop."""
    import jax
    import numpy as np

    def run(n: Any, x: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (np.int32(0), x))[1]

    loop, n, x = jax.jit(run), np.array(FLOATS, "int32"), _vector()
    return Case(lambda: loop(n, x).block_until_ready(), lambda: [loop(n, x)], FLOATS)


def body_torch() -> Case:
    """Eager, a Python loop."""
    import torch

    x = torch.from_numpy(_vector())

    def call() -> Any:
        v, i = x, 0
        while i < FLOATS:
            i += 1
            v = v * 0.5 + 1.0
        return v

    return Case(call, lambda: [call().numpy()], FLOATS)


def nested_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Two loops: the inner one adds 1 to a total m times, the outer one runs it n times."""
    n = tf.placeholder(tf.int32, [])
    m = tf.placeholder(tf.int32, [])

    def outer(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, _: tf.less(j, m), lambda j, t: (j + 1, t + 1), [tf.constant(0), total])
        return i + 1, inner[1]

    _, y = tf.while_loop(lambda i, _: tf.less(i, n), outer, [tf.constant(0), tf.constant(0)])
    return _session_case(open_session(), y, {n: OUTER, m: INNER}, OUTER * INNER)


def nested_numpy() -> Case:
    """The same with 0-d arrays for the total, Python counters."""
    import numpy as np

    one, total = np.array(1, "int32"), np.array(0, "int32")

    def call(add: Any = np.add) -> Any:
        total[...] = 0
        i = 0
        while i < OUTER:
            i += 1
            j = 0
            while j < INNER:
                j += 1
                add(total, one, total)
        return total

    return Case(call, lambda: [total], OUTER * INNER)


def nested_jax() -> Case:
    """lax.while_loop within lax.while_loop."""
    import jax
    import numpy as np

    def run(n: Any, m: Any) -> Any:
        def outer(state: Any) -> Any:
            inner = jax.lax.while_loop(lambda s: s[0] < m, lambda s: (s[0] + 1, s[1] + 1), (np.int32(0), state[1]))
            return state[0] + 1, inner[1]

        return jax.lax.while_loop(lambda s: s[0] < n, outer, (np.int32(0), np.int32(0)))[1]

    loop, n, m = jax.jit(run), np.array(OUTER, "int32"), np.array(INNER, "int32")
    return Case(lambda: loop(n, m).block_until_ready(), lambda: [loop(n, m)], OUTER * INNER)


def gradient_session(tf: ModuleType, open_session: Callable[[], Any], iterations: int, size: int) -> Case:
    """d sum(x_n) / dw of the loop x = x * w + 1; the gradient's own loop needs every x."""
    n = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [size])
    w = tf.placeholder(tf.float32, [size])
    _, y = tf.while_loop(lambda i, _: tf.less(i, n), lambda i, v: (i + 1, v * w + 1.0), [tf.constant(0), x])
    (gradient,) = tf.gradients(tf.reduce_sum(y), [w])
    feed = {n: iterations, x: _vector(size), w: _weights(size)}
    return _session_case(open_session(), gradient, feed, iterations)


def gradient_numpy(iterations: int, size: int) -> Case:
    """Forward into a slab that keeps every x, then backward, with out=."""
    import numpy as np

    w, slab = _weights(size), np.empty((iterations + 1, size), "float32")
    one, g, gw, t = np.array(1.0, "float32"), *(np.empty(size, "float32") for _ in range(3))
    slab[0] = _vector(size)

    def call(multiply: Any = np.multiply, add: Any = np.add) -> Any:
        for i in range(iterations):
            after = slab[i + 1]
            multiply(slab[i], w, after)
            add(after, one, after)
        g[...] = 1
        gw[...] = 0
        for i in range(iterations - 1, -1, -1):
            multiply(slab[i], g, t)
            add(gw, t, gw)
            multiply(g, w, g)
        return gw

    return Case(call, lambda: [gw], iterations)


def gradient_jax(iterations: int, size: int) -> Case:
    """jax.grad through lax.scan of fixed length."""
    import jax

    def last(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda v, _: (v * w + 1.0, None), x, None, length=iterations)[0].sum()

    loop, w, x = jax.jit(jax.grad(last)), _weights(size), _vector(size)
    return Case(lambda: loop(w, x).block_until_ready(), lambda: [loop(w, x)], iterations)


def gradient_torch(iterations: int, size: int) -> Case:
    """Eager autograd through a Python loop."""
    import torch

    x, w = torch.from_numpy(_vector(size)), torch.from_numpy(_weights(size)).requires_grad_()

    def call() -> Any:
        v = x
        for _ in range(iterations):
            v = v * w + 1.0
        return torch.autograd.grad(v.sum(), w)[0]

    return Case(call, lambda: [call().numpy()], iterations)


def nested_gradient_session(tf: ModuleType, open_session: Callable[[], Any], outer: int, inner: int, size: int) -> Case:
    """d sum(x) / dw of n times (m times x = x * w + 1, then x = tanh(x))."""
    n, m = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    x, w = tf.placeholder(tf.float32, [size]), tf.placeholder(tf.float32, [size])

    def body(i: Any, v: Any) -> Any:
        inside = tf.while_loop(lambda j, _: tf.less(j, m), lambda j, u: (j + 1, u * w + 1.0), [tf.constant(0), v])
        return i + 1, tf.tanh(inside[1])

    _, y = tf.while_loop(lambda i, _: tf.less(i, n), body, [tf.constant(0), x])
    (gradient,) = tf.gradients(tf.reduce_sum(y), [w])
    feed = {n: outer, m: inner, x: _vector(size), w: _weights(size)}
    return _session_case(open_session(), gradient, feed, outer * inner)


def nested_gradient_jax(outer: int, inner: int, size: int) -> Case:
    """jax.grad through lax.scan within lax.scan, of fixed lengths."""
    import jax
    import jax.numpy as jnp

    def last(w: Any, x: Any) -> Any:
        def body(v: Any, _: Any) -> Any:
            return jnp.tanh(jax.lax.scan(lambda u, _: (u * w + 1.0, None), v, None, length=inner)[0]), None

        return jax.lax.scan(body, x, None, length=outer)[0].sum()

    loop, w, x = jax.jit(jax.grad(last)), _weights(size), _vector(size)
    return Case(lambda: loop(w, x).block_until_ready(), lambda: [loop(w, x)], outer * inner)


def _sequences(lines: int, steps: int, inputs: int, units: int) -> tuple[Any, Any, Any]:
    """Rows of inputs, a weight and a bias of an LSTM."""
    import numpy as np

    rng = np.random.RandomState(6)
    x = rng.normal(size=(lines, steps, inputs)).astype("float32")
    w = (rng.normal(size=(inputs + units, 4 * units)) * 0.2).astype("float32")
    return x, w, rng.normal(size=4 * units).astype("float32")


def recurrent_session(
    tf: ModuleType, open_session: Callable[[], Any], lines: int, steps: int, inputs: int, units: int
) -> Case:
    """dynamic_rnn of a BasicLSTMCell: the gradient of the sum of squares of its outputs by weight and bias."""
    array, weight, bias = _sequences(lines, steps, inputs, units)
    x = tf.placeholder(tf.float32, array.shape)
    kind = tf.nn.rnn_cell
    outputs, _ = tf.nn.dynamic_rnn(kind.BasicLSTMCell(units), x, dtype=tf.float32)
    variables = tf.trainable_variables()
    gradients = tf.gradients(tf.reduce_sum(outputs * outputs), variables)
    session = open_session()
    for variable, value in zip(variables, (weight, bias), strict=True):
        variable.load(value, session)
    return Case(lambda: session.run(gradients, {x: array}), lambda: session.run(gradients, {x: array}), steps)


def arrays_session(
    tf: ModuleType, open_session: Callable[[], Any], lines: int, steps: int, inputs: int, units: int
) -> Case:
    """The same cell in a while_loop that reads its inputs from a TensorArray and writes its outputs to one."""
    array, weight, bias = _sequences(lines, steps, inputs, units)
    x = tf.placeholder(tf.float32, array.shape)
    w, b = (tf.placeholder(tf.float32, values.shape) for values in (weight, bias))
    rows = tf.TensorArray(tf.float32, size=steps).unstack(tf.transpose(x, [1, 0, 2]))

    def body(i: Any, c: Any, h: Any, out: Any) -> Any:
        z = tf.matmul(tf.concat([rows.read(i), h], 1), w) + b
        into, new, forget, leave = tf.split(z, 4, 1)
        c = c * tf.sigmoid(forget + 1.0) + tf.sigmoid(into) * tf.tanh(new)
        h = tf.tanh(c) * tf.sigmoid(leave)
        return i + 1, c, h, out.write(i, h)

    zeros, out = tf.zeros([lines, units]), tf.TensorArray(tf.float32, size=steps)
    outputs = tf.while_loop(lambda i, *_: tf.less(i, steps), body, [tf.constant(0), zeros, zeros, out])[3].stack()
    gradients = tf.gradients(tf.reduce_sum(outputs * outputs), [w, b])
    session, fed = open_session(), {x: array, w: weight, b: bias}
    return Case(lambda: session.run(gradients, fed), lambda: session.run(gradients, fed), steps)


def recurrent_jax(lines: int, steps: int, inputs: int, units: int) -> Case:
    """jax.grad through lax.scan."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    array, weight, bias = _sequences(lines, steps, inputs, units)
    rows = np.ascontiguousarray(array.transpose(1, 0, 2))

    def loss(w: Any, b: Any, x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            c, h = state
            i, j, f, o = jnp.split(jnp.concatenate([row, h], 1) @ w + b, 4, 1)
            c = c * jax.nn.sigmoid(f + 1.0) + jax.nn.sigmoid(i) * jnp.tanh(j)
            h = jnp.tanh(c) * jax.nn.sigmoid(o)
            return (c, h), h

        zeros = jnp.zeros((lines, units), "float32")
        outputs = jax.lax.scan(step, (zeros, zeros), x)[1]
        return (outputs * outputs).sum()

    gradient = jax.jit(jax.grad(loss, (0, 1)))
    return Case(
        lambda: jax.block_until_ready(gradient(weight, bias, rows)), lambda: list(gradient(weight, bias, rows)), steps
    )


BEST_TENSORFLOW = ("tensorflow", "tensorflow/flow_v2")
_sessions = partial(session_builders, variants=[LLVM], tensorflow_variants=("flow_v2",))


def _structured(at_most: float, note: str = "") -> Bar:
    return Bar("P4", BEST_TENSORFLOW, at_most, note=f"structured, NumPy kernels{note}")


def _gradient(name: str, iterations: int, size: int, note: str) -> Program:
    shape = {"iterations": iterations, "size": size}
    builders = {**_sessions(partial(gradient_session, **shape)), "numpy": partial(gradient_numpy, **shape)}
    builders |= {"torch": partial(gradient_torch, **shape), "jax": partial(gradient_jax, **shape)}
    summary = f"gradient through {iterations} iterations of x * w + 1 with x [{size}] float32, forward and backward"
    compiled = Bar("P4", ("jax",), 5.0, subject="graphdock/llvm", note=f"whole loop compiled, with gradient{note}")
    bars = (_structured(0.6, f", with gradient{note}"), compiled)
    return Program(name, summary, builders, bars, unit="iteration", rtol=1e-3, atol=1e-4)


def _nested_gradient() -> Program:
    builders = {
        **_sessions(partial(nested_gradient_session, **NESTED)),
        "jax": partial(nested_gradient_jax, **NESTED),
    }
    summary = "gradient through {outer} times a loop of {inner} of x * w + 1 with x [{size}] float32".format(**NESTED)
    compiled = Bar("P4", ("jax",), 5.0, subject="graphdock/llvm", note="whole nest compiled, with gradient")
    bars = (_structured(0.6, ", second shape, with gradient"), compiled)
    return Program("nested_gradient", summary, builders, bars, unit="iteration", reference="jax", rtol=1e-3, atol=1e-4)


def _recurrent(
    name: str, lines: int, steps: int, inputs: int, units: int, session: Callable[..., Case] = recurrent_session
) -> Program:
    shape = {"lines": lines, "steps": steps, "inputs": inputs, "units": units}
    builders = session_builders(partial(session, **shape), variants=[LLVM])
    by_hand = "" if session is recurrent_session else ", over TensorArrays"
    summary = f"LSTM of {units} units over {steps} rows of [{lines}, {inputs}]{by_hand}, and its gradient"
    bars = (Bar("P4", ("jax",), 2.0, subject="graphdock/llvm", note="whole loop compiled, with gradient"),)
    builders |= {"jax": partial(recurrent_jax, **shape)}
    return Program(name, summary, builders, bars, unit="iteration", reference="jax", rtol=1e-2, atol=1e-2)


PROGRAMS = (
    Program(
        "counter",
        f"while i < {COUNT}: i + 1, int32",
        {**_sessions(counter_session), "numpy": counter_numpy, "torch": counter_torch, "jax": counter_jax},
        (_structured(0.75),),
        unit="iteration",
    ),
    Program(
        "body",
        f"while i < {FLOATS}: i + 1, x * 0.5 + 1 with x [10] float32",
        {**_sessions(body_session), "numpy": body_numpy, "torch": body_torch, "jax": body_jax},
        (_structured(0.75), Bar("P4", ("jax",), 5.0, subject="graphdock/llvm", note="whole loop compiled")),
        unit="iteration",
    ),
    Program(
        "nested",
        f"{OUTER} times a loop of {INNER}: total + 1, int32",
        {**_sessions(nested_session), "numpy": nested_numpy, "jax": nested_jax},
        (_structured(0.75, ", second shape"),),
        unit="iteration",
    ),
    *(_gradient(name, *shape, f", of {shape[0]} iterations") for name, shape in GRADIENTS.items()),
    _nested_gradient(),
    *(_recurrent(name, *shape) for name, shape in RECURRENT.items()),
    *(_recurrent(name, *shape, arrays_session) for name, shape in ARRAYS.items()),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("while_loop", PROGRAMS))
