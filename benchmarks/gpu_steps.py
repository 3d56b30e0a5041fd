"""Measurements of benchmarks/gpu.py, as each framework computes it: training steps, small steps, products, copies.

A step is a function of nothing that returns when what it computes is there; training steps return their loss. Whole networks are
those of benchmarks/networks.py, fed from the host in every step. In ``bfloat16`` weights stay float32 and are cast in the step, in
``tf32`` operands of float32 products may be rounded, in all frameworks alike.

Copies are of arrays as programs have them; PyTorch's are of pinned memory, which is what the bus gives. PyTorch's products are
cuBLAS's.

Single kernels are those of benchmarks/gpu_kernels.py.

Devices: ``cuda``; ``emulated``, graphdock's GPU that runs on the CPU, and ``cpu`` for the others: to try this file out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu_kernels import CASES, graphdock_kernel, torch_kernel

__all__ = [
    "CONVOLVING",
    "COPY",
    "FRAMEWORKS",
    "FUSING",
    "NETWORKS",
    "ONLY",
    "PLAIN",
    "PRECISIONS",
    "Asked",
    "Step",
    "make",
]

Step = Callable[[], Any]
PRECISIONS = ("float32", "tf32", "bfloat16")
#: Network -> optimizer, sizes, and sizes to try it out with.
NETWORKS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "transformer": (
        "Adam",
        {"batch": 32, "length": 128, "vocabulary": 5000, "width": 512, "heads": 8, "layers": 6},
        {"batch": 1, "length": 8, "vocabulary": 30, "width": 16, "heads": 2, "layers": 1},
    ),
    "lstm_lm": (
        "GradientDescent",
        {"batch": 64, "steps": 20, "vocabulary": 10000, "units": 512, "layers": 2, "unrolled": True},
        {"batch": 2, "steps": 2, "vocabulary": 20, "units": 8, "layers": 2, "unrolled": True},
    ),
    **{
        name: ("Momentum", {"batch": batch}, {"batch": 1, "narrow": 32, "classes": 8})
        for name, batch in (("alexnet", 128), ("overfeat", 64), ("vgg", 32), ("googlenet", 64))
    },
}
#: Networks that convolve: what cuDNN, where it is installed, does for graphdock is seen beside its own kernels.
CONVOLVING = ("alexnet", "overfeat", "vgg", "googlenet")
_ADAM = {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
_SETTINGS = {
    "GradientDescent": {"learning_rate": 0.01},
    "Momentum": {"learning_rate": 1e-4, "momentum": 0.9},
    "Adam": _ADAM,
}
#: What is no network: small steps, copies, products; with what it is counted in.
PLAIN = {
    "null step": "us",
    "100 launches": "us",
    "copy to the GPU": "GB/s",
    "copy from the GPU": "GB/s",
    "copy on the GPU": "GB/s",
    "product 1024": "TFLOP/s",
    "product 4096": "TFLOP/s",
    "product 8192": "TFLOP/s",
}
#: What memory-bound kernels are compared with: what it reads and what it writes counts.
COPY = "copy on the GPU"
#: Frameworks that compute single kernels, and copy on the GPU.
FUSING = ("graphdock", "graphdock/triton", "graphdock/persistent", "graphdock/tiles", "torch", "torch/compile")
#: Kernels that end in a product and what follows it.
_DENSE = ("dense layer", "dense layer with gradient")
#: Frameworks that have rows of some programs alone. Products of Triton's library are of programs that stay, or of one to a tile.
ONLY: Mapping[str, Sequence[str]] = {
    "graphdock/own": CONVOLVING,
    "graphdock/persistent": _DENSE,
    "graphdock/tiles": _DENSE,
}
#: Products that follow one another in one step, and copies on the GPU.
CHAIN, COPIES = 10, 4


class Asked(NamedTuple):
    """One measurement. ``tiny``: with sizes to try it out with."""

    program: str
    precision: str
    device: str = "cuda"
    tiny: bool = False

    @property
    def count(self) -> int:
        """Elements of a copy, or rows of a square matrix."""
        if self.program.startswith("copy"):
            return 1 << (10 if self.tiny else 26)
        return 32 if self.tiny else int(self.program.split()[1])

    def per_second(self, seconds: float) -> float:
        """A step's seconds in the program's unit; microseconds stay a time."""
        unit = self.unit
        if self.program in CASES:
            case = CASES[self.program]
            done = case.work(**case.tiny) if self.tiny else case.work(**case.sizes) * case.count
            return done / seconds / (1e9 if unit == "GB/s" else 1e12)
        if unit == "GB/s":
            return self.count * (8 * COPIES if self.program == COPY else 4) / seconds / 1e9
        return CHAIN * 2 * self.count**3 / seconds / 1e12 if unit == "TFLOP/s" else seconds * 1e6

    @property
    def unit(self) -> str:
        """Return what the program is counted in."""
        return CASES[self.program].unit if self.program in CASES else PLAIN.get(self.program, "us")

    @property
    def sizes(self) -> Mapping[str, Any]:
        return NETWORKS[self.program][2 if self.tiny else 1]

    @property
    def optimizer(self) -> tuple[str, Mapping[str, float]]:
        name = NETWORKS[self.program][0]
        return name, _SETTINGS[name]


# -- graphdock


@cache
def _host(device: str) -> Any:
    from graphdock.plugin.host import Host

    host = Host()
    if device == "emulated":
        from graphdock_cuda.testing import toolkit
        from graphdock_cuda.testing.install import install

        install(host, toolkit())
    return host


def graphdock_step(
    asked: Asked, backends: tuple[str, ...] = ("cuda", "cpu"), cudnn: str = "auto", persistent: str = "auto"
) -> Step:
    import graphdock as tf

    backends = ("cpu",) if asked.device == "cpu" else backends
    rounded = {"matmul_precision": "tf32"} if asked.precision == "tf32" else {}
    options = {"cuda": {"cudnn": cudnn} | rounded, "triton": {"persistent": persistent} | rounded}
    config = tf.SessionConfig(backends=backends, options={name: options[name] for name in backends if name in options})
    host = _host(asked.device)
    with tf.Graph(host=host).as_default() as graph:
        session = tf.Session(graph=graph, config=config, host=host)
        if asked.program in CASES:
            return graphdock_kernel(tf, session, CASES[asked.program], asked.tiny)[0]
        made = _network if asked.program in NETWORKS else _plain
        return made(tf, session, asked)


def _network(tf: Any, session: Any, asked: Asked) -> Step:
    from benchmarks.network_sessions import build, initial_value

    network = build(tf, asked.program, asked.sizes, "bfloat16" if asked.precision == "bfloat16" else None)
    (loss,) = network.losses
    name, settings = asked.optimizer
    train = getattr(tf.train, f"{name}Optimizer")(**settings).minimize(loss)
    session.run(tf.global_variables_initializer())
    for variable in tf.trainable_variables():
        variable.load(initial_value(variable.op.name, variable.shape.as_list()), session)
    call = session.make_callable([loss, train], feed_list=list(network.feed))
    arrays = list(network.feed.values())
    return lambda: float(call(*arrays)[0])


def _plain(tf: Any, session: Any, asked: Asked) -> Step:
    if asked.program == "null step":
        x = tf.placeholder(tf.float32, [1])
        call, one = session.make_callable(x + 1.0, feed_list=[x]), np.ones(1, np.float32)
        return lambda: call(one)
    if asked.program == "100 launches":
        held = tf.Variable(tf.zeros([64, 64]))
        y: Any = held.read_value()
        for _ in range(100):  # no two of them become one kernel
            y = tf.cumsum(y)
        return _running(tf, session, tf.reduce_sum(y))
    if asked.program.startswith("copy"):
        array = np.ones(asked.count, np.float32)
        held = tf.Variable(array)
        session.run(tf.global_variables_initializer())
        if asked.program == "copy from the GPU":
            return lambda: session.run(held)
        if asked.program == COPY:
            others = [tf.Variable(tf.zeros(asked.count)) for _ in range(COPIES)]
            return _running(tf, session, tf.group(*[other.assign(held).op for other in others]))
        x = tf.placeholder(tf.float32, [asked.count])
        call = session.make_callable([held.assign(x).op], feed_list=[x])
        return lambda: call(array)
    n, dtype = asked.count, tf.bfloat16 if asked.precision == "bfloat16" else tf.float32
    factor = tf.Variable(tf.cast(tf.eye(n), dtype))
    product: Any = factor.read_value()
    for _ in range(CHAIN):
        product = tf.matmul(product, factor)
    return _running(tf, session, product[0, 0])


def _running(tf: Any, session: Any, fetched: Any) -> Step:
    session.run(tf.global_variables_initializer())
    call = session.make_callable(fetched)
    return lambda: call()


# -- PyTorch


def torch_step(asked: Asked, mode: str) -> Step:
    import torch

    where = torch.device("cuda" if asked.device == "cuda" else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = asked.precision == "tf32"
    wrap: Callable[[Any], Any] = {
        "eager": lambda f: f,
        "compile": torch.compile,
        "graphs": lambda f: torch.compile(f, mode="reduce-overhead"),
    }[mode]

    def there(value: Any) -> Any:
        return value.to(where)

    if asked.program in CASES:
        return torch_kernel(torch, where, CASES[asked.program], asked.tiny, wrap)[0]
    if asked.program in NETWORKS:
        return _torch_network(torch, asked, where, wrap)
    with torch.no_grad():
        if asked.program.startswith("copy"):
            host = torch.ones(asked.count)
            host = host.pin_memory() if where.type == "cuda" else host
            far = there(host).clone()
            if asked.program == "copy from the GPU":
                return lambda: host.copy_(far)
            if asked.program == COPY:
                others = [far.clone() for _ in range(COPIES)]
                return lambda: _done(torch, where, [other.copy_(far) for other in others])
            return lambda: _done(torch, where, far.copy_(host, non_blocking=True))
        if asked.program == "null step":
            one, add = torch.ones(1), wrap(lambda x: x + 1.0)
            return lambda: add(there(one)).cpu()
        if asked.program == "100 launches":
            square = there(torch.zeros(64, 64))
            return _item(torch, wrap(lambda x: _repeated(x, 100, lambda y: torch.cumsum(y, 0)).sum()), square)
        dtype = torch.bfloat16 if asked.precision == "bfloat16" else torch.float32
        factor = there(torch.eye(asked.count, dtype=dtype))
        return _item(torch, wrap(lambda x: _repeated(x, CHAIN, lambda y: y @ x)[0, 0]), factor)


def _repeated(x: Any, times: int, what: Callable[[Any], Any]) -> Any:
    for _ in range(times):
        x = what(x)
    return x


def _item(torch: Any, function: Callable[[Any], Any], operand: Any) -> Step:
    def call() -> Any:
        with torch.no_grad():
            return function(operand).item()

    return call


def _done(torch: Any, where: Any, value: Any) -> Any:
    if where.type == "cuda":
        torch.cuda.synchronize()
    return value


def _torch_network(torch: Any, asked: Asked, where: Any, wrap: Callable[[Any], Any]) -> Step:
    from benchmarks.network_sessions import DATA, initial_value
    from benchmarks.network_texts import TEXTS, Parameters
    from benchmarks.network_torch import Torch
    from benchmarks.networks import torch_optimizer

    f, text, sizes = Torch(last=True, device=where), TEXTS[asked.program], asked.sizes
    half = torch.bfloat16 if asked.precision == "bfloat16" else None
    fed = [f.fed(array) for array in DATA[asked.program](**sizes)]
    fed = [x.pin_memory() for x in fed] if where.type == "cuda" else fed

    def sent() -> list[Any]:
        return [x.to(where, non_blocking=True) for x in fed]

    made = Parameters({}, lambda name, shape: f.parameter(initial_value(name, shape)))
    with torch.no_grad():
        text(f, made, *sent(), **sizes)
    names, leaves = list(made.all), list(made.all.values())
    f.narrow = half

    def forward(leaves: Any, fed: Any) -> Any:
        cast = [x.to(half) if half is not None else x for x in leaves]
        floats = [x.to(half) if half is not None and x.dtype is torch.float32 else x for x in fed]
        return text(f, Parameters(dict(zip(names, cast, strict=True))), *floats, **sizes)[0]

    run = wrap(forward)
    optimizer = torch_optimizer(*asked.optimizer, leaves)

    def call() -> float:
        loss = run(leaves, sent())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.item())

    return call


# -- JAX


def jax_step(asked: Asked) -> Step:
    import jax
    import jax.numpy as jnp

    precision = {"float32": "highest", "tf32": "tensorfloat32", "bfloat16": "default"}[asked.precision]
    jax.config.update("jax_default_matmul_precision", precision)
    half = jnp.bfloat16 if asked.precision == "bfloat16" else jnp.float32
    if asked.program in NETWORKS:
        return _jax_network(jax, jnp, asked, half)
    if asked.program.startswith("copy"):
        array = np.ones(asked.count, np.float32)
        if asked.program == "copy to the GPU":
            return lambda: jax.block_until_ready(jax.device_put(array))
        add, far = jax.jit(lambda x: x + 0.0), jnp.asarray(array)
        return lambda: np.asarray(add(far))  # an array that was fetched once is not fetched again
    if asked.program == "null step":
        add, one = jax.jit(lambda x: x + 1.0), np.ones(1, np.float32)
        return lambda: np.asarray(add(one))
    if asked.program == "100 launches":
        run = jax.jit(lambda x: _repeated(x, 100, lambda y: jnp.cumsum(y, 0)).sum())
        square = jnp.zeros((64, 64))
        return lambda: float(run(square))
    chain = jax.jit(lambda x: _repeated(x, CHAIN, lambda y: y @ x)[0, 0])
    factor = jnp.eye(asked.count, dtype=half)
    return lambda: float(chain(factor))


def _jax_network(jax: Any, jnp: Any, asked: Asked, half: Any) -> Step:
    from benchmarks.network_jax import Jax
    from benchmarks.network_sessions import DATA, initial_value
    from benchmarks.network_texts import TEXTS, Parameters
    from benchmarks.networks import jax_update

    f, text, sizes = Jax(half), TEXTS[asked.program], asked.sizes
    fed = DATA[asked.program](**sizes)
    made = Parameters({}, initial_value)
    jax.eval_shape(lambda: text(f, made, *map(jnp.asarray, fed), **sizes))
    weights = {name: f.parameter(value) for name, value in made.all.items()}

    def forward(weights: Any, fed: Any) -> Any:
        cast = {name: w.astype(half) for name, w in weights.items()}
        floats = [x.astype(half) if x.dtype == jnp.float32 else x for x in fed]
        return text(f, Parameters(cast), *floats, **sizes)[0].astype(jnp.float32)

    update, state = jax_update(forward, weights, *asked.optimizer)

    def call() -> float:
        nonlocal state
        *state, loss = update(*state, fed)
        return float(loss)

    return call


#: Framework -> what makes a step of it. The first is what the others are compared with.
FRAMEWORKS: Mapping[str, Callable[[Asked], Step]] = {
    "graphdock": graphdock_step,
    "torch": lambda asked: torch_step(asked, "eager"),
    "torch/compile": lambda asked: torch_step(asked, "compile"),
    "torch/graphs": lambda asked: torch_step(asked, "graphs"),
    "jax": jax_step,
    "graphdock/triton": lambda asked: graphdock_step(asked, ("triton", "cuda", "cpu")),
    "graphdock/persistent": lambda asked: graphdock_step(asked, ("triton", "cuda", "cpu"), persistent="always"),
    "graphdock/tiles": lambda asked: graphdock_step(asked, ("triton", "cuda", "cpu"), persistent="never"),
    "graphdock/own": lambda asked: graphdock_step(asked, cudnn="never"),
}


def make(framework: str, asked: Asked) -> Step:
    """The step of a framework. Raises whatever the framework raises where it can't."""
    return FRAMEWORKS[framework](asked)
