"""Switches of passes that are checked before any step."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.session.pass_switches import check_passes, without_unknown


def test_a_pass_that_the_host_has_not_is_refused_and_may_be_left_out_where_it_is_off():
    host = tf.Host()
    check_passes({"fold": False, "cse": True}, host)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no pass named 'flod'(.|\n)*did you mean 'fold'"):
        check_passes({"flod": False}, host)
    kept = without_unknown({"fold": False, "others": False, "wanted": True}, host)
    assert kept == {"fold": False, "wanted": True}
