"""``tf.train.replica_device_setter``: variables on parameter servers, everything else on the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_tf1.cluster.cluster_spec import ClusterSpec
from graphdock_tf1.cluster.device_spec import DeviceSpec

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn", "replica_device_setter"]

#: Ops that hold state, by TensorFlow's names and by those here.
STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
)  # fmt: skip


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A function for ``tf.device`` that gives variables to the tasks of ``ps_device`` in turn.

    Args:
      ps_tasks: how many tasks there are, where ``cluster`` does not say. ps_device: their job; None or ``""``: no such tasks.
      worker_device: where everything else is. merge_devices: what an operation's own scopes say is merged; False: it holds alone.
      cluster: a ClusterSpec, or what makes one. ps_ops: op types that hold state. ps_strategy: operation -> number of a task.

    Returns:
      None where there are no tasks to give variables to.

    Raises:
      TypeError: ``ps_strategy`` is no function, or ``cluster`` is no cluster.
    """
    if cluster is not None:
        job = DeviceSpec.from_string(ps_device or "").job
        spec = ClusterSpec(cluster)
        if job is None or job not in spec.jobs:
            return None
        ps_tasks = spec.num_tasks(job)
    if not ps_tasks:
        return None
    strategy = _in_turn(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise ArgumentTypeError("ps_strategy must be callable")
    holding = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)
    server, worker = DeviceSpec.from_string(ps_device or ""), DeviceSpec.from_string(worker_device or "")

    def device_of(op: Any) -> str:
        asked = DeviceSpec.from_string(op.device or "")
        if not merge_devices and op.device:
            return str(op.device)
        if ps_device and op.type in holding:
            place = server
            if server.job is not None and asked.job in (None, server.job):
                place = server.replace(task=strategy(op))
            return place.make_merged_spec(asked).to_string()
        return worker.make_merged_spec(asked).to_string()

    return device_of


def _in_turn(tasks: int) -> Callable[[Any], int]:
    next_task = 0

    def strategy(op: Any) -> int:
        nonlocal next_task
        task, next_task = next_task, (next_task + 1) % tasks
        return task

    return strategy


class GreedyLoadBalancingStrategy:
    """Gives each operation to the task with the least load so far.

    Args:
      num_tasks: how many there are. load_fn: operation -> its load, a number that is not negative.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._loads = [0.0] * num_tasks
        self._load = load_fn

    def __call__(self, op: Any) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load(op)
        return task


class RandomStrategy:
    """Gives each operation to a task drawn at random. ``seed``: the same tasks in every run."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        import numpy as np

        self._tasks = num_ps_tasks
        self._random = np.random.default_rng(seed)

    def __call__(self, op: Any) -> int:
        return int(self._random.integers(self._tasks))


def byte_size_load_fn(op: Any) -> float:
    """Bytes of a variable: a load for :class:`GreedyLoadBalancingStrategy`. Raises ValueError: its shape is not known."""
    dtype, shape = op.get_attr("dtype"), op.get_attr("shape")
    sizes = shape.as_list() if hasattr(shape, "as_list") else list(shape)
    if any(size is None for size in sizes):
        raise InvalidArgumentError(f"the bytes of {op.name!r} are not known: its shape is {sizes}")
    count = 1
    for size in sizes:
        count *= size
    return float(count * dtype.size)
