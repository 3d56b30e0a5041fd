"""``tensorflow.python.client.device_lib``: the devices of this machine, as programs list them to look for a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import graphdock as tf

__all__ = ["list_local_devices"]


def list_local_devices(session_config: Any = None) -> list[SimpleNamespace]:
    """A record per device of the configured session: ``name``, ``device_type``, and TensorFlow's other fields, empty."""
    with tf.Session(graph=tf.Graph(), config=session_config) as session:
        names = session.list_devices()
    return [
        SimpleNamespace(
            name=name,
            device_type=name.rpartition("/")[2].split(":")[-2].upper(),
            memory_limit=0,
            physical_device_desc="",
        )
        for name in names
    ]
