"""The public names of the cluster plugin."""

from __future__ import annotations

#: Module -> namespaces -> the names that each of them has of it.
ENDPOINTS: dict[str, dict[str, str]] = {
    "graphdock_cluster.server": {"tf.train": "Server"},
    "graphdock_cluster.local_cluster": {"tf.test": "create_local_cluster"},
}
