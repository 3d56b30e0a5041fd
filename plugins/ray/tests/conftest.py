"""Ray on two raylets of this machine, for the tests that want it; they are skipped where it is not installed."""

from __future__ import annotations

import os
import secrets

import pytest


@pytest.fixture(scope="session")
def raylets():
    """Ray, joined by this process; programs that tests start find it by RAY_ADDRESS."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'graphdock-ray[ray]'")
    from ray.cluster_utils import Cluster

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - it is Ray's name
    # each raylet has the resource of a task, so that tasks are on both: how Ray spreads the others is Ray's own
    head = {"num_cpus": 2, "include_dashboard": False, "resources": {"/job:worker/task:0": 1}}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=2, resources={"/job:ps": 1})
        before = os.environ.get("RAY_ADDRESS")
        os.environ["RAY_ADDRESS"] = made.address
        ray.init(address=made.address, log_to_driver=False, logging_level="error")
        yield ray
        os.environ.pop("RAY_ADDRESS")
        if before is not None:
            os.environ["RAY_ADDRESS"] = before
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def cluster():
    """Name of a cluster that no other test has."""
    return f"test-{secrets.token_hex(4)}"
