"""Common parts of the graphdock and TensorFlow workers: one program text, two modules that answer to `tf`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from benchmarks.program import Case, Unavailable

__all__ = ["LLVM", "ONEDNN", "graphdock", "graphdock_session", "session_builders", "tensorflow"]

#: The subject ``graphdock/llvm``: regions compiled, other kernels the cpu's.
LLVM: tuple[str, dict[str, object]] = ("llvm", {"backends": ("llvm", "cpu")})

#: The subject ``graphdock/onednn``: products, convolutions and mean pools by oneDNN, regions and maximum pools compiled.
ONEDNN: tuple[str, dict[str, object]] = (
    "onednn",
    {
        "backends": ("onednn", "llvm", "cpu"),
        "kernels": {"MaxPool@cpu": "llvm.max_pool", "MaxPoolGrad@cpu": "llvm.max_pool_grad"},
    },
)

# Builds a program in the default graph: (tf, open_session) -> Case.
TextV1 = Callable[[ModuleType, Callable[[], Any]], Case]


def tensorflow(variant: str | None = None) -> ModuleType:
    """TensorFlow with its version-1 interface and behaviour. Once per process.

    variant: ``flow_v2``, its functional control flow; ``xla``, clusters of operations compiled by XLA, which takes resource
        variables only.
    """
    if variant == "xla":
        os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    if variant == "flow_v2":
        tf.enable_control_flow_v2()
    if variant == "xla":
        tf.enable_resource_variables()
    return tf


def graphdock() -> ModuleType:
    """graphdock under the name its programs use."""
    import graphdock as tf

    return tf


def graphdock_session(**settings: object) -> Callable[[], Any]:
    """A function that opens a session of the default graph with `settings` over the defaults.

    `passes=False` switches every pass off. Raises Unavailable where `settings` name a backend that is not installed.
    """

    def open_session() -> Any:
        tf = graphdock()
        if not settings:
            return tf.Session()
        fields: dict[str, Any] = dict(settings)
        if fields.get("passes") is False:
            from graphdock.passes.pipeline import simplifications

            fields["passes"] = dict.fromkeys(simplifications(), False)
        try:
            return tf.Session(config=tf.SessionConfig(**fields))
        except tf.errors.UnknownBackendError as error:
            raise Unavailable(str(error).splitlines()[0]) from error

    return open_session


def session_builders(
    text: TextV1, variants: Sequence[tuple[str, dict[str, object]]] = (), tensorflow_variants: Sequence[str] = ()
) -> dict[str, Callable[[], Case]]:
    """Builders that run `text` under graphdock and TensorFlow.

    variants: (name, session settings) for more graphdock subjects. tensorflow_variants: of {"flow_v2", "xla"}.
    """

    def under_graphdock(settings: dict[str, object]) -> Callable[[], Case]:
        def build() -> Case:
            tf = graphdock()
            tf.reset_default_graph()
            return text(tf, graphdock_session(**settings))

        return build

    def under_tensorflow(variant: str | None = None) -> Callable[[], Case]:
        def build() -> Case:
            tf = tensorflow(variant)
            tf.reset_default_graph()
            return text(tf, tf.Session)

        return build

    builders = {"graphdock": under_graphdock({})}
    builders |= {f"graphdock/{name}": under_graphdock(settings) for name, settings in variants}
    builders["tensorflow"] = under_tensorflow()
    builders |= {f"tensorflow/{name}": under_tensorflow(name) for name in tensorflow_variants}
    return builders
