"""``tf.testing``, ``tf.native`` and ``tf.profiler``: public names without those of the packages that have them."""

import importlib

import graphdock as tf
import pytest
from graphdock_testing.op_check import opcheck


def test_what_is_public_is_below_tf():
    import graphdock.testing
    from graphdock.testing import opcheck as imported
    from graphdock.testing.driver import races

    assert tf.testing.opcheck is graphdock.testing.opcheck is imported is opcheck
    assert races is tf.testing.driver.races and "check" in dir(races)


@pytest.mark.parametrize("room", ["testing", "native", "profiler", "customop", "opgen"])
def test_each_row_of_a_manifest_names_something(room):
    (state,) = [s for s in tf.default_host().plugins() if s.name == room]
    assert isinstance(state.manifest.endpoints, dict)
    for name, target in state.manifest.endpoints.items():
        module, _, attribute = target.partition(":")
        space, _, last = f"graphdock.{name}".rpartition(".")
        assert getattr(importlib.import_module(space), last) is getattr(importlib.import_module(module), attribute)
