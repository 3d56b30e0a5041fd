"""Reading SavedModels, TensorFlow's and graphdock's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError
from graphdock.messages import from_bytes
from graphdock_tf1.train.checkpoint_files import checkpoint_exists

from graphdock_tensorflow.graphs.files import choose, read_saved_model
from graphdock_tensorflow.graphs.meta_graph import import_meta_graph
from graphdock_tensorflow.saved_model import constants

__all__ = ["load", "maybe_saved_model_directory"]


def maybe_saved_model_directory(export_dir: str) -> bool:
    """Return whether a folder has the file of a SavedModel."""
    names = (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT)
    folder = os.fsdecode(export_dir)
    return "\0" not in folder and any(os.path.isfile(os.path.join(folder, name)) for name in names)


def load(sess: Any, tags: Sequence[str], export_dir: str, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
    """Add a graph of a SavedModel to a session's graph, and give its variables the values that were saved.

    What the graph says is to be run first runs then. Nodes that need ops which graphdock lacks are left out, and told.

    Args:
      tags: the tags that the graph has, all of them. ``export_dir``: the folder. ``import_scope``: name scope of the operations.
      saver_kwargs: as of ``tf.train.import_meta_graph``.

    Returns:
      The ``tf.MetaGraphDef``; ``signature_def["serving_default"].inputs["x"].name`` names a tensor to feed.

    Raises:
      NotFoundError: the folder holds no SavedModel. InvalidArgumentError: no graph has these tags; lists those there are.
      DataLossError: a file is damaged. UnavailableError: the library protobuf is not installed.
    """
    if not isinstance(sess, _tf.Session | _tf.InteractiveSession):
        raise ArgumentTypeError("saved_model.load needs a session", got=repr(sess))
    folder = os.fsdecode(export_dir)
    given = (tags,) if isinstance(tags, str) else tuple(tags)
    message = choose(read_saved_model(folder), given, folder)
    with sess.graph.as_default():
        saver = import_meta_graph(message, import_scope=import_scope, **saver_kwargs)
        path = os.path.join(folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)
        if saver is not None and checkpoint_exists(path):
            saver.restore(sess, path)
        feeds = _assets(sess.graph, message, folder, import_scope)
        for op in _first(sess.graph, message, import_scope):
            sess.run(op, feeds)
    return message


def _assets(graph: Any, message: Any, folder: str, scope: str | None) -> dict[Any, bytes]:
    """Tensor that names a file -> where that file is."""
    prefix = f"{scope}/" if scope else ""
    files = list(message.asset_file_def)
    if not files and constants.ASSETS_KEY in message.collection_def:
        for item in message.collection_def[constants.ASSETS_KEY].any_list.value:
            files.append(from_bytes("AssetFileDef", item.value, f"an asset of the SavedModel {folder!r}"))
    names = {op.name for op in graph.get_operations()}
    found = {}
    for file in files:
        if prefix + file.tensor_info.name.partition(":")[0] in names:
            tensor = graph.get_tensor_by_name(prefix + file.tensor_info.name)
            found[tensor] = os.fsencode(os.path.join(folder, constants.ASSETS_DIRECTORY, file.filename))
    return found


def _first(graph: Any, message: Any, scope: str | None) -> Iterable[Any]:
    """The operations that are to be run before anything else."""
    prefix = f"{scope}/" if scope else ""
    names = []
    signature = message.signature_def
    if constants.INIT_OP_SIGNATURE_KEY in signature:
        names += [info.name for info in signature[constants.INIT_OP_SIGNATURE_KEY].outputs.values()]
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if not names and key in message.collection_def:
            names += message.collection_def[key].node_list.value
    there = {op.name for op in graph.get_operations()}
    return [
        graph.as_graph_element(prefix + n.partition(":")[0], allow_tensor=False)
        for n in names
        if prefix + n.partition(":")[0] in there
    ]
