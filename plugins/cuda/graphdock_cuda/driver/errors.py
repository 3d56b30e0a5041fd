"""CUDA's error numbers as graphdock's errors."""

from __future__ import annotations

from graphdock.contracts import errors

__all__ = ["CompileError", "CudaError", "LibraryError", "explain", "name_of"]

#: Errors after which a context is of no more use: whatever is asked of it fails with the same number.
STICKY = {
    214: "an uncorrectable memory error (ECC)",
    700: "a kernel used an address that it may not use",
    702: "a kernel ran longer than the display allows",
    710: "an assertion in a kernel failed",
    714: "a hardware stack error",
    715: "an illegal instruction",
    716: "a misaligned address",
    717: "an address of the wrong space",
    718: "an invalid program counter",
    719: "a kernel failed",
    999: "an unknown error",
}
#: Errors of calls that a recording forbids.
CAPTURE = range(900, 911)
_NAMES = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialized",
    46: "held by another process, or its compute mode forbids to share it",
    35: "driver too old for these wheels",
    98: "invalid device function",
    100: "no device",
    101: "invalid device",
    200: "invalid image",
    209: "no code for this architecture",
    218: "invalid PTX",
    222: "PTX of a newer CUDA than the driver's",
    400: "invalid handle",
    500: "not found",
    600: "not ready",
    802: "not set up yet (the fabric manager of NVLink)",
    803: "driver and library of different versions",
    701: "too many resources for a launch",
    801: "not supported",
    900: "not permitted while a stream is captured",
    901: "capture invalidated",
    902: "two captures would be merged",
    903: "a capture is ended on another stream than it began on",
    904: "a stream was left unjoined by its capture",
    905: "an event from outside of the capture",
    906: "the default stream depends on a capture",
    907: "an event of a capture",
    908: "another thread's capture",
}


class CudaError(RuntimeError):
    """A CUDA call failed. ``status`` is CUDA's number, ``call`` the function."""

    def __init__(self, call: str, status: int, text: str = "") -> None:
        super().__init__(f"{call}: {text or name_of(status)} (CUDA error {status})")
        self.call = call
        self.status = status


class CompileError(RuntimeError):
    """A source does not compile. ``source`` and ``log`` are what was compiled and what the compiler said."""

    def __init__(self, name: str, source: str, log: str) -> None:
        super().__init__(f"{name} does not compile:\n{log}")
        self.name = name
        self.source = source
        self.log = log


#: ``cublasStatus_t``, whose numbers are others than CUDA's.
_CUBLAS = {
    1: "not initialized",
    3: "allocation failed",
    7: "invalid value",
    8: "no code for this architecture",
    11: "no access to memory",
    13: "execution failed",
    14: "internal error",
    15: "not supported",
    16: "a licence is missing",
}
_NO_MEMORY = 3


class LibraryError(RuntimeError):
    """A call of cuBLASLt failed. ``code`` is its ``cublasStatus_t``; it has no ``status``, which would be CUDA's."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: {_CUBLAS.get(code, 'an error')} (cuBLAS status {code})")
        self.call = call
        self.code = code


def name_of(status: int) -> str:
    """Return what a CUDA error number means."""
    return STICKY.get(status) or _NAMES.get(status, "an error")


def explain(error: Exception, device: str, doing: str) -> Exception:
    """graphdock's error for an exception of a CUDA call; the exception itself where it is none.

    Args:
      device: such as ``cuda:0``. ``doing``: what was asked, for the message.
    """
    if isinstance(error, LibraryError):
        if error.code == _NO_MEMORY:
            return errors.ResourceExhaustedError(f"{device} has no memory left to {doing}: cuBLASLt found none")
        return errors.InternalError(f"{doing} on {device}: {error}")
    status = getattr(error, "status", None)
    if isinstance(error, errors.GraphdockError) or not isinstance(status, int):
        return error
    if status in STICKY:
        return errors.DeviceLostError(device, f"{doing}: {STICKY[status]} (CUDA error {status})")
    if status == 2:
        return errors.ResourceExhaustedError(f"{device} has no memory left to {doing}")
    if status in CAPTURE:
        return errors.FailedPreconditionError(
            f"{doing} on {device}: {name_of(status)} (CUDA error {status})",
            hint="do it before or after the captured segment",
        )
    return errors.InternalError(f"{doing} on {device}: {name_of(status)} (CUDA error {status})", got=str(error))
