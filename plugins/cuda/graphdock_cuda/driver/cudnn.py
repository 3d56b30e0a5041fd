"""Convolutions by cuDNN, through the graphs of its Python front end.

cuDNN names dims batch, channels, spatial ones, whatever lies where: strides say that. A graph of one operation is made for each
convolution, its heuristics propose engines for it, and the first is taken that keeps what graphdock promises:

- the same bits on every run, so that a deterministic session gets the same kernels as any other;
- sums in float32, and operands as they are, or rounded to tf32 where the session allows it;
- a NaN or an infinity where a direct sum has one: the transforms of Winograd and Fourier spread it over a tile.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from graphdock_cuda.driver.api import Convolution, ConvolutionPlan, Driver, Unsupported
from graphdock_cuda.driver.libcuda import wheels_for

__all__ = ["ALIGNED", "Cudnn"]

#: What the engines are told that addresses are multiples of, which those for tensor cores want.
ALIGNED = 16
#: dtype -> name in ``cudnn.data_type``.
_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
#: Names in ``cudnn.numerical_note`` of engines that are never taken.
_NEVER = (
    "NONDETERMINISTIC",
    "REDUCED_PRECISION_REDUCTION",
    "DOWN_CONVERT_INPUTS",
    "FFT",
    "WINOGRAD",
    "WINOGRAD_TILE_4x4",
    "WINOGRAD_TILE_6x6",
    "WINOGRAD_TILE_13x13",
)
#: The method of a graph that adds the operation, and its operands, in order, by what a convolution makes.
_METHODS = {"y": ("conv_fprop", "xw"), "x": ("conv_dgrad", "yw"), "w": ("conv_wgrad", "xy")}


def _front_end() -> Any:
    """The module ``cudnn``. Raises Unsupported where it is not installed, or finds no library."""
    try:
        import cudnn
    except (ImportError, OSError, RuntimeError) as error:
        raise Unsupported(
            f"cuDNN's front end can't be loaded ({_line(error)}): pip install 'graphdock-cuda[cudnn]'"
        ) from error
    return cudnn


def _line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


class _Handle:
    """A handle of the library for one device, with the lock for whoever sets its stream and queues work by it."""

    def __init__(self, library: Any, capability: tuple[int, int]) -> None:
        self.lock = threading.Lock()
        self.capability = 10 * capability[0] + capability[1]
        self.value = library.create_handle()


class Cudnn:
    """See Dnn. Safe from any thread; ``plan`` is of the current device. Plans and refusals are kept as long as this lives.

    Args:
      driver: for facts of the current device.
      library: a module with what this uses of ``cudnn``; default: that one.

    Raises Unsupported where there is no library.
    """

    def __init__(self, driver: Driver, library: Any = None) -> None:
        self._library = library if library is not None else _front_end()
        self._driver = driver
        self._handles: dict[int, _Handle] = {}
        self._plans: dict[tuple[int, Convolution, int], ConvolutionPlan | str] = {}
        self._lock = threading.Lock()
        try:
            self._library.backend_version()
        except RuntimeError as error:  # the front end is there, and the library is not
            raise Unsupported(
                f"cuDNN can't be loaded ({_line(error)}): {wheels_for(driver.driver_version(), 'cudnn')}"
            ) from error

    def plan(self, convolution: Convolution, workspace: int) -> ConvolutionPlan:
        """See Dnn.plan."""
        with self._lock:
            key = (self._driver.get_device(), convolution, workspace)
            found = self._plans.get(key)
            if found is None:
                found = self._plans[key] = self._made(*key)
        if isinstance(found, str):
            raise Unsupported(found)
        return found

    def _made(self, device: int, convolution: Convolution, workspace: int) -> ConvolutionPlan | str:
        if convolution.dtype not in _TYPES:
            return f"cuDNN is not asked for {convolution.dtype}"
        library = self._library
        try:
            handle = self._handles.get(device)
            if handle is None:
                handle = self._handles[device] = _Handle(library, self._driver.properties(device).capability)
            with handle.lock:
                return _planned(library, handle, convolution, workspace)
        # no engine, dims that do not fit, or whatever else its calls report: the reason is all that there is
        except (library.cudnnGraphNotSupportedError, ValueError, RuntimeError) as error:
            return f"cuDNN can't do it: {_line(error)}"


def _strides(dims: Sequence[int], last: bool) -> list[int]:
    """Strides in elements of dims that are named channels second, for how they lie."""
    order = [0, *range(2, len(dims)), 1] if last else list(range(len(dims)))
    return [math.prod(dims[a] for a in order[order.index(axis) + 1 :]) for axis in range(len(dims))]


def _planned(library: Any, handle: _Handle, asked: Convolution, workspace: int) -> ConvolutionPlan:
    kind, wide = library.data_type.__members__[_TYPES[asked.dtype]], library.data_type.FLOAT
    graph = library.pygraph(
        io_data_type=kind,
        intermediate_data_type=wide,
        compute_data_type=wide,
        handle=handle.value,
        # told, it asks no CUDA runtime, which it refuses to where it finds those of two CUDAs
        sm_version=handle.capability,
    )
    dims = {"x": asked.x, "w": asked.w, "y": asked.y}
    method, given = _METHODS[asked.makes]
    tensors = {
        name: graph.tensor(name=name, dim=list(dims[name]), stride=_strides(dims[name], asked.last), data_type=kind)
        for name in given
    }
    made = getattr(graph, method)(
        *(tensors[name] for name in given),
        pre_padding=list(asked.before),
        post_padding=list(asked.after),
        stride=list(asked.stride),
        dilation=list(asked.dilation),
        compute_data_type=wide,
    )
    made.set_output(True)
    made.set_dim(list(dims[asked.makes]))
    made.set_stride(_strides(dims[asked.makes], asked.last))
    made.set_data_type(kind)
    tensors[asked.makes] = made
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
    refused = _NEVER if asked.tf32 or asked.dtype != "float32" else (*_NEVER, "TENSOR_CORE")
    graph.deselect_numeric_notes([library.numerical_note.__members__[name] for name in refused])
    graph.deselect_workspace_greater_than(workspace)
    graph.check_support()
    graph.build_plans()
    numbers = tuple(tensors[name].get_uid() for name in "xwy")
    return ConvolutionPlan(asked, int(graph.get_workspace_size()), ALIGNED, _Run(library, handle, graph, numbers))


class _Run:
    """``run`` of a ConvolutionPlan."""

    def __init__(self, library: Any, handle: _Handle, graph: Any, numbers: tuple[int, ...]) -> None:
        self._library = library
        self._handle = handle
        self._graph = graph
        self._numbers = numbers

    def __call__(self, stream: int, x: int, w: int, y: int, workspace: int) -> None:
        handle = self._handle
        operands = dict(zip(self._numbers, (x, w, y), strict=True))
        with handle.lock:
            self._library.set_stream(handle=handle.value, stream=stream)
            self._graph.execute(operands, workspace, handle=handle.value)
