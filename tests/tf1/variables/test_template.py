"""What a template says of itself."""

from __future__ import annotations

import graphdock as tf


def test_a_template_has_the_name_that_it_was_given_and_its_scope_another() -> None:
    def scaled(x):
        return x * tf.get_variable("w", [])

    first, second = tf.make_template("t", scaled), tf.make_template("t", scaled)
    unique = tf.make_template("t", scaled, unique_name_="u")
    assert first.variable_scope_name is None
    for template in (first, second, unique):
        template(1.0)
    assert [t.name for t in (first, second, unique)] == ["t", "t", "t"]
    assert [t.variable_scope_name for t in (first, second, unique)] == ["t/", "t_1/", "u/"]
