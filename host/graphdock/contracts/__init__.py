"""The imports of plugins: everything a device or a kernel needs, and nothing of the host's inside.

Kernel and device modules import this package only, executors :mod:`graphdock.contracts.runtime` besides. Op packages (wrappers,
gradient functions) also import the public :mod:`graphdock` and :mod:`graphdock.ops`.

A module of this package is imported when a name of it is first asked for: a kernel's module brings kernels' contracts, not those of
regions and executors.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pluggy

from graphdock import dtypes, errors
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import DeviceUnavailable, KernelRefused

if TYPE_CHECKING:
    from graphdock.contracts.bodies import *
    from graphdock.contracts.cache import *
    from graphdock.contracts.cluster import *
    from graphdock.contracts.command import *
    from graphdock.contracts.costs import *
    from graphdock.contracts.cut import *
    from graphdock.contracts.device import *
    from graphdock.contracts.executor import *
    from graphdock.contracts.failures import *
    from graphdock.contracts.formats import *
    from graphdock.contracts.ir import *
    from graphdock.contracts.ir_check import *
    from graphdock.contracts.ir_print import *
    from graphdock.contracts.kernel import *
    from graphdock.contracts.kernel_errors import *
    from graphdock.contracts.loop_program import *
    from graphdock.contracts.native import *
    from graphdock.contracts.opdef import *
    from graphdock.contracts.parallel import *
    from graphdock.contracts.passes import *
    from graphdock.contracts.pattern import *
    from graphdock.contracts.placement import *
    from graphdock.contracts.queue import *
    from graphdock.contracts.region import *
    from graphdock.contracts.region_check import *
    from graphdock.contracts.region_program import *
    from graphdock.contracts.resource import *
    from graphdock.contracts.rewriter import *
    from graphdock.contracts.row_history import *
    from graphdock.contracts.step import *
    from graphdock.contracts.streams import *
    from graphdock.contracts.version import *
    from graphdock.contracts.waiting import *
    from graphdock.contracts.waiting_threads import *
    from graphdock.contracts.wire import *

#: The module; the name ``graphdock.shape`` is the op, as TensorFlow's is.
shape = importlib.import_module("graphdock.shape")

#: Marks a hook implementation in a plugin's module.
hookimpl = pluggy.HookimplMarker("graphdock")

#: What each module publishes here.
_PUBLISHED = {
    "cache": "cache_dir read_cache replace_file write_cache",
    "cluster": "Place TaskInfo TaskName Transport",
    "command": "CommandTools ProgramStep",
    "costs": "checked_seconds CostModel Prediction Rates UNKNOWN_TIME",
    "cut": "cut_region Cutter put_back",
    "device": "Buffer Device DeviceFactory DeviceInfo HOST_MEMORY Storage",
    "executor": "Executor PlacedGraph Program SCALAR SessionFactory StageReport",
    "failures": "failure_of raised",
    "formats": "CheckpointFormat GraphFormat GraphRead ImportReport Missing",
    "bodies": "KeepLoops LoopNote LoopWriter UserOp",
    "ir": "Conditions Guard PlanGraph PlanNode Region Value",
    "ir_check": "check",
    "ir_print": "print_graph print_node",
    "loop_program": "LoopBuffer LoopCopy LoopProgram LoopRows LoopStep",
    "kernel": "ArgInfo BindContext Bound build_kernel BuildContext Candidate Decision FRESH In inplace "
    "KernelDef KernelModule Lit Mode NotCompiled Out OutInfo PartialWriteError "
    "PLANNED PrepareContext Prepared Scratch UNDECIDED view ViewRule",
    "kernel_errors": "kernel_error",
    "native": "Native NativeCall NativeShapes",
    "opdef": "ArgDef AttrDef OpDef OpLibrary RegionForm REQUIRED TypeVarDef",
    "parallel": "intra_op_pool IntraOpPool",
    "placement": "PlacementProblem PlacementTask PlacementTensor Placer simulate Timeline",
    "passes": "Pass PassContext PHASES PlanContext RegionNote Replacement Swap Tracing",
    "pattern": "CONSTANT Found Operand Pattern PatternLibrary RegisteredPattern",
    "queue": "Event Queue QueuedDevice",
    "region": "Arrangement Claim Refusal RegionCompiler RegisteredCompiler",
    "region_check": "check_program",
    "region_program": "Axis Multiple PRIMITIVES REDUCTIONS RegionInput RegionOutput RegionProgram Span Term WORDS",
    "resource": "ResourceKind ResourceRequest VARIABLE",
    "rewriter": "Builder Rewriter",
    "row_history": "RaggedHistory RowHistory TensorHistory",
    "step": "CancellationToken StepContext StepServices TraceEvent TraceLevel",
    "streams": "StreamName streams_of",
    "version": "api_accepts API_VERSION",
    "waiting": "Answer INTERRUPTS_SEEN wait_for wait_until_done",
    "waiting_threads": "WaitingThreads keep_a_call",
    "wire": "pack unpack",
}
_HOMES = {name: module for module, names in _PUBLISHED.items() for name in names.split()}

__all__ = [
    "DType",
    "DeviceSpec",
    "DeviceUnavailable",
    "KernelRefused",
    "dtypes",
    "errors",
    "hookimpl",
    "shape",
    *_HOMES,
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(importlib.import_module(f"graphdock.contracts.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        from graphdock.contracts.version import NAMES

        if name in NAMES:  # not an AttributeError, of which an import would say that there is no such name
            raise ImportError(f"graphdock.contracts.{name} is called {NAMES[name]} now")
        raise AttributeError(f"module 'graphdock.contracts' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
