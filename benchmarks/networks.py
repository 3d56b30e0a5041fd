"""Whole networks: one training step of examples/, and inference of a MiniLM-like encoder, at sizes for two cores.

graphdock and TensorFlow run the texts of examples/ (network_sessions.py), PyTorch and JAX those of network_texts.py, on the same
weights and data; every framework must find the same loss after three steps. TensorFlow runs as a Session and with XLA's automatic
clustering, PyTorch eagerly, with its images in channels_last where there are images, and compiled; ONNX Runtime infers only.
Below each table stands what the dearest kernels of graphdock's step take.

    python -m benchmarks.networks --programs transformer,mlp --rounds 5
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import LLVM, ONEDNN, session_builders
from benchmarks.program import Bar, Case, Program

__all__ = ["PROGRAMS"]

Sizes = Mapping[str, Any]

#: Kernels of a step that are named with their times.
SHOWN = 6

#: Optimizer of a training step -> its settings, as TensorFlow names them.
OPTIMIZERS: dict[str, dict[str, float]] = {
    "GradientDescent": {"learning_rate": 0.01},
    "Momentum": {"learning_rate": 1e-4, "momentum": 0.9},
    "Adam": {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
}


def in_session(
    tf: ModuleType, open_session: Callable[[], Any], network: str, sizes: Sizes, optimizer: str | None
) -> Case:
    """A step that returns the loss; without an optimizer, the output. Of graphdock's the parts are its dearest kernels."""
    from benchmarks.network_sessions import build, initial_value

    graph = build(tf, network, sizes)
    (fetch,) = graph.losses
    fetches = fetch
    if optimizer is not None:
        fetches = [fetch, getattr(tf.train, f"{optimizer}Optimizer")(**OPTIMIZERS[optimizer]).minimize(fetch)]
    session = open_session()
    session.run(tf.global_variables_initializer())
    for variable in tf.trainable_variables():
        variable.load(initial_value(variable.op.name, variable.shape.as_list()), session)
    case = Case(lambda: session.run(fetches, graph.feed), lambda: [session.run(fetch, graph.feed)])
    return replace(case, parts=_kernels(session, fetches, graph.feed)) if tf.__name__ == "graphdock" else case


def _kernels(session: Any, fetches: Any, feed: Any) -> Callable[[], Mapping[str, float]]:
    """Seconds per step of the dearest kernels and of all others together, from two traced steps that run when it is first asked."""

    @cache
    def parts() -> Mapping[str, float]:
        from graphdock_profiler import profile

        rows = profile(session, fetches, feed, steps=2).rows("kernel")
        rest = sum(row.seconds for row in rows[SHOWN:])
        return {row.name: row.seconds for row in rows[:SHOWN]} | ({"others": rest} if len(rows) > SHOWN else {})

    return parts


def in_torch(network: str, sizes: Sizes, optimizer: str | None, last: bool = False, compiled: bool = False) -> Case:
    """Forward, backward and one of PyTorch's optimizers, of which the fused one is the fastest."""
    import torch

    from benchmarks.network_sessions import DATA, initial_value
    from benchmarks.network_texts import TEXTS, Parameters
    from benchmarks.network_torch import Torch

    f, text = Torch(last), TEXTS[network]
    fed = [f.fed(array) for array in DATA[network](**sizes)]
    made = Parameters({}, lambda name, shape: f.parameter(initial_value(name, shape)))
    with torch.no_grad():
        text(f, made, *fed, **sizes)
    p = Parameters(made.all)

    def forward(*fed: Any) -> Any:
        return text(f, p, *fed, **sizes)[0]

    run = torch.compile(forward) if compiled else forward
    if optimizer is None:

        def infer() -> Any:
            with torch.inference_mode():
                return run(*fed)

        return Case(infer, lambda: [infer().numpy()])
    chosen = torch_optimizer(optimizer, OPTIMIZERS[optimizer], list(p.all.values()))

    def call() -> Any:
        loss = run(*fed)
        loss.backward()
        chosen.step()
        chosen.zero_grad()
        return loss

    def values() -> list[Any]:
        with torch.no_grad():
            return [forward(*fed).numpy()]

    return Case(call, values)


