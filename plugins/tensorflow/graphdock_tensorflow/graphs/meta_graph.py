"""Meta graphs: a graph with its collections and its Saver as one file, of which another program goes on."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, GraphdockError, InvalidArgumentError
from graphdock.messages import from_bytes, make
from graphdock_tf1.train.saver import Saver
from graphdock_tf1.train.saver_def import SaverDef

from graphdock_tensorflow.graphs.files import read_message, write_message
from graphdock_tensorflow.graphs.reading import read_graph

__all__ = ["add_collections", "collect", "export_meta_graph", "import_graph", "import_meta_graph"]

_log = logging.getLogger("graphdock")

#: Collections whose bytes are variables.
_VARIABLES = (
    "variables",
    "trainable_variables",
    "local_variables",
    "model_variables",
    "moving_average_variables",
    "metric_variables",
    "global_step",
)
_SAVERS = "savers"
_RUNNERS = "queue_runners"
#: TensorFlow's notes on its own control flow, which is made anew, and on the files of a SavedModel, which its loader reads.
_NOTES = ("cond_context", "while_context", "saved_model_assets")
_VERSION = "1.15.0"


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Any = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """A graph with its collections as a ``tf.MetaGraphDef``, and as a file where one is named.

    Args:
      filename: the file; it is there whole or not at all. ``as_text``: write the text of the message.
      meta_info_def: what is taken over into ``meta_info_def``. ``graph_def``: another graph than the one there is.
      saver_def: how the graph's Saver is called. ``graph``: default: the default graph.
      collection_list: the collections; default: all.
      export_scope: only what is in this name scope, which names lose.
      clear_devices: nodes ask for no device.
      clear_extraneous_savers: only the Saver that is given joins the collection of Savers.
      strip_default_attrs, save_debug_info, kwargs: taken for TensorFlow's sake.

    Raises:
      UnavailableError: the library protobuf is not installed. InvalidArgumentError: the graph is larger than 2 GiB.
    """
    graph = _tf.get_default_graph() if graph is None else graph
    if not isinstance(graph, _tf.Graph):
        raise ArgumentTypeError("export_meta_graph: graph must be a Graph", got=repr(graph))
    made = make("MetaGraphDef")
    if meta_info_def is not None:
        made.meta_info_def.MergeFromString(meta_info_def.SerializeToString())
    made.meta_info_def.tensorflow_version = made.meta_info_def.tensorflow_version or _VERSION
    if graph_def:
        made.graph_def.MergeFromString(graph_def.SerializeToString())
    else:
        made.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True))
    prefix = f"{export_scope}/" if export_scope else ""
    if prefix:
        _keep_scope(made.graph_def, prefix)
    if clear_devices:
        for node in _all_nodes(made.graph_def):
            node.device = ""
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        if isinstance(key, str) and not (key == _SAVERS and clear_extraneous_savers):
            collect(made.collection_def, key, graph.get_collection(key), export_scope)
    if saver_def is not None:
        _fill_saver(made.saver_def, saver_def)
    if filename:
        write_message(made, os.fsdecode(filename), as_text)
    return made


def _all_nodes(graph_def: Any) -> list[Any]:
    return [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]


def _keep_scope(graph_def: Any, prefix: str) -> None:
    """Leave only the nodes of a scope, without its name; what they read of others is no longer there, as in TensorFlow."""
    kept = [node for node in graph_def.node if node.name.startswith(prefix)]
    copies = [type(node)() for node in kept]
    names = {node.name for node in kept}
    for copy, node in zip(copies, kept, strict=True):
        copy.CopyFrom(node)
        copy.name = node.name.removeprefix(prefix)
        inputs = [i for i in node.input if not i.startswith("^") or i[1:] in names]
        del copy.input[:]
        for text in inputs:
            plain = text.removeprefix("^")
            if plain.partition(":")[0] not in names:
                raise InvalidArgumentError(
                    f"{node.name!r} reads {plain!r}, which is not in the scope {prefix.rstrip('/')!r}",
                    hint="export a scope that is whole, or the whole graph",
                )
            copy.input.append(("^" if text.startswith("^") else "") + plain.removeprefix(prefix))
        if "_class" in copy.attr:
            del copy.attr["_class"]
    del graph_def.node[:]
    graph_def.node.extend(copies)


def _fill_saver(message: Any, saver_def: Any) -> None:
    if not isinstance(saver_def, SaverDef):
        message.MergeFromString(saver_def.SerializeToString())
        return
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name", "sharded", "version"):
        setattr(message, field, getattr(saver_def, field))
    message.max_to_keep = saver_def.max_to_keep or 0
    message.keep_checkpoint_every_n_hours = saver_def.keep_checkpoint_every_n_hours


def collect(collections: Any, key: str, items: Sequence[Any], export_scope: str | None = None) -> None:
    """Write a collection as a CollectionDef. What has no form in one is said and left out.

    Variables in a collection of the program's own are written by name, as TensorFlow writes them: who reads it gets their values.
    """
    prefix = f"{export_scope}/" if export_scope else ""
    for item in items:
        made = collections[key]
        if (
            isinstance(item, _tf.Variable)
            and key in _VARIABLES
            or key == _RUNNERS
            and isinstance(item, _tf.train.QueueRunner)
        ):
            proto = item.to_proto(export_scope)
            if proto is not None:
                made.bytes_list.value.append(proto.SerializeToString())
        elif isinstance(item, Saver):
            definition = item.to_proto(export_scope)
            if definition is not None:
                message = make("SaverDef")
                _fill_saver(message, definition)
                made.bytes_list.value.append(message.SerializeToString())
        elif isinstance(item, _tf.Tensor | _tf.Operation | _tf.Variable):
            if item.name.startswith(prefix):
                made.node_list.value.append(item.name.removeprefix(prefix))
        elif isinstance(item, bool | int):
            made.int64_list.value.append(int(item))
        elif isinstance(item, float):
            made.float_list.value.append(item)
        elif isinstance(item, str | bytes):
            made.bytes_list.value.append(item.encode() if isinstance(item, str) else item)
        else:
            _log.warning("the collection %r holds %r, which a meta graph cannot hold; it is left out", key, item)
            if made.WhichOneof("kind") is None:
                del collections[key]


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    allow_missing: bool = True,
    **kwargs: Any,
) -> Saver | None:
    """Add the graph and the collections of a meta graph to the default graph, and return its Saver.

    Args:
      meta_graph_or_file: a ``tf.MetaGraphDef``, TensorFlow's or graphdock's own, or the path of a file of one.
      clear_devices: nodes ask for no device. ``import_scope``: name scope of all operations.
      allow_missing: import what needs none of the ops that graphdock lacks, and say in a warning which these are; otherwise
        they are an error.
      kwargs: ``input_map``, as of ``tf.import_graph_def``; others are taken for TensorFlow's sake.

    Returns:
      The Saver that it names, else one of the variables, else None where there are none.

    Raises:
      NotFoundError, DataLossError: there is no such file, or it is no meta graph. UnknownOpError: an op is missing.
      UnavailableError: the library protobuf is not installed.
    """
    if isinstance(meta_graph_or_file, str | bytes | os.PathLike):
        message = read_message("MetaGraphDef", os.fsdecode(meta_graph_or_file))
    else:
        data = meta_graph_or_file.SerializeToString()
        message = from_bytes("MetaGraphDef", data, "the meta graph")
    import_graph(message, clear_devices, import_scope, allow_missing, kwargs.get("input_map"))
    if message.HasField("saver_def") and message.saver_def.restore_op_name:
        graph = _tf.get_default_graph()
        prefix = f"{import_scope}/" if import_scope else ""
        if prefix + message.saver_def.restore_op_name in {op.name for op in graph.get_operations()}:
            return Saver(saver_def=_saver_def(message.saver_def), name=import_scope)
    if _tf.global_variables(import_scope):
        return Saver(_tf.global_variables(import_scope), name="save")
    return None


def _saver_def(message: Any) -> SaverDef:
    names = ("filename_tensor_name", "save_tensor_name", "restore_op_name", "max_to_keep", "sharded", "version")
    return SaverDef(
        **{n: getattr(message, n) for n in names},
        keep_checkpoint_every_n_hours=message.keep_checkpoint_every_n_hours,
    )


def import_graph(
    message: Any, clear_devices: bool, scope: str | None, allow_missing: bool, input_map: Any = None
) -> None:
    """Add the graph of a MetaGraphDef and its collections to the default graph."""
    if clear_devices:
        for node in _all_nodes(message.graph_def):
            node.device = ""
    graph = _tf.get_default_graph()
    read = read_graph(message.graph_def, graph.host.ops, list(input_map or ()))
    if read.report.missing:
        if not allow_missing:
            _tf.import_graph_def(message.graph_def, input_map, name=scope or "")  # which says what is missing
        _log.warning("the graph is imported in part: %s", read.report)
    _tf.import_graph_def(read.data, input_map, name=scope or "")
    add_collections(message, scope, read.report.left_out)


def add_collections(message: Any, scope: str | None, left_out: frozenset[str]) -> None:
    """Fill the collections of the default graph as a MetaGraphDef says. Items whose nodes were left out are left out."""
    graph = _tf.get_default_graph()
    prefix = f"{scope}/" if scope else ""
    for key in sorted(message.collection_def):
        if key in _NOTES:
            continue
        found = message.collection_def[key]
        kind = found.WhichOneof("kind")
        for value in getattr(found, kind).value if kind else ():
            if kind == "bytes_list" and key in _VARIABLES:
                item = _variable(value, scope, left_out)
            elif kind == "bytes_list" and key == _SAVERS:
                item = _saver(value, scope, left_out)
            elif kind == "bytes_list" and key == _RUNNERS:
                item = _runner(value, scope, left_out)
            elif kind == "node_list":
                missing = value.partition(":")[0] in left_out
                item = None if missing else graph.as_graph_element(prefix + value)
            elif kind in ("int64_list", "float_list", "bytes_list"):
                item = value
            else:
                _log.warning("the collection %r holds messages of any kind, which are not read", key)
                continue
            if item is not None:
                graph.add_to_collection(key, item)


def _variable(data: bytes, scope: str | None, left_out: frozenset[str]) -> Any:
    message = from_bytes("VariableDef", data, "a variable of the meta graph")
    if message.variable_name.partition(":")[0] in left_out or message.initializer_name in left_out:
        return None
    if message.initial_value_name.partition(":")[0] in left_out:
        message.initial_value_name = ""
    return _tf.Variable.from_proto(message, scope)


def _runner(data: bytes, scope: str | None, left_out: frozenset[str]) -> Any:
    message = from_bytes("QueueRunnerDef", data, "a queue runner of the meta graph")
    if left_out.intersection(
        (message.queue_name, message.close_op_name, message.cancel_op_name, *message.enqueue_op_name)
    ):
        return None
    return _tf.train.QueueRunner.from_proto(message, scope)


def _saver(data: bytes, scope: str | None, left_out: frozenset[str]) -> Saver | None:
    message = from_bytes("SaverDef", data, "a Saver of the meta graph")
    if message.restore_op_name in left_out:
        return None
    try:
        return Saver(saver_def=_saver_def(message), name=scope)
    except GraphdockError as error:
        _log.warning("a Saver of the meta graph is left out: %s", error.message)
        return None
