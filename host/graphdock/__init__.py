"""graphdock: a dataflow runtime whose ops, kernels, devices and executors are plugins.

    import graphdock as tf

This module is a lazy table: a name is imported when it is first used. Names of the host stand here; names of the standard op
library (``tf.matmul``, ``tf.nn.relu``, ``tf.train.AdagradOptimizer``) are looked up in its endpoint table. ``dir(tf)`` lists
all of them, ``help(tf.matmul)`` describes one.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

__version__ = "0.1.0"

_HOST: dict[str, str] = {
    # graphs
    "Graph": "graphdock.graph.graph",
    "Operation": "graphdock.graph.operation",
    "Tensor": "graphdock.graph.tensor",
    "get_default_graph": "graphdock.graph.graph",
    "reset_default_graph": "graphdock.graph.graph",
    "name_scope": "graphdock.ops.scopes",
    "control_dependencies": "graphdock.ops.scopes",
    "device": "graphdock.ops.scopes",
    "colocate_with": "graphdock.ops.scopes",
    "container": "graphdock.ops.scopes",
    "init_scope": "graphdock.ops.scopes",
    "import_graph_def": "graphdock.graph.graph_def",
    "load_op_library": "graphdock.ops.library",
    "TensorShape": "graphdock.shape",
    "DType": "graphdock.dtypes",
    "as_dtype": "graphdock.dtypes",
    "DeviceSpec": "graphdock.device_name",
    # core ops
    "constant": "graphdock.ops.convert",
    "convert_to_tensor": "graphdock.ops.convert",
    "register_tensor_conversion_function": "graphdock.ops.convert",
    "placeholder": "graphdock.ops.core",
    "placeholder_with_default": "graphdock.ops.core",
    "cast": "graphdock.ops.core",
    "shape": "graphdock.ops.core",
    "zeros_like": "graphdock.ops.core",
    "ones_like": "graphdock.ops.core",
    "identity_n": "graphdock.ops.core",
    "group": "graphdock.ops.core",
    "py_func": "graphdock.ops.core",
    "Assert": "graphdock.ops.core",
    "Print": "graphdock.ops.core",
    "identity": "graphdock.ops._gen.core_ops",
    "stop_gradient": "graphdock.ops._gen.core_ops",
    "add_n": "graphdock.ops._gen.core_ops",
    "no_op": "graphdock.ops._gen.core_ops",
    "check_numerics": "graphdock.ops._gen.core_ops",
    # control flow, gradients, variables
    "cond": "graphdock.control_flow.cond",
    "case": "graphdock.control_flow.cond",
    "while_loop": "graphdock.control_flow.while_loop",
    "gradients": "graphdock.gradients.backprop",
    "IndexedSlices": "graphdock.gradients.indexed_slices",
    "RegisterGradient": "graphdock.gradients.registry",
    "NotDifferentiable": "graphdock.gradients.registry",
    "NoGradient": "graphdock.gradients.registry",
    "Variable": "graphdock.variables.variable",
    "GraphKeys": "graphdock.variables.collections",
    "get_variable": "graphdock.variables.scope",
    "get_variable_scope": "graphdock.variables.scope",
    "variable_scope": "graphdock.variables.scope",
    "VariableScope": "graphdock.variables.scope",
    "AUTO_REUSE": "graphdock.variables.scope",
    "assign": "graphdock.variables.variable",
    "assign_add": "graphdock.variables.variable",
    "assign_sub": "graphdock.variables.variable",
    "add_to_collection": "graphdock.variables.collections",
    "get_collection": "graphdock.variables.collections",
    "get_collection_ref": "graphdock.variables.collections",
    "global_variables": "graphdock.variables.collections",
    "local_variables": "graphdock.variables.collections",
    "trainable_variables": "graphdock.variables.collections",
    "model_variables": "graphdock.variables.collections",
    "global_variables_initializer": "graphdock.variables.initialization",
    "local_variables_initializer": "graphdock.variables.initialization",
    "initialize_all_variables": "graphdock.variables.initialization",
    "variables_initializer": "graphdock.variables.initialization",
    "is_variable_initialized": "graphdock.variables.initialization",
    "report_uninitialized_variables": "graphdock.variables.initialization",
    # running
    "Session": "graphdock.session.session",
    "InteractiveSession": "graphdock.session.session",
    "SessionConfig": "graphdock.session.config",
    "get_default_session": "graphdock.graph.default_session",
    "RunOptions": "graphdock.session.run_options",
    "RunMetadata": "graphdock.session.run_options",
    "Host": "graphdock.plugin.host",
    "default_host": "graphdock.plugin.host",
}
_RENAMED: dict[str, tuple[str, str]] = {
    "tuple": ("graphdock.ops.core", "tuple_"),
    "bool": ("graphdock.dtypes", "bool_"),
}
_MODULES = ("contracts", "dtypes", "errors", "ops", "testing")
_DTYPES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "string resource"
).split()
#: What TensorFlow 1 calls otherwise, and where it went.
_GONE = {
    "ConfigProto": "use tf.SessionConfig(backends=..., device_count=..., log_device_placement=...)",
    "GPUOptions": "use SessionConfig(memory_limit={'cuda': '20GiB'}, options={'cuda': {...}})",
    "keras": "graphdock has no keras; build the graph with tf ops",
    "contrib": "graphdock has no contrib; build the graph with tf ops",
    "layers": "graphdock has no layers; make them of tf.Variable, tf.matmul and tf.nn",
    "losses": "graphdock has no losses; make them of tf.nn and tf.reduce_mean",
    "summary": "graphdock has no summaries; fetch the values and log them",
    "app": "graphdock has no tf.app; call your own main()",
    "mul": "use tf.multiply",
    "sub": "use tf.subtract",
    "neg": "use tf.negative",
    "pack": "use tf.stack",
    "unpack": "use tf.unstack",
    "FIFOQueue": "graphdock has no queues yet; feed batches",
    "SparseTensor": "graphdock has no sparse tensors; tf.gather and tf.IndexedSlices work on rows",
    "nn.conv2d": "graphdock has no convolutions yet",
    "train.Saver": "graphdock has no checkpoints yet; sess.run(tf.global_variables()) returns the values",
}


class _Facade(types.ModuleType):
    """Keeps public names that are also modules (``shape``, ``gradients``) from being hidden when these are imported.

    Python binds a submodule in its parent; ``tf.gradients`` would turn into the package ``graphdock.gradients``.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOST and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f"graphdock.{name}")
    elif name in _HOST:
        value = getattr(importlib.import_module(_HOST[name]), name)
    elif name in _DTYPES:
        value = getattr(importlib.import_module("graphdock.dtypes"), name)
    elif name in _RENAMED:
        module, attribute = _RENAMED[name]
        value = getattr(importlib.import_module(module), attribute)
    elif name.startswith("__"):
        raise AttributeError(f"module 'graphdock' has no attribute {name!r}")
    else:
        value = _endpoint("", name)
    globals()[name] = value
    return value


