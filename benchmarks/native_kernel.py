"""B19: the SO(3) tensor product in C beside NumPy's, and what other Python threads do meanwhile.

The kernels are those of examples/plugins/so3_native, compiled for the run. ``graphdock`` runs the C kernel in a session,
``graphdock/numpy`` the package's NumPy kernel in the same session, ``numpy`` that arithmetic by hand.

After the tables: how fast a loop of another Python thread runs while a step computes, as a share of its speed alone.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.environments import REPOSITORY
from benchmarks.program import Bar, Case, Program

EXAMPLE = REPOSITORY / "examples" / "plugins" / "so3_native"
PINS = {"C": {}, "NumPy": {"so3.TensorProduct@cpu": "so3.tensor_product_numpy"}}


def _package() -> Any:
    """The example's package, compiled into a folder of its own, its plugin registered in the default host."""
    from graphdock.plugin.host import default_host
    from graphdock_native import compile_library

    if "graphdock_so3" not in sys.modules:
        folder = Path(tempfile.mkdtemp())
        package = folder / "graphdock_so3"
        shutil.copytree(EXAMPLE / "src" / "graphdock_so3", package, ignore=shutil.ignore_patterns("_native"))
        compile_library(EXAMPLE.glob("native/*.c"), package / "_native" / "so3")
        sys.path.insert(0, str(folder))
        import graphdock_so3.plugin

        default_host().register("so3", graphdock_so3.plugin)
    import graphdock_so3

    return graphdock_so3


def _data(degree: int, batch: int, channels: int) -> list[Any]:
    import numpy as np

    random = np.random.RandomState(5)
    return [random.normal(size=(batch, 2 * l + 1, channels)).astype("float32") for _ in "ab" for l in range(degree + 1)]


def product_session(degree: int, batch: int, channels: int, kernel: str = "C") -> Case:
    """Both factors fed, every part of the product fetched."""
    package = _package()
    import graphdock as tf

    data = _data(degree, batch, channels)
    parts = [tf.placeholder(tf.float32, v.shape) for v in data]
    out = list(package.tensor_product(parts[: degree + 1], parts[degree + 1 :], L=degree))
    session = tf.Session(config=tf.SessionConfig(kernels=PINS[kernel]))
    feed = dict(zip(parts, data, strict=True))
    return Case(lambda: session.run(out, feed), lambda: session.run(out, feed))


def product_numpy(degree: int, batch: int, channels: int) -> Case:
    """An einsum per coupling, added into the parts."""
    _package()
    import numpy as np
    from graphdock_so3.coefficients import couplings

    data, n = _data(degree, batch, channels), degree + 1
    terms = [(l1, l2, l, c.astype("float32")) for l1, l2, l, c in couplings(degree)]

    def call() -> list[Any]:
        outs = [np.zeros_like(v) for v in data[:n]]
        for l1, l2, l, c in terms:
            outs[l] += np.einsum("xyz,bxc,byc->bzc", c, data[l1], data[n + l2])
        return outs

    return Case(call, call)


def _program(name: str, degree: int, batch: int, channels: int) -> Program:
    size = (degree, batch, channels)
    return Program(
        name,
        f"product of two vectors of degree {degree}, {batch} examples, {channels} channels, float32",
        {
            "graphdock": partial(product_session, *size),
            "graphdock/numpy": partial(product_session, *size, kernel="NumPy"),
            "numpy": partial(product_numpy, *size),
        },
        (Bar("B19", ("graphdock/numpy", "numpy"), 1.0, note="faster than NumPy"),),
        rtol=1e-3,
        atol=1e-3,
    )


PROGRAMS = (_program("small", 2, 8, 16), _program("layer", 4, 64, 32))


def loop_speed(work: Any = None) -> float:
    """Turns per second of a Python loop in a thread of its own, while ``work`` is called over and over on this one."""
    turns, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1

    thread = threading.Thread(target=count)
    start = time.perf_counter()
    thread.start()
    while time.perf_counter() - start < 1.0:
        if work is None:
            time.sleep(0.05)
        else:
            work()
    done.set()
    thread.join()
    return turns[0] / (time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> int:
    """The tables, then what another thread does meanwhile."""
    status = benchmark_main("native_kernel", PROGRAMS, arguments)
    call = product_session(4, 512, 32).call
    share = loop_speed(call) / loop_speed()
    print(f"another Python thread, while steps of the C kernel run: {share:.0%} of its speed alone")
    return status


if __name__ == "__main__":
    sys.exit(main())
