"""Flags: how a command line is read, what is refused, and what FLAGS is to programs of every age."""

from __future__ import annotations

import sys

import graphdock as tf
import pytest
from graphdock_tf1.platform.flags import FLAGS


@pytest.fixture(autouse=True)
def flags():
    """The flags of this test alone."""
    before, parsed = dict(FLAGS._flags), FLAGS.is_parsed()
    FLAGS._flags.clear()
    FLAGS.unparse_flags()
    yield tf.app.flags
    FLAGS._flags.clear()
    FLAGS._flags.update(before)
    FLAGS.__dict__["_parsed"] = parsed


def define(flags) -> None:
    flags.DEFINE_string("train_dir", "/logs", "Where to write.")
    flags.DEFINE_integer("max_steps", 100, "Steps.")
    flags.DEFINE_float("rate", 0.1, "Rate.")
    flags.DEFINE_boolean("train", True, "Train?")
    flags.DEFINE_bool("nodes", False, "Begins with no.")
    flags.DEFINE_list("layers", "a,b", "Layers.")
    flags.DEFINE_enum("mode", "fast", ["fast", "slow"], "Mode.")
    flags.DEFINE_multi_integer("size", [1, 2], "Sizes.")


def test_a_command_line_is_read_in_all_its_forms(flags) -> None:
    define(flags)
    line = "prog --train_dir=x=y --max-steps 0x10 -rate 1e-3 --notrain --nodes --size 3 --size=4 file --other 5 -- --rate=7"
    assert FLAGS(line.split()) == ["prog", "file", "--other", "5", "--rate=7"]
    assert FLAGS.flag_values_dict() == {
        "train_dir": "x=y",
        "max_steps": 16,
        "rate": 1e-3,
        "train": False,
        "nodes": True,
        "layers": ["a", "b"],
        "mode": "fast",
        "size": [3, 4],
    }
    FLAGS._parse_flags(["--max_steps=9"])
    assert FLAGS.max_steps == 9
    assert getattr(FLAGS, "__flags") == FLAGS.flag_values_dict()  # noqa: B009 - as programs of 2016 wrote it


def test_the_first_read_reads_the_command_line_and_a_test_runner_s_options_are_left_alone(flags, monkeypatch) -> None:
    define(flags)
    monkeypatch.setattr(sys, "argv", ["pytest", "-q", "-f", "kernel.json", "--max_steps=7"])
    assert FLAGS.max_steps == 7 and FLAGS.is_parsed()
    FLAGS.max_steps = 8
    assert FLAGS.max_steps == 8
    FLAGS.unparse_flags()
    FLAGS.mark_as_parsed()
    assert FLAGS.max_steps == 100 and "rate" in FLAGS and len(FLAGS) == 8


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--max_steps=many", r"flag --max_steps=many: invalid literal for int"),
        ("--train=perhaps", r"flag --train=perhaps: invalid value for a boolean: 'perhaps'"),
        ("--mode=quick", r"flag --mode=quick: 'quick' is none of fast, slow"),
        ("--rate", r"flag --rate needs a value"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(flags, word: str, message: str) -> None:
    define(flags)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        FLAGS(["prog", word])


def test_names_that_are_not_defined_or_twice_or_required(flags) -> None:
    define(flags)
    with pytest.raises(AttributeError, match="no flag named 'max_step' is defined; did you mean 'max_steps'"):
        FLAGS.max_step  # noqa: B018
    with pytest.raises(AttributeError, match="no flag named 'ratio'"):
        FLAGS.ratio = 3
    with pytest.raises(tf.errors.AlreadyExistsError, match="the flag 'rate' is defined already"):
        flags.DEFINE_float("rate", 1.0, "")
    delattr(FLAGS, "rate")
    flags.DEFINE_string("rate", None, "")
    flags.mark_flag_as_required("rate")
    with pytest.raises(tf.errors.InvalidArgumentError, match="not given: --rate"):
        FLAGS(["prog"])
    FLAGS(["prog", "--rate", "1"])
    assert FLAGS.rate == "1" and "--[no]train: Train?\n    (default: True)" in FLAGS.get_help()