def _endpoint(prefix: str, name: str) -> Any:
    """A name of the standard library: a function, or a namespace such as ``nn``."""
    table: dict[str, str] = importlib.import_module("graphdock_std.endpoints").ENDPOINTS
    full = prefix + name
    target = table.get(full)
    if target is not None:
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
    inner = full + "."
    if any(key.startswith(inner) for key in table):
        return _namespace(full, table)
    from graphdock.errors import did_you_mean

    known = [k[len(prefix) :].partition(".")[0] for k in table if k.startswith(prefix)]
    if not prefix:
        known += [*_HOST, *_RENAMED, *_MODULES, *_DTYPES]
    hint = _GONE.get(full) or did_you_mean(name, sorted(set(known)))
    where = "module 'graphdock" + ("." + prefix.rstrip(".") if prefix else "") + "'"
    raise AttributeError(f"{where} has no attribute {name!r}" + (f"; {hint}" if hint else ""))


def _namespace(full: str, table: dict[str, str]) -> types.ModuleType:
    module = types.ModuleType(f"graphdock.{full}", f"The standard library's names under ``{full}``.")

    def lookup(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'graphdock.{full}' has no attribute {name!r}")
        value = _endpoint(full + ".", name)
        setattr(module, name, value)
        return value

    module.__getattr__ = lookup  # type: ignore[method-assign]
    names = sorted({k[len(full) + 1 :].partition(".")[0] for k in table if k.startswith(full + ".")})
    module.__dict__["__dir__"] = lambda: names
    module.__dict__["__all__"] = names  # for help()
    sys.modules.setdefault(f"graphdock.{full}", module)
    return module


def __dir__() -> list[str]:
    try:
        table: dict[str, str] = importlib.import_module("graphdock_std.endpoints").ENDPOINTS
    except ModuleNotFoundError:
        table = {}
    return sorted({*_HOST, *_RENAMED, *_MODULES, *_DTYPES, *(k.partition(".")[0] for k in table), "__version__"})
