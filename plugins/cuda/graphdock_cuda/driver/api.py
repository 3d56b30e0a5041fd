"""Interface of CUDA: the driver, the compiler, the matrix library and the network library, each a protocol.

The rest of the package sees these alone, so that one object stands for all of CUDA: :class:`Toolkit`. On a machine with a GPU it is
made of CuPy's bindings, NVRTC, cuBLASLt and cuDNN (:mod:`graphdock_cuda.toolkit`); in tests of one that runs the same sources on
the CPU (:mod:`graphdock_cuda.testing`).

Handles (streams, events, modules, functions, graphs) and addresses are integers, as the driver hands them out. Every call may raise
an exception whose ``status`` is CUDA's error number (``cudaError_t`` and ``CUresult`` agree where both have a number);
:mod:`graphdock_cuda.driver.errors` makes graphdock's errors of them. Calls may come from any thread; a context is current per
thread, by ``set_device``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "Blas",
    "Compiler",
    "Convolution",
    "ConvolutionPlan",
    "Dnn",
    "Driver",
    "Gemm",
    "GemmPlan",
    "Properties",
    "Toolkit",
    "Unsupported",
]


@dataclass(frozen=True, slots=True)
class Properties:
    """Facts of one GPU. Sizes in bytes, clocks in kHz; ``capability`` as ``(9, 0)``."""

    name: str
    capability: tuple[int, int]
    memory: int
    multiprocessors: int
    shared_memory: int
    warp_size: int = 32
    clock: int = 0
    memory_clock: int = 0
    bus_width: int = 0
    l2_cache: int = 0
    pci: str = ""

    @property
    def architecture(self) -> str:
        """Return what code is compiled for: ``sm_90a`` for capability 9.0, whose wgmma and TMA need the suffix; else as
        ``sm_80``.
        """
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if major == 9 else "")


class Driver(Protocol):
    """CUDA's runtime and driver calls. Work is asynchronous and in the order of its stream."""

    # -- what there is

    def device_count(self) -> int:
        """GPUs that this process may use. Raises where there is no driver or it is too old."""
        ...

    def driver_version(self) -> int:
        """The newest CUDA that the driver supports: 13000 for 13.0. 0 where there is no driver."""
        ...

    def runtime_version(self) -> int:
        """The CUDA that the bindings were built for."""
        ...

    def properties(self, device: int) -> Properties: ...

    def memory_info(self, device: int) -> tuple[int, int]:
        """``(free, total)`` bytes."""
        ...

    def trim(self, device: int) -> None:
        """Give what the device's pool keeps and nobody uses back to the system."""
        ...

    def set_device(self, device: int) -> None:
        """Make the device's context current on the calling thread; a new thread has none, whatever ``get_device`` says."""
        ...

    def get_device(self) -> int: ...

    def has_context(self, device: int) -> bool:
        """Return whether anyone in this process has opened the device; ``set_device`` opens it, which takes time and its memory."""
        ...

    # -- memory

    def malloc(self, nbytes: int, stream: int) -> int:
        """Memory of the current device's pool in the order of ``stream``: its address, aligned to 256."""
        ...

    def free(self, address: int, stream: int) -> None:
        """Give memory of ``malloc`` back in the order of ``stream``, which need not be the one that it came from."""
        ...

    def host_alloc(self, nbytes: int) -> int:
        """Pinned host memory, which every device reads and writes."""
        ...

    def host_free(self, address: int) -> None: ...

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        """Copy between any two of device memory and pinned memory; the driver tells which by the addresses."""
        ...

    def copy_peer(self, dst: int, dst_device: int, src: int, src_device: int, nbytes: int, stream: int) -> None: ...

    def can_access_peer(self, device: int, peer: int) -> bool: ...

    def enable_peer(self, peer: int) -> None:
        """Let the current device read and write ``peer``'s memory, that of its pool too; a second call does nothing."""
        ...

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        """Set every byte."""
        ...

    # -- order

    def stream(self) -> int:
        """A new stream of the current device, which the default stream does not synchronise."""
        ...

    def stream_destroy(self, stream: int) -> None: ...

    def stream_synchronize(self, stream: int) -> None: ...

    def device_synchronize(self) -> None:
        """Wait for all work of the current device."""
        ...

    def event(self, timing: bool = False) -> int: ...

    def event_destroy(self, event: int) -> None: ...

    def event_record(self, event: int, stream: int) -> None: ...

    def event_query(self, event: int) -> bool:
        """Return whether the work before its latest record is done; True for one that was never recorded."""
        ...

    def event_synchronize(self, event: int) -> None: ...

    def event_elapsed(self, begin: int, end: int) -> float:
        """Seconds between two events with timing, both done."""
        ...

    def stream_wait(self, stream: int, event: int) -> None: ...

    # -- code

    def load(self, image: bytes) -> int:
        """A module of the current device from a compiler's image. It stays loaded until ``unload``."""
        ...

    def unload(self, module: int) -> None: ...

    def function(self, module: int, name: str) -> int: ...

    def allow_shared(self, function: int, nbytes: int) -> None:
        """Let launches ask for so much dynamic shared memory, and no more.

        Needed where that, and what the kernel has by itself, are more than 48 KiB.
        """
        ...

    def launch(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, params: int
    ) -> None:
        """Queue a kernel. ``params``: address of an array of addresses, one per parameter; read before this returns.

        ``stream`` is of the current device.
        """
        ...

    # -- recorded work

    def capture_begin(self, stream: int) -> None:
        """Record what is queued on ``stream`` from now on, in the thread-local mode."""
        ...

    def capture_end(self, stream: int) -> int:
        """The graph. Raises where something broke the recording, and within a body; the stream has left it either way."""
        ...

    # -- conditions within recorded work

    def conditions(self) -> str:
        """Return why graphs can't hold conditional nodes here; empty where they can."""
        ...

    def condition(self, stream: int) -> int:
        """A number for one conditional node of the graph that ``stream`` records: kernels set it by ``cudaGraphSetConditional``."""
        ...

    def body_begin(self, stream: int, condition: int, repeats: bool) -> None:
        """Record a conditional node behind what ``stream`` has recorded, and from now on its body, until ``body_end``.

        It runs once when the condition is not 0 there; where it ``repeats``, as long as it is not 0. It holds kernels, copies,
        fills and conditional nodes of one device. No event of before means anything behind.
        """
        ...

    def body_end(self, stream: int) -> None:
        """Go on behind the node."""
        ...

    # -- graphs

    def instantiate(self, graph: int, stream: int) -> int:
        """An executable graph, uploaded to the device in the order of ``stream``."""
        ...

    def graph_destroy(self, graph: int) -> None: ...

    def graph_exec_destroy(self, executable: int) -> None: ...

    def graph_launch(self, executable: int, stream: int) -> None: ...


