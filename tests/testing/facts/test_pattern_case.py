"""Patterns against what stands for them: all of graphdock's own are held, on samples whose dims differ; what fits none is said."""

from __future__ import annotations

import types
from dataclasses import replace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Operand, Pattern, hookimpl
from graphdock.plugin.host import Host
from graphdock_std.patterns import PATTERNS
from graphdock_testing.conformance import Conformance, ConformanceError, Untested
from graphdock_testing.facts.pattern_sample import samples_of

pytestmark = pytest.mark.plain
KIT = Conformance("std")
PARTS = [part for part in KIT.parts if part.startswith("pattern")]
#: One of each family, and those that were held by nothing before.
SOME = (
    *("attention_after_blended_3", "dropped_attention_divided_added_4", "dropped_attention_unscaled_hidden_3"),
    *("linear_cross_entropy_next", "linear_cross_entropy_add_cut_reshaped_of_bfloat16", "matmul_add_tanh_reshaped_3"),
    *("rotary_rotated_4_3", "rotary_unstacked_3_2", "sparse_softmax_int64_cross_entropy_gradient_3", "lstm"),
)


def held(part, kit=KIT):
    (case,) = kit.cases(part)
    kit.check(case)


def test_every_pattern_of_std_has_a_case():
    assert len(PARTS) == len(PATTERNS) > 400
    assert {f"pattern std.{name}" for name in SOME} <= set(PARTS)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.sampled(2)
def test_a_pattern_is_held(name):
    held(f"pattern std.{name}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", PARTS)
def test_every_pattern_is_held(part):
    held(part)


@pytest.mark.parametrize("name", SOME[:3] + SOME[6:8])
def test_samples_differ_in_their_dims(name):
    """A replacement that mixes two dims up is right where they are equal."""
    (found,) = [r for r in KIT.host.load_patterns().all() if r.full_name == f"std.{name}"]
    seen = set()
    for sample, _ in zip(samples_of(KIT.host, found, []), range(8), strict=False):
        seen.update(len(set(dims)) > 1 for dims in sample.found.shapes.values() if len(dims) > 1)
    assert True in seen


def kit_of(**fields):
    """A kit of a plugin with one pattern and nothing else."""
    told = {
        "anchor": "Tanh",
        "inputs": {"x": Operand((None, None)), "table": Operand((None, None), constant=True)},
        "pattern": lambda x, table: tf.tanh(x * table),
        "replacement": lambda x, table: tf.tanh(tf.constant(table) * x),
        **fields,
    }
    host = Host()
    hook = hookimpl(specname="register_patterns")(lambda: [Pattern("mine", **told)])
    host.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    return Conformance("lab", host=host)


def odd(found):
    return None if np.array_equal(found.constants["table"], np.arange(35).reshape(7, 5)) else "another table"


def test_what_no_draw_meets_is_untested_and_a_sample_meets_it():
    with pytest.raises(Untested, match="none of 400 draws .* states no `sample` that does; the last one: "):
        held("pattern lab.mine", kit_of(check=odd))
    sample = lambda rng: {"x": (7, 5), "table": np.arange(35.0).reshape(7, 5)}  # noqa: E731
    held("pattern lab.mine", kit_of(check=odd, sample=sample))
    with pytest.raises(ConformanceError, match="output 0"):
        held("pattern lab.mine", kit_of(check=odd, sample=sample, replacement=lambda x, table: tf.tanh(x)))


def test_a_pattern_that_no_plan_is_changed_by_is_untested():
    """Its anchor is no op of what it looks for, so that the search begins nowhere."""
    with pytest.raises(Untested, match="lab.mine changed none of the 8 samples"):
        held("pattern lab.mine", kit_of(anchor="Sqrt"))


def test_a_sample_that_raises_names_the_pattern():
    with pytest.raises(ConformanceError, match=r"sample of lab.mine raises KeyError: 'x'"):
        held("pattern lab.mine", kit_of(sample=lambda rng: {}["x"]))


def test_what_makes_a_place_not_worth_it_keeps_nothing_from_being_held():
    wrong = {"replacement": lambda x, table: tf.tanh(x), "worth": lambda found: "too small"}
    with pytest.raises(ConformanceError, match="output 0"):
        held("pattern lab.mine", kit_of(**wrong))


def test_a_plan_asks_whether_it_is_worth_it():
    asked = []

    def worth(found):
        asked.append(found.shapes["x"])
        return "too small"

    host = kit_of(worth=worth).host
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        y = tf.tanh(x * tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3)))
        with tf.Session(graph=graph, host=host) as session:
            notes = [note.what for note in session.explain(y).plan.placement.notes]
    assert asked == [(2, 3)] and "too small" in notes


def test_a_wrong_replacement_of_drawn_numbers_is_found():
    (found,) = [r for r in KIT.host.load_patterns().all() if r.full_name == "std.dropped_attention_after_3"]

    def other(*args, **given):
        return found.pattern.replacement(*args, **{**given, "rate": given["rate"] + 0.5})

    wrong = replace(found.pattern, replacement=other)
    kit = kit_of(**{f: getattr(wrong, f) for f in wrong.__dataclass_fields__ if f != "name"})
    with pytest.raises(ConformanceError, match="output 0 at|gradient by"):
        held("pattern lab.mine", kit)
