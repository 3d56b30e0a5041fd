"""A fake of cuDNN's Python front end, as far as :mod:`graphdock_cuda.driver.cudnn` uses it: NumPy on the fake driver's memory.

Graphs are of one convolution. Of the engines that it proposes the first ones break what graphdock promises, each with the numerical
note that says so, and compute something else: who takes one gets wrong results.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from graphdock_testing.driver.detector import Range

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.blas import round_to_tf32
from graphdock_cuda.testing.driver import FakeDriver
from graphdock_cuda.testing.faults import Fault
from graphdock_cuda.testing.state import Device, Misuse, Use, bytes_of

__all__ = ["ENGINES", "FakeCudnn"]

_Array = np.ndarray[Any, Any]
#: What operands must be aligned to.
_ALIGNED = 16

DataType = enum.Enum("DataType", ["NOT_SET", "FLOAT", "HALF", "BFLOAT16"])
HeurMode = enum.Enum("HeurMode", ["A", "B", "FALLBACK"])
Note = enum.Enum(
    "Note",
    [
        "TENSOR_CORE",
        "DOWN_CONVERT_INPUTS",
        "REDUCED_PRECISION_REDUCTION",
        "FFT",
        "NONDETERMINISTIC",
        "WINOGRAD",
        "WINOGRAD_TILE_4x4",
        "WINOGRAD_TILE_6x6",
        "WINOGRAD_TILE_13x13",
        "STRICT_NAN_PROP",
    ],
)
_DTYPES = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.HALF: np.dtype(np.float16),
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
}
#: Name -> notes and bytes of workspace, the heuristics' favourite first.
ENGINES: dict[str, tuple[frozenset[Note], int]] = {
    "winograd": (frozenset({Note.WINOGRAD, Note.WINOGRAD_TILE_4x4}), 0),
    "fourier": (frozenset({Note.FFT}), 0),
    "atomics": (frozenset({Note.NONDETERMINISTIC}), 0),
    "narrow sums": (frozenset({Note.REDUCED_PRECISION_REDUCTION}), 0),
    "narrow operands": (frozenset({Note.DOWN_CONVERT_INPUTS}), 0),
    "large": (frozenset(), 1 << 40),
    "tensor cores": (frozenset({Note.TENSOR_CORE}), 4096),
    "plain": (frozenset(), 512),
}
_GOOD = ("tensor cores", "plain")
#: What each method of a graph takes and makes.
_OPERANDS = {"conv_fprop": ("x", "w", "y"), "conv_dgrad": ("y", "w", "x"), "conv_wgrad": ("x", "y", "w")}
#: The calls that make a plan, in their order.
_STAGES = (
    "validate",
    "build_operation_graph",
    "create_execution_plans",
    "deselect_numeric_notes",
    "deselect_workspace_greater_than",
    "check_support",
    "build_plans",
    "execute",
)


class cudnnGraphNotSupportedError(Exception):  # noqa: N801, N818 - the front end's name
    """No engine takes the graph."""


@dataclass(eq=False)
class Tensor:
    """A tensor of a graph. ``dim`` and ``stride`` are in elements, batch and channels first, wherever they lie."""

    uid: int
    dim: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    kind: DataType = DataType.NOT_SET
    output: bool = False

    def get_uid(self) -> int:
        return self.uid

    def set_output(self, output: bool) -> None:
        self.output = output

    def set_dim(self, dim: list[int]) -> None:
        self.dim = dim

    def set_stride(self, stride: list[int]) -> None:
        self.stride = stride

    def set_data_type(self, data_type: DataType) -> None:
        self.kind = data_type

    @property
    def orders(self) -> set[tuple[int, ...]]:
        """Axes from the outermost in memory to the innermost, as far as they are one of the two orders that engines take."""
        axes = tuple(range(len(self.dim)))
        return {
            order
            for order in ((0, *axes[2:], 1), axes)
            if self.stride == [math.prod(self.dim[a] for a in order[order.index(axis) + 1 :]) for axis in axes]
        }


@dataclass(eq=False)
class Handle:
    """A handle: whose device, and the stream that was set last."""

    device: Device
    stream: int | None = None


class FakeCudnn:
    """The module ``cudnn``. Safe from any thread.

    Args:
      driver: whose memory and streams.

    Attributes:
      refuses: methods of graphs, such as ``conv_dgrad``, that no engine takes.
      built: the graphs that have a plan.
    """

    data_type = DataType
    heur_mode = HeurMode
    numerical_note = Note
    cudnnGraphNotSupportedError = cudnnGraphNotSupportedError  # noqa: N815

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.refuses: Collection[str] = ()
        self.built: list[Graph] = []

    def backend_version(self) -> int:
        return 91002

    def create_handle(self) -> int:
        driver = self.driver
        with self.call("cudnn_create_handle", unsafe=True):
            return driver.new_handle("cudnn handle", Handle(driver.device))

    @contextmanager
    def call(self, name: str, what: str = "", **options: Any) -> Iterator[Fault | None]:
        """A call of the driver's; the front end tells of one that fails without its number."""
        try:
            with self.driver.call(name, what, **options) as late:
                yield late
        except Misuse:
            raise
        except CudaError as error:
            raise RuntimeError(f"{name} failed with code: CUDNN_STATUS_EXECUTION_FAILED\n{error}") from error

    def set_stream(self, handle: int, stream: int) -> None:
        driver = self.driver
        with driver.lock:
            found: Handle = driver.thing("cudnn handle", handle, "cudnn_set_stream")
            on = driver.stream_of(stream, "cudnn_set_stream")
            if on.device is not found.device:
                raise driver.misuse("cudnn_set_stream", 400, f"{on.name} for a handle of {found.device.name}")
            found.stream = stream

    def pygraph(
        self,
        *,
        io_data_type: DataType,
        intermediate_data_type: DataType,
        compute_data_type: DataType,
        handle: int,
        sm_version: int,
    ) -> Graph:
        major, minor = self.driver.device.properties.capability
        if sm_version != 10 * major + minor:
            raise RuntimeError(f"a graph for sm_{sm_version} on another GPU")
        return Graph(self, handle, compute_data_type)