def torch_optimizer(optimizer: str, settings: Mapping[str, float], leaves: Sequence[Any]) -> Any:
    """PyTorch's, fused. settings: as OPTIMIZERS has them."""
    import torch

    if optimizer == "Adam":
        betas = (settings["beta1"], settings["beta2"])
        return torch.optim.Adam(leaves, settings["learning_rate"], betas, settings["epsilon"], fused=True)
    return torch.optim.SGD(leaves, settings["learning_rate"], settings.get("momentum", 0.0), fused=True)


def in_jax(network: str, sizes: Sizes, optimizer: str | None) -> Case:
    """jax.jit of the whole step with donated state; the call waits for the loss."""
    import jax

    from benchmarks.network_jax import Jax
    from benchmarks.network_sessions import DATA, initial_value
    from benchmarks.network_texts import TEXTS, Parameters

    f, text = Jax(), TEXTS[network]
    fed = [f.fed(array) for array in DATA[network](**sizes)]
    made = Parameters({}, initial_value)
    jax.eval_shape(lambda: text(f, made, *fed, **sizes))
    weights = {name: f.parameter(value) for name, value in made.all.items()}

    def forward(weights: Any, fed: Any) -> Any:
        return text(f, Parameters(weights), *fed, **sizes)[0]

    infer = jax.jit(forward)
    if optimizer is None:
        return Case(lambda: jax.block_until_ready(infer(weights, fed)), lambda: [infer(weights, fed)])
    update, state = jax_update(forward, weights, optimizer, OPTIMIZERS[optimizer])

    def call() -> Any:
        *state[:], loss = update(*state, fed)
        return jax.block_until_ready(loss)

    return Case(call, lambda: [infer(state[0], fed)])


def jax_update(
    forward: Callable[..., Any], weights: Mapping[str, Any], optimizer: str, settings: Mapping[str, float]
) -> tuple[Callable[..., Any], list[Any]]:
    """A compiled training step ``(*state, fed) -> (*state, loss)``, and its first state, which it takes over.

    forward: weights by name, and what is fed, to the loss. settings: of the optimizer, as OPTIMIZERS has them.
    """
    import jax
    import jax.numpy as jnp

    rate = settings["learning_rate"]

    def step(weights: Any, slots: Any, count: Any, fed: Any) -> Any:
        loss, gradients = jax.value_and_grad(forward)(weights, fed)
        if optimizer == "GradientDescent":
            return {k: w - rate * gradients[k] for k, w in weights.items()}, slots, count, loss
        if optimizer == "Momentum":
            slots = {k: (settings["momentum"] * m + gradients[k],) for k, (m,) in slots.items()}
            return {k: w - rate * slots[k][0] for k, w in weights.items()}, slots, count, loss
        one, two, count = settings["beta1"], settings["beta2"], count + 1.0
        slots = {
            k: (m + (1 - one) * (gradients[k] - m), v + (1 - two) * (gradients[k] ** 2 - v))
            for k, (m, v) in slots.items()
        }
        at = rate * jnp.sqrt(1 - two**count) / (1 - one**count)
        moved = {k: w - at * slots[k][0] / (jnp.sqrt(slots[k][1]) + settings["epsilon"]) for k, w in weights.items()}
        return moved, slots, count, loss

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    slots = {"GradientDescent": 0, "Momentum": 1, "Adam": 2}[optimizer]
    zeros = {k: tuple(jnp.zeros_like(w) for _ in range(slots)) for k, w in weights.items()}
    return compiled, [dict(weights), zeros, jnp.zeros(())]


def in_onnxruntime(network: str, sizes: Sizes) -> Case:
    """ONNX Runtime with all of its graph optimisations."""
    import onnxruntime

    from benchmarks.network_onnx import encoder
    from benchmarks.network_sessions import DATA

    (tokens,) = DATA[network](**sizes)
    session = onnxruntime.InferenceSession(encoder(**sizes), providers=["CPUExecutionProvider"])
    return Case(lambda: session.run(None, {"tokens_fed": tokens}), lambda: session.run(None, {"tokens_fed": tokens}))


