"""``tf.testing``: what people write in tests, without the name of the package that has it."""

import graphdock as tf
from graphdock_testing.endpoints import ENDPOINTS
from graphdock_testing.op_check import opcheck


def test_what_is_public_is_below_tf():
    import graphdock.testing
    from graphdock.testing import opcheck as imported

    assert tf.testing.opcheck is graphdock.testing.opcheck is imported is opcheck
    assert [f"testing.{name}" for name in dir(tf.testing)] == sorted(ENDPOINTS)