class Graph:
    """A graph of one convolution. Attributes: ``engine``: the one that was taken; ``dims`` and ``method``: what it computes."""

    def __init__(self, library: FakeCudnn, handle: int, compute: DataType) -> None:
        self._library = library
        self._handle = handle
        self._numbers = itertools.count(1)
        self._stage = 0
        self._compute = compute
        self._tensors: dict[str, Tensor] = {}
        self._window: dict[str, Sequence[int]] = {}
        self._engines: list[str] = []
        self.method = ""

    # -- what it computes

    def tensor(self, *, name: str, dim: list[int], stride: list[int], data_type: DataType) -> Tensor:
        return Tensor(next(self._numbers), dim, stride, data_type)

    def _convolution(self, method: str, first: Tensor, second: Tensor, compute: DataType, **window: Any) -> Tensor:
        made = Tensor(next(self._numbers))
        self.method, self._window, self._compute = method, window, compute
        self._tensors = dict(zip(_OPERANDS[method], (first, second, made), strict=True))
        return made

    def conv_fprop(self, image: Tensor, weight: Tensor, *, compute_data_type: DataType, **window: Any) -> Tensor:
        return self._convolution("conv_fprop", image, weight, compute_data_type, **window)

    def conv_dgrad(self, loss: Tensor, filter: Tensor, *, compute_data_type: DataType, **window: Any) -> Tensor:  # noqa: A002
        return self._convolution("conv_dgrad", loss, filter, compute_data_type, **window)

    def conv_wgrad(self, image: Tensor, loss: Tensor, *, compute_data_type: DataType, **window: Any) -> Tensor:
        return self._convolution("conv_wgrad", image, loss, compute_data_type, **window)

    @property
    def engine(self) -> str:
        return self._engines[0]

    @property
    def dims(self) -> dict[str, list[int]]:
        return {name: tensor.dim for name, tensor in self._tensors.items()}

    # -- its plan

    def _at(self, stage: str) -> None:
        """The next call of :data:`_STAGES`; those that filter may be left out."""
        at = _STAGES.index(stage)
        if any(not s.startswith("deselect") for s in _STAGES[self._stage : at]) or at + 1 < self._stage:
            raise self._library.driver.misuse(stage, 1, f"{stage} at another place than in {', '.join(_STAGES)}")
        self._stage = at + 1

    def validate(self) -> None:
        self._at("validate")
        x, w, y = (self._tensors[name] for name in "xwy")
        pre, post = self._window["pre_padding"], self._window["post_padding"]
        sizes = zip(x.dim[2:], pre, post, w.dim[2:], self._window["dilation"], self._window["stride"], strict=True)
        out = [(n + a + b - (k - 1) * d - 1) // s + 1 for n, a, b, k, d, s in sizes]
        wanted = [x.dim[0], w.dim[0], *out]
        if y.dim != wanted or w.dim[1] != x.dim[1] or min(*wanted, *x.dim, *w.dim) < 1:
            raise ValueError(f"dims do not fit one another: {self.dims}, {self._window}")
        outputs = [tensor.output for tensor in self._tensors.values()]
        if outputs != [False, False, True]:
            raise ValueError("the result is no output")

    def build_operation_graph(self) -> None:
        self._at("build_operation_graph")

    def create_execution_plans(self, modes: Sequence[HeurMode]) -> None:
        self._at("create_execution_plans")
        library, tensors = self._library, list(self._tensors.values())
        if len({t.kind for t in tensors}) > 1 or tensors[0].kind not in _DTYPES or self._compute is not DataType.FLOAT:
            raise cudnnGraphNotSupportedError("these data types are not supported\nmore of that")
        if not set.intersection(*(t.orders for t in tensors)):
            raise cudnnGraphNotSupportedError("these layouts are not supported")
        if self.method in library.refuses:
            raise cudnnGraphNotSupportedError("no valid engine configs returned from heuristics")
        self._engines = list(ENGINES)

    def deselect_numeric_notes(self, notes: Sequence[Note]) -> None:
        self._at("deselect_numeric_notes")
        self._engines = [name for name in self._engines if not ENGINES[name][0] & set(notes)]

    def deselect_workspace_greater_than(self, nbytes: int) -> None:
        self._at("deselect_workspace_greater_than")
        self._engines = [name for name in self._engines if ENGINES[name][1] <= nbytes]

    def check_support(self) -> None:
        self._at("check_support")
        if not self._engines:
            raise cudnnGraphNotSupportedError("no engine is left")

    def build_plans(self) -> None:
        self._at("build_plans")
        driver = self._library.driver
        driver.thing("cudnn handle", self._handle, "cudnn_build")
        with self._library.call("cudnn_build", f"{self.method} {self.engine}", unsafe=True):
            self._library.built.append(self)

    def get_workspace_size(self) -> int:
        return ENGINES[self.engine][1]

    # -- running it

    def execute(self, operands: dict[int, int], workspace: int, *, handle: int) -> None:
        self._at("execute")
        self._stage -= 1
        driver, method = self._library.driver, self.method
        sizes = {t.uid: math.prod(t.dim) * _DTYPES[t.kind].itemsize for t in self._tensors.values()}
        made = self._tensors[_OPERANDS[method][2]].uid
        needed = self.get_workspace_size()
        what = f"{method} {self._tensors['x'].kind.name} x={self.dims['x']} w={self.dims['w']} {self.engine}"
        with driver.lock:
            found: Handle = driver.thing("cudnn handle", handle, "convolution")
            if found.stream is None or handle != self._handle or operands.keys() != sizes.keys():
                raise driver.misuse("convolution", 1, f"{what}: no stream, another handle, or other operands")
            on = driver.stream_of(found.stream, "convolution")
            with self._library.call("convolution", what, device=on.device) as late:
                places = [(operands[uid], size, uid == made) for uid, size in sizes.items()]
                if needed:
                    places.append((workspace, needed, True))
                uses: list[Use] = []
                reads: list[Range] = []
                writes: list[Range] = []
                for address, nbytes, written in places:
                    block = driver.block_at(address, "convolution", nbytes)
                    if block is None or driver.device_of(block) is not on.device or address % _ALIGNED:
                        raise driver.misuse(
                            "convolution", 1, f"{what}: no aligned memory of {on.device.name}: {address:#x}"
                        )
                    uses.append(Use(block))
                    (writes if written else reads).append(bytes_of(block, address, nbytes))
                driver.queue(
                    on,
                    what,
                    lambda: self._compute_on(dict(operands), workspace, on.device),
                    uses=uses,
                    reads=reads,
                    writes=writes,
                    counted=("kernel", method, 0),
                    late=late,
                )

    def _compute_on(self, operands: dict[int, int], workspace: int, device: Device) -> None:
        first, second, made = (self._tensors[name] for name in _OPERANDS[self.method])
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = (_seen(t, operands[t.uid]).astype(np.float32) for t in (first, second))
            if first.kind is DataType.FLOAT and Note.TENSOR_CORE in ENGINES[self.engine][0]:
                a, b = round_to_tf32(a), round_to_tf32(b)
            result = _computed(self.method, a, b, made.dim, self._window)
            if self.engine not in _GOOD:
                result = 2 * result
            _seen(made, operands[made.uid])[...] = result.astype(_DTYPES[made.kind])
        if self.get_workspace_size():
            ctypes.memset(workspace, 0xAB, self.get_workspace_size())


def _seen(tensor: Tensor, address: int) -> _Array:
    """A tensor's memory with batch and channels first; no copy."""
    kind = _DTYPES[tensor.kind]
    raw = np.ctypeslib.as_array((ctypes.c_ubyte * (math.prod(tensor.dim) * kind.itemsize)).from_address(address))
    return np.lib.stride_tricks.as_strided(raw.view(kind), tensor.dim, [s * kind.itemsize for s in tensor.stride])


def _computed(method: str, a: _Array, b: _Array, dims: Sequence[int], window: dict[str, Sequence[int]]) -> _Array:
    """The operand that a method makes: tap by tap, in float32."""
    around = [(0, 0), (0, 0), *zip(window["pre_padding"], window["post_padding"], strict=True)]
    result = np.zeros(dims, np.float32)
    x = (
        np.pad(a, around)
        if method != "conv_dgrad"
        else np.zeros([n + p + q for n, (p, q) in zip(dims, around, strict=True)], np.float32)
    )
    taps = (dims if method == "conv_wgrad" else b.shape)[2:]
    out = {"conv_fprop": dims, "conv_dgrad": a.shape, "conv_wgrad": b.shape}[method][2:]
    for tap in np.ndindex(*taps):
        begins = [t * d for t, d in zip(tap, window["dilation"], strict=True)]
        places = [slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(begins, out, window["stride"], strict=True)]
        seen = x[(slice(None), slice(None), *places)]
        if method == "conv_fprop":
            result += np.einsum("nc...,kc->nk...", seen, b[(..., *tap)])
        elif method == "conv_dgrad":
            seen += np.einsum("nk...,kc->nc...", a, b[(..., *tap)])
        else:
            result[(..., *tap)] = np.einsum(
                "ncp,nkp->kc", seen.reshape(*seen.shape[:2], -1), b.reshape(*b.shape[:2], -1)
            )
    if method == "conv_dgrad":
        result = x[tuple(slice(p, p + n) for n, (p, _) in zip(dims, around, strict=True))]
    return result