def _program(
    name: str,
    summary: str,
    network: str,
    sizes: Sizes,
    optimizer: str | None,
    bars: tuple[Bar, ...],
    images: bool = False,
) -> Program:
    shape: dict[str, Any] = {"network": network, "sizes": sizes, "optimizer": optimizer}
    builders = session_builders(partial(in_session, **shape), [LLVM, ONEDNN], ("xla",))
    builders["torch"] = partial(in_torch, **shape)
    if images:
        builders["torch/channels_last"] = partial(in_torch, **shape, last=True)
    builders["torch/compile"] = partial(in_torch, **shape, last=images, compiled=True)
    builders["jax"] = partial(in_jax, **shape)
    if optimizer is None:
        builders["onnxruntime"] = partial(in_onnxruntime, network, sizes)
    return Program(name, summary, builders, bars, reference="tensorflow", check_calls=3, rtol=2e-3, atol=1e-3)


def _of_session(at_most: float) -> tuple[Bar, ...]:
    return (Bar("P8", ("tensorflow",), at_most, note="Session"),)


def _of_best(at_most: float, *bars: Bar, more: tuple[str, ...] = ()) -> tuple[Bar, ...]:
    return Bar("P8", (*_BEST, *more), at_most), *bars


def _compiled(at_most: float, *peers: str) -> Bar:
    return Bar("P8", peers or _BEST, at_most, subject="graphdock/llvm", note="compiled")


_BEST = ("tensorflow", "tensorflow/xla", "torch", "torch/compile", "jax")
_MINILM = {"length": 128, "vocabulary": 30522, "width": 384, "heads": 12, "layers": 6}

PROGRAMS = (
    *(
        _program(
            name,
            f"{name}, batch {batch}, momentum: {size}x{size} images, published widths",
            name,
            {"batch": batch},
            "Momentum",
            (
                *_of_session(at_most),
                Bar("P8", ("tensorflow",), 1.05, subject="graphdock/onednn", note="Session, oneDNN"),
            ),
            images=True,
        )
        for name, batch, size, at_most in (
            ("alexnet", 16, 227, 1.6),
            ("overfeat", 8, 231, 1.2),
            ("vgg", 4, 224, 1.2),
            ("googlenet", 8, 224, 1.6),
        )
    ),
    _program(
        "digits_cnn",
        "8x8 digits, batch 64, convolutions of 16 and 32 channels, Adam",
        "digits_cnn",
        {"batch": 64, "width": 16},
        "Adam",
        (),
        images=True,
    ),
    _program(
        "lstm_lm",
        "LSTM 512-512 unrolled over 20 words of 10,000, batch 20, full softmax, gradient descent",
        "lstm_lm",
        {"batch": 20, "steps": 20, "vocabulary": 10000, "units": 512, "layers": 2, "unrolled": True},
        "GradientDescent",
        _of_best(0.95, _compiled(0.75, "tensorflow/xla")),
    ),
    _program(
        "transformer",
        "encoder of 4 layers, width 256, 4 heads, 128 tokens of 5,000, batch 16, Adam",
        "transformer",
        {"batch": 16, "length": 128, "vocabulary": 5000, "width": 256, "heads": 4, "layers": 4},
        "Adam",
        _of_best(1.2, _compiled(1.0)),
    ),
    _program(
        "mlp",
        "784-1024-1024-10, batch 128, Adam",
        "mlp",
        {"batch": 128, "inputs": 784, "hidden": 1024},
        "Adam",
        _of_best(1.25, _compiled(1.0, "jax")),
    ),
    *(
        _program(
            f"minilm_b{batch}",
            f"inference: encoder of 6 layers, width 384, 12 heads, 128 tokens of 30,522, batch {batch}",
            "minilm",
            {"batch": batch, **_MINILM},
            None,
            _of_best(1.4, _compiled(bar, "onnxruntime"), more=("onnxruntime",)),
        )
        for batch, bar in ((1, 1.1), (8, 1.0))
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("networks", PROGRAMS, rounds=5, seconds=1.0))
