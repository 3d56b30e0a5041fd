"""SavedModels of models: written to a folder beside their place, which is renamed at the end."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from typing import Any

import graphdock as _tf

from graphdock_tf1.estimator.serving import signatures


def export(
    base: str, checkpoint: str, spec: Any, receiver: Any, extra: Mapping[str, str] | None, as_text: bool, config: Any
) -> bytes:
    """Write what a model function built in the default graph, with a checkpoint's values; the new folder's path.

    Args:
      base: folder of the exports. extra: path in ``assets.extra`` -> file. config: of the session. The others as of the Estimator.
    """
    maps = signatures(spec, receiver.receiver_tensors)
    folder = new_folder(base)
    temporary = os.path.join(base, f"temp-{os.path.basename(folder)}")
    saver = spec.scaffold.saver or _tf.train.Saver(sharded=True)
    main_op = spec.scaffold.local_init_op
    main_op = _tf.train.Scaffold.default_local_init_op() if main_op is None else main_op
    with _tf.Session(config=config) as session:
        saver.restore(session, checkpoint)
        builder = _tf.saved_model.Builder(temporary)
        builder.add_meta_graph_and_variables(
            session,
            [_tf.saved_model.SERVING],
            signature_def_map=maps,
            assets_collection=_tf.get_collection(_tf.GraphKeys.ASSET_FILEPATHS),
            main_op=main_op,
            saver=saver,
        )
        builder.save(as_text)
    for inner, source in (extra or {}).items():
        target = os.path.join(temporary, "assets.extra", inner)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
    os.rename(temporary, folder)
    return os.fsencode(folder)


def new_folder(base: str) -> str:
    """A folder named after the time in seconds, or after one of the next seconds where that is there; not made."""
    stamp = int(time.time())
    while os.path.exists(os.path.join(base, str(stamp))):
        stamp += 1
    return os.path.join(base, str(stamp))
