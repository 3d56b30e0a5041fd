"""The imports of plugins: everything a device or a kernel needs, and nothing of the host's inside.

Kernel and device modules import this package only, executors :mod:`graphdock.contracts.runtime` besides. Op packages (wrappers,
gradient functions) also import the public :mod:`graphdock` and :mod:`graphdock.ops`.
"""

from __future__ import annotations

import importlib
from typing import NoReturn

import pluggy

from graphdock import dtypes, errors
from graphdock.contracts.builder import Builder
from graphdock.contracts.cache import cache_dir, read_cache, replace_file, write_cache
from graphdock.contracts.command import CommandTools, ProgramStep
from graphdock.contracts.cut import Cutter, cut_region, put_back
from graphdock.contracts.device import HOST_MEMORY, Buffer, Device, DeviceFactory, DeviceInfo, Storage
from graphdock.contracts.executor import SCALAR, Executor, PlacedGraph, Program, SessionFactory, StageReport
from graphdock.contracts.formats import CheckpointFormat, GraphFormat, GraphRead, ImportReport, Missing
from graphdock.contracts.guards import Conditions, Guard
from graphdock.contracts.ir import PlanGraph, PlanNode, Region, Value
from graphdock.contracts.ir_check import check
from graphdock.contracts.ir_print import print_graph, print_node
from graphdock.contracts.kernel import (
    FRESH,
    PLANNED,
    UNDECIDED,
    ArgInfo,
    BindContext,
    Bound,
    BuildContext,
    Candidate,
    Decision,
    In,
    KernelDef,
    Lit,
    Mode,
    Out,
    OutInfo,
    PartialWriteError,
    PrepareContext,
    Prepared,
    Scratch,
    ViewRule,
    build_kernel,
    inplace,
    view,
)
from graphdock.contracts.kernel_error import kernel_error
from graphdock.contracts.kernel_module import KernelModule
from graphdock.contracts.loops import KeepLoops, LoopNote, LoopWriter, UserOp
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef, OpLibrary, RegionForm, TypeVarDef
from graphdock.contracts.passes import PHASES, Pass, PassContext, PlanContext, RegionNote, Standing, Tracing
from graphdock.contracts.pattern import CONSTANT, Found, Operand, Pattern, PatternLibrary, RegisteredPattern
from graphdock.contracts.queue import Event, Queue, QueuedDevice
from graphdock.contracts.region import Claim, Refusal, RegionCompiler, RegisteredCompiler
from graphdock.contracts.region_check import check_program
from graphdock.contracts.region_program import (
    PRIMITIVES,
    REDUCTIONS,
    WORDS,
    Axis,
    RegionInput,
    RegionOutput,
    RegionProgram,
    Term,
)
from graphdock.contracts.renamed import NAMES as _RENAMED
from graphdock.contracts.rendezvous import Rendezvous, RendezvousKey
from graphdock.contracts.resource import VARIABLE, ResourceKind, ResourceRequest
from graphdock.contracts.rewriter import Rewriter
from graphdock.contracts.step import CancellationToken, StepContext, StepServices, TraceEvent, TraceLevel
from graphdock.contracts.streams import StreamName, streams_of
from graphdock.contracts.version import API_VERSION, api_accepts
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import DeviceUnavailable, KernelRefused

#: The module; the name ``graphdock.shape`` is the op, as TensorFlow's is.
shape = importlib.import_module("graphdock.shape")

#: Marks a hook implementation in a plugin's module.
hookimpl = pluggy.HookimplMarker("graphdock")

__all__ = [
    "API_VERSION",
    "ArgDef",
    "ArgInfo",
    "AttrDef",
    "Axis",
    "BindContext",
    "Bound",
    "Buffer",
    "BuildContext",
    "Builder",
    "CancellationToken",
    "Candidate",
    "CheckpointFormat",
    "Claim",
    "CommandTools",
    "Conditions",
    "Cutter",
    "DType",
    "Decision",
    "Device",
    "DeviceFactory",
    "DeviceInfo",
    "DeviceSpec",
    "DeviceUnavailable",
    "Event",
    "Executor",
    "FRESH",
    "Guard",
    "GraphFormat",
    "GraphRead",
    "HOST_MEMORY",
    "ImportReport",
    "In",
    "KernelDef",
    "KernelModule",
    "KernelRefused",
    "Lit",
    "Missing",
    "Mode",
    "CONSTANT",
    "Found",
    "Operand",
    "KeepLoops",
    "LoopNote",
    "LoopWriter",
    "UserOp",
    "PHASES",
    "Pass",
    "PassContext",
    "PlanContext",
    "RegionNote",
    "RegisteredCompiler",
    "RegisteredPattern",
    "Standing",
    "Tracing",
    "Pattern",
    "PatternLibrary",
    "OpDef",
    "OpLibrary",
    "Out",
    "OutInfo",
    "PLANNED",
    "PartialWriteError",
    "PRIMITIVES",
    "PlacedGraph",
    "PlanGraph",
    "PlanNode",
    "PrepareContext",
    "Prepared",
    "Program",
    "ProgramStep",
    "Queue",
    "QueuedDevice",
    "REDUCTIONS",
    "REQUIRED",
    "Refusal",
    "Region",
    "RegionCompiler",
    "RegionForm",
    "RegionInput",
    "RegionOutput",
    "RegionProgram",
    "Rendezvous",
    "RendezvousKey",
    "ResourceKind",
    "ResourceRequest",
    "Rewriter",
    "SCALAR",
    "Scratch",
    "SessionFactory",
    "StageReport",
    "StepContext",
    "StepServices",
    "StreamName",
    "Storage",
    "Term",
    "TraceEvent",
    "TraceLevel",
    "TypeVarDef",
    "UNDECIDED",
    "VARIABLE",
    "Value",
    "ViewRule",
    "WORDS",
    "api_accepts",
    "build_kernel",
    "cache_dir",
    "check",
    "check_program",
    "cut_region",
    "dtypes",
    "errors",
    "hookimpl",
    "inplace",
    "kernel_error",
    "print_graph",
    "print_node",
    "read_cache",
    "put_back",
    "replace_file",
    "shape",
    "streams_of",
    "view",
    "write_cache",
]


def __getattr__(name: str) -> NoReturn:
    if name in _RENAMED:  # not an AttributeError, of which an import would say that there is no such name
        raise ImportError(f"graphdock.contracts.{name} is called {_RENAMED[name]} now")
    raise AttributeError(f"module 'graphdock.contracts' has no attribute {name!r}")
