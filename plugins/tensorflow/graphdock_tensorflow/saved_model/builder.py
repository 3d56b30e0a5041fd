"""Writing SavedModels that graphdock and TensorFlow load."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock.arguments import utf8
from graphdock.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from graphdock.messages import make
from graphdock_storage.checkpoint.files import explained, make_folder
from graphdock_storage.checkpoint.slices import parse_shape_and_slice
from graphdock_tf1.train.saveables import saveables_of
from graphdock_tf1.train.saver import Saver

from graphdock_tensorflow.checkpoints.bundle_writing import write_bundle
from graphdock_tensorflow.graphs.files import write_message
from graphdock_tensorflow.graphs.meta_graph import export_meta_graph
from graphdock_tensorflow.saved_model import constants
from graphdock_tensorflow.saved_model.signatures import build_tensor_info, predict_signature_def

__all__ = ["SavedModelBuilder", "main_op", "main_op_with_restore", "simple_save"]


class SavedModelBuilder:
    """Writes a SavedModel: the first graph with the values of its variables, then others that share them, then :meth:`save`.

    The values are a checkpoint of TensorFlow's own format, so that TensorFlow loads the model too.

    Args:
      export_dir: the folder, which must not be there, or be empty.

    Raises:
      AlreadyExistsError: it holds something.
    """

    def __init__(self, export_dir: str) -> None:
        self._folder = os.fsdecode(export_dir)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AlreadyExistsError(
                f"the folder of a SavedModel must be new or empty: {self._folder!r}",
                hint="name another folder, or remove it",
            )
        self._saved = make("SavedModel", saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_variables = False
        #: Name of a file in the folder of assets -> what was copied there.
        self._assets: dict[str, str] = {}

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Add a session's graph, and write the values of its variables.

        Args:
          tags: its tags. ``signature_def_map``: key -> SignatureDef.
          assets_collection: tensors of names of files, which are copied; of two files of one name the second gets a number behind
          it. ``main_op``, ``legacy_init_op``: what to run
          after loading.
          clear_devices: nodes ask for no device. ``saver``: a Saver of the variables; default: of all that can be saved.

        Raises:
          FailedPreconditionError: a graph with variables was added before. UninitializedError: a variable has no value.
        """
        if self._has_variables:
            raise FailedPreconditionError(
                "the SavedModel has variables already", hint="use add_meta_graph for more graphs"
            )
        _make_folders(os.path.join(self._folder, constants.VARIABLES_DIRECTORY))
        with sess.graph.as_default():
            path = os.path.join(self._folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)
            _write_variables(sess, path)
            self._add(tags, signature_def_map, assets_collection, main_op or legacy_init_op, clear_devices, saver)
        self._has_variables = True

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Add the default graph, whose variables are among those that were written; as :meth:`add_meta_graph_and_variables`.

        Raises:
          FailedPreconditionError: no variables were written before.
        """
        if not self._has_variables:
            raise FailedPreconditionError(
                "the first graph comes with variables", hint="use add_meta_graph_and_variables"
            )
        self._add(tags, signature_def_map, assets_collection, main_op or legacy_init_op, clear_devices, saver)

    def _add(
        self, tags: Sequence[str], signatures: Any, assets: Any, first: Any, clear_devices: bool, saver: Any
    ) -> None:
        given = [tags] if isinstance(tags, str) else list(tags)
        if any(sorted(g.meta_info_def.tags) == sorted(given) for g in self._saved.meta_graphs):
            raise InvalidArgumentError("two graphs of a SavedModel have the same tags", got=", ".join(given))
        saver = saver or Saver(sharded=False, allow_empty=True)
        made = export_meta_graph(saver_def=saver.to_proto(), clear_devices=clear_devices)
        made.meta_info_def.tags.extend(given)
        for key, signature in (signatures or {}).items():
            made.signature_def[key].MergeFromString(signature.SerializeToString())
        if first is not None:
            made.collection_def[constants.MAIN_OP_KEY].node_list.value.append(first.name)
            made.signature_def[constants.INIT_OP_SIGNATURE_KEY].outputs[
                constants.INIT_OP_SIGNATURE_KEY
            ].name = first.name
        for tensor in assets or ():
            self._add_asset(made, tensor)
        self._saved.meta_graphs.append(made)

    def _add_asset(self, message: Any, tensor: Any) -> None:
        """Copy a file that a constant names."""
        if tensor.op.type != "Const":
            raise InvalidArgumentError(f"{tensor.name} is an asset, which must be a constant", got=tensor.op.type)
        source = os.fsdecode(tensor.op.get_attr("value").item())
        name = self._copied(source)
        file = make("AssetFileDef", filename=name, tensor_info=build_tensor_info(tensor))
        message.asset_file_def.append(file)
        item = message.collection_def[constants.ASSETS_KEY].any_list.value.add()
        item.type_url, item.value = "type.googleapis.com/tensorflow.AssetFileDef", file.SerializeToString()

    def _copied(self, source: str) -> str:
        """The name that a file has among the assets: its own, with a number where another file has that. One file is there once."""
        base = os.path.basename(source)
        utf8(base, "the name of an asset")
        folder = os.path.join(self._folder, constants.ASSETS_DIRECTORY)
        make_folder(folder)
        name, number = base, 0
        try:
            while name in self._assets:
                if self._assets[name] == source or filecmp.cmp(source, os.path.join(folder, name), shallow=False):
                    return name
                number += 1
                name = f"{base}_{number}"
            shutil.copyfile(source, os.path.join(folder, name))
        except (OSError, ValueError) as error:
            raise explained(error, "cannot copy", source) from error
        self._assets[name] = source
        return name

    def save(self, as_text: bool = False) -> str:
        """Write the graphs; returns the path of the file."""
        _make_folders(self._folder)
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        return str(write_message(self._saved, os.path.join(self._folder, name), as_text))


def _make_folders(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        raise explained(error, "cannot make the folder", path) from error


def _write_variables(sess: Any, path: str) -> None:
    specs = [spec for saveable in saveables_of(None) for spec in saveable.specs]
    values = sess.run([spec.tensor for spec in specs]) if specs else []
    found: dict[str, Any] = {}
    for spec, value in zip(specs, values, strict=True):
        if not spec.slice_spec:
            found[spec.name] = value
            continue
        shape, part = parse_shape_and_slice(spec.slice_spec) or ((), None)
        found.setdefault(spec.name, (shape, []))[1].append((part, value))
    write_bundle(path, found)


def simple_save(
    session: Any, export_dir: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], legacy_init_op: Any = None
) -> None:
    """Write a SavedModel of a session's graph for serving, with one signature, ``"serving_default"``.

    Args:
      inputs, outputs: name -> tensor.

    Raises:
      As :class:`SavedModelBuilder`.
    """
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        [constants.SERVING],
        {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)},
        assets_collection=_tf.get_collection("asset_filepaths") or None,
        legacy_init_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


def main_op() -> Any:
    """An operation that initialises all variables, local ones too, to be run when a model has been loaded."""
    return _tf.group(_tf.global_variables_initializer(), _tf.local_variables_initializer())


def main_op_with_restore(restore_op_name: str) -> Any:
    """As :func:`main_op`, with a restore behind it: the name of the operation that restores."""
    with _tf.control_dependencies([main_op()]):
        return _tf.group(_tf.get_default_graph().get_operation_by_name(restore_op_name))
