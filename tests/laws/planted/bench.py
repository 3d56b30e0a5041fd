"""Where faults are planted: one op, ``fault.Op(x) = 2 x``, in a host of its own, and what the kit and debug mode say of it."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts import ArgDef, DeviceFactory, KernelDef, OpDef, OpLibrary, TypeVarDef, hookimpl
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.conformance import Conformance, ConformanceError, Missing, Untested

PACKAGES = Path(__file__).parents[2] / "packages"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, PACKAGES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


suspects = _load("suspects")

LIBRARY = "tests_planted_ops"
#: What finds faults. ``conformance``: the kit; ``debug``: a step in debug mode; ``doctor`` and ``check``: the commands.
FINDERS = ("conformance", "debug", "doctor", "check")


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
      name: what is wrong, in words.
      kind: ``kernel``, ``device``, ``spec``, ``manifest``, ``fact``, ``pattern``, ``compiler``, ``event``, ``clash``, ``executor``,
        ``pass``, ``placer``, ``form``, ``checkpoint`` or ``habit``.
      place: the device type, or ``-``.
      found: who finds it.
      host: makes the host with the fault in it, for kernels, devices, and specs that were generated.
      text: the faulty text, for the commands.
    """

    name: str
    kind: str
    place: str
    found: frozenset[str]
    host: Callable[[], Host] | None = None
    text: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.kind} on {self.place}: {self.name}" if self.place != "-" else f"{self.kind}: {self.name}"


# -- the op


def oracle(x: Any) -> Any:
    return np.array([2 * v for v in x.ravel().tolist()], x.dtype).reshape(x.shape)


def gradient(op: Any, grad: Any) -> list[Any]:
    return [grad + grad]


def wrong_gradient(op: Any, grad: Any) -> list[Any]:
    return [grad + grad + grad]


def decomposition(*, x: Any, **_: Any) -> list[Any]:
    return [x + x]


def wrong_decomposition(*, x: Any, **_: Any) -> list[Any]:
    return [x + x + x]


def shape(ctx: Any) -> list[Any]:
    if ctx.shape("x") == (13,):
        raise ctx.fail("thirteen is unlucky")
    return [ctx.shape("x")]


def no_check(ctx: Any) -> list[Any]:
    return [ctx.shape("x")]


def wrong_shape(ctx: Any) -> list[Any]:
    dims = ctx.shape("x")
    return [dims if not dims else (*dims[:-1], None if dims[-1] is None else dims[-1] + 1)]


def less_rank(ctx: Any) -> list[Any]:
    dims = ctx.shape("x")
    return [dims if not dims else dims[:-1]]


def refuse(x: Any) -> None:
    """Raise for the numbers that the op does not take: only a kernel sees them."""
    if x.size == 2 and x.ravel()[0] == -99:
        raise InvalidArgumentError("-99 is forbidden")


def right(x: Any, *out: Any) -> Any:
    """The kernel without a fault."""
    refuse(x)
    return np.add(x, x, *out)


def opdef(**facts: str) -> OpDef:
    named = {"gradient": "gradient", "decomposition": "decomposition", "shape_fn": "shape", "reference": "oracle"}
    return OpDef(
        "fault.Op",
        inputs=(ArgDef("x", "T", "[*S]"),),
        outputs=(ArgDef("y", "T"),),
        types=(TypeVarDef("T", ("float32", "float64")),),
        gradient_kinds={"x": "fn"},
        **{n: f"{LIBRARY}:{function}" for n, function in {**named, **facts}.items()},
    )


def make_host(*kernels: KernelDef, op: OpDef | None = None, factory: DeviceFactory | None = None) -> Host:
    """A host with the plugin ``fault``: the op, these kernels, and a device where there is a factory.

    Beside it stands the backend ``queued``, whose work runs as late as it may, unless the plugin brings a device of that type.
    """
    made = opdef() if op is None else op
    module = types.ModuleType(LIBRARY)
    vars(module).update({n: v for n, v in globals().items() if isinstance(v, types.FunctionType)})
    others = [OpDef(f"fault.{n}", types=(TypeVarDef("T"),)) for n in ("Op", "One", "Pair", "Whole")]
    ops = {o.name: (lambda o=o: o) for o in [*others, made]}
    vars(module).update(OPS=ops, OPERATORS={}, __path__=[str(Path(__file__).parent)])
    facts = sys.modules.get("planted.facts")
    vars(module).update({n: v for n, v in vars(facts or module).items() if isinstance(v, types.FunctionType)})
    sys.modules[LIBRARY] = module

    class Plugin:
        @hookimpl
        def register_ops(self):
            return [OpLibrary(LIBRARY, LIBRARY)]

        @hookimpl
        def register_devices(self):
            return [] if factory is None else [factory]

        @hookimpl
        def register_kernels(self):
            return list(kernels)

    host = Host()
    if factory is None or factory.device_type != "queued":
        host.register("queued", queued.Plugin(seed=1, laziness=1.0))
    host.register("fault", Plugin())
    return host


# -- who finds it


def conformance(
    host: Host, backend: str = "fault", more: tuple[str, ...] = (), ops: tuple[str, ...] = ("fault.Op",), only: str = ""
) -> list[str]:
    """What the kit says of ``ops``, of the backend's devices, patterns and region compilers, and of ``more``
    ops. ``only``: a check of a device, or a part of the names of cases."""
    with np.errstate(all="ignore"):
        kit = Conformance(backend, host=host, oracle="reference")
        found = []
        for op in (*kit.devices, *kit.parts, *ops, *more):
            for case in kit.cases(op):
                if only and not case.id.endswith(f"[{only}]") and only not in case.id:
                    continue
                if found and case.kind in ("edge", "drawn"):
                    continue  # where there is no element, what writes beside its output writes into this very process
                if op in more and (case.kind == "gradient" or case.dtype not in ("float32", "float64")):
                    continue
                try:
                    kit.check(case)
                except ConformanceError as error:
                    found.append(str(error))
                except Untested as error:
                    found.append(str(error))
                except Missing:
                    continue
        return found


def debug(host: Host, place: str) -> list[str]:
    """What steps in debug mode say: an error, or poison among the results. Numbers that are just wrong say nothing."""
    try:
        host.backend("fault")
        known = {state.name for state in host.plugins()}
        backends = [name for name in dict.fromkeys(("fault", place, "cpu")) if name in known]
        for policy, dims in (("exact", [6]), ("generic", [None])):
            config = tf.SessionConfig(backends=tuple(backends), debug=True, fallback="allow", shape_policy=policy)
            with np.errstate(all="ignore"), tf.Graph(host).as_default() as graph:
                if _poisoned(host, graph, place, config, dims):
                    return ["poison"]
    except GraphdockError as error:
        return [str(error)]
    return []


def _poisoned(host: Host, graph: Any, place: str, config: Any, dims: Any) -> bool:
    with tf.device(place):
        v = tf.Variable(np.arange(6, dtype=np.float32), name="v")
        x = tf.placeholder(tf.float32, dims)
        op, types = host.ops.get("fault.Op"), {"T": tf.float32}
        y = graph.add_op(op, [x], types, "planted").outputs[0]
        z = graph.add_op(op, [v.value()], types, "planted_too").outputs[0]
    with tf.Session(config=config, host=host, graph=graph) as sess:
        sess.run(v.initializer)
        for step in range(3):
            results = sess.run([y, tf.identity(y), tf.identity(z)], {x: np.arange(6) + step})
            if any(np.isnan(r).any() for r in results):
                return True
    return False
