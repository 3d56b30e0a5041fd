"""Checkpoints as files: writing them so that none is ever half there, and reading them, TensorFlow's own too.

A checkpoint is named by a prefix, such as ``"logs/model.ckpt-100"``. This package knows arrays, names and files; no graph and no
session. Kernels of ``SaveV2`` and ``RestoreV2`` call it, and so do the functions of ``tf.train`` that look into checkpoints.
"""

from __future__ import annotations

from graphdock_storage.checkpoint.layout import Stored
from graphdock_storage.checkpoint.opening import exists, open_checkpoint
from graphdock_storage.checkpoint.reading import Checkpoint, HalfRead
from graphdock_storage.checkpoint.slices import Slice
from graphdock_storage.checkpoint.writing import Item, discard_graph_drafts, files_of, merge, remove, write

__all__ = [
    "Checkpoint",
    "HalfRead",
    "Item",
    "Slice",
    "Stored",
    "exists",
    "discard_graph_drafts",
    "files_of",
    "merge",
    "open_checkpoint",
    "remove",
    "write",
]