class Compiler(Protocol):
    """Makes device code of CUDA C++.

    Attributes:
      version: of the compiler; part of what compiled code is cached under.
    """

    version: str

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        """An image that ``Driver.load`` takes, of one self-contained source.

        Args:
          architecture: ``sm_90a``. Code is finished: PTX of a newer compiler than the driver is refused by it.

        Raises CompileError with the compiler's log.
        """
        ...


@dataclass(frozen=True, slots=True)
class Gemm:
    """``D = act(alpha * op(A) @ op(B) + bias)``, row-major, batched over a leading dim; or that added to D.

    Attributes:
      m, n, k: of the product after transposition. ``batch``: how many, each ``stride`` elements further (0 for a shared operand).
      dtype: of A and B; sums are kept in float32 for it and narrower ones, in float64 for float64. ``out``: dtype of D; empty for
        the same, or float32 for float16 and bfloat16.
      transpose_a, transpose_b: the operand lies transposed.
      operands: what operands of float32 may be rounded to before they are multiplied: ``float32``, ``tf32``, ``bfloat16``,
        ``float16``. Sums are kept in float32 all the same, other dtypes are left as they are.
      epilogue: ``none``, ``bias``, ``relu``, ``relu_bias``, ``gelu``, ``gelu_bias``, ``gelu_aux_bias``; a bias has ``n``
        elements, gelu is the approximation with tanh. With ``aux`` what it is applied to is written too, as D lies; one batch,
        and ``n`` is divisible by 8. Those of gradients, of one batch too: ``dgelu`` multiplies by the slope of gelu at ``aux``,
        of which the same holds; ``sums_a`` and ``sums_b`` write to ``bias`` the ``m`` sums of the rows of op(A), or the ``n`` of
        the columns of op(B).
      adds: the product is added to what D holds; without an epilogue.
    """

    m: int
    n: int
    k: int
    dtype: str
    transpose_a: bool = False
    transpose_b: bool = False
    batch: int = 1
    stride_a: int = 0
    stride_b: int = 0
    stride_d: int = 0
    alpha: float = 1.0
    operands: str = "float32"
    epilogue: str = "none"
    out: str = ""
    adds: bool = False

    @property
    def result(self) -> str:
        """The dtype of D."""
        return self.out or self.dtype


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """An algorithm for a Gemm.

    Attributes:
      workspace: bytes that it needs. ``aligned``: what addresses of operands must be multiples of; 1 for any.
      run: ``run(stream, a, b, d, bias, aux, workspace)`` takes addresses (0 for none) and queues the work.
    """

    gemm: Gemm
    workspace: int
    run: Callable[[int, int, int, int, int, int, int], None]
    aligned: int = 1


class Blas(Protocol):
    """Matrix products. Safe within a capture: nothing is allocated and nothing waits."""

    def plans(self, gemm: Gemm, workspace: int) -> Sequence[GemmPlan]:
        """Algorithms within so many bytes of workspace, the library's favourite first; empty when it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of a batch of images or volumes, or one of its gradients. Windows slide as they are, not turned.

    Attributes:
      makes: the operand that is made of the other two: ``y`` of x and w, ``x`` (its gradient) of y (its gradient) and w, ``w`` (its
        gradient) of x and y (its gradient).
      dtype: of all three: float16, bfloat16, float32. Sums are kept in float32.
      x: its dims: batch, channels, then the spatial ones. ``y``: as x. ``w``: channels of y, channels of x, dims of the window.
      before, after: elements of padding in each spatial dim. ``stride``, ``dilation``: in each.
      last: how all three lie: with channels as the last dim; else as their dims say.
      tf32: whether operands of float32 may be rounded to tf32 before they are multiplied.
    """

    makes: str
    dtype: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    last: bool = True
    tf32: bool = False


@dataclass(frozen=True, slots=True)
class ConvolutionPlan:
    """An algorithm for a Convolution.

    Attributes:
      workspace: bytes that it needs, aligned to 256. ``aligned``: what addresses of operands must be multiples of.
      run: ``run(stream, x, w, y, workspace)`` takes addresses and queues the work. It gives the same bits each time.
    """

    convolution: Convolution
    workspace: int
    aligned: int
    run: Callable[[int, int, int, int, int], None]


class Unsupported(Exception):
    """The library can't do what it is asked for; the message says why in one line."""


class Dnn(Protocol):
    """Convolutions. Running a plan is safe within a capture; making one is not, and takes milliseconds."""

    def plan(self, convolution: Convolution, workspace: int) -> ConvolutionPlan:
        """The library's favourite algorithm within so many bytes of workspace. Raises Unsupported where it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Toolkit:
    """All of CUDA. ``blas`` makes the matrix library when it is first needed; None where there is none. ``dnn`` the same of the
    network library, and raises Unsupported where it can't be loaded.

    ``cache``: whether compiled code is kept on disk.
    """

    driver: Driver
    compiler: Compiler
    blas: Callable[[], Blas] | None = None
    dnn: Callable[[], Dnn] | None = None
    cache: bool = True
    about: Any = None
