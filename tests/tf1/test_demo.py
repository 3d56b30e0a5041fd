"""``graphdock demo``: it goes on where it was, removes only what is its own, and says where everything is."""

from __future__ import annotations

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli

pytest.importorskip("sklearn")

RUNS = ("softmax-regression", "two-layers")


def demo(*arguments):
    """The output; with so few steps a network may be below the bar, which is exit status 1."""
    done = CliRunner().invoke(cli, ["demo", *map(str, arguments)])
    assert done.exit_code in (0, 1) and (done.exception is None or isinstance(done.exception, SystemExit)), done.output
    return done.output


def weights(folder):
    last = tf.train.latest_checkpoint(str(folder))
    return last, {name: tf.train.load_variable(last, name).tolist() for name, _ in tf.train.list_variables(last)}


def test_two_runs_are_one_and_what_they_wrote_can_be_forgotten(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    demo("--steps", 240, "--logdir", whole)
    first = demo("--steps", 100, "--logdir", parts)
    assert str(parts) in first and "went on" not in first and f"tensorboard --logdir {parts}" in first
    (parts / "two-layers" / "notes.txt").write_text("mine")
    second = demo("--steps", 140, "--logdir", parts)
    assert second.count("went on from step 100") == 2
    for run in RUNS:
        (path, values), (other, others) = weights(whole / run), weights(parts / run)
        assert path.endswith("model-240") and other.endswith("model-240") and values == others, "bit for bit"
        steps = []
        for file in sorted((parts / run).glob("events.*"), key=lambda p: p.stat().st_mtime_ns):
            for event in tf.train.summary_iterator(str(file)):
                tags = [v.tag for v in event.summary.value]
                steps += [event.step] if "loss" in tags else []
                assert (
                    not tags
                    or {"loss", "accuracy", "weights"} <= set(tags)
                    and any("weights_as_pictures/image" in t for t in tags)
                )
        assert steps == [100, 200, 240]
    fresh = demo("--steps", 20, "--logdir", parts, "--fresh")
    assert "went on" not in fresh and (parts / "two-layers" / "notes.txt").read_text() == "mine"
    left = {p.name.split(".")[0] for p in (parts / "two-layers").iterdir()}
    assert left == {"checkpoint", "events", "model-20", "notes"}


def test_a_damaged_checkpoint_is_told_with_what_to_do(tmp_path):
    demo("--steps", 1, "--logdir", tmp_path)
    for index in tmp_path.glob("*/model-1.index"):
        index.write_text("{")
    done = CliRunner().invoke(cli, ["demo", "--steps", "1", "--logdir", str(tmp_path)])
    assert "graphdock demo --fresh begins anew" in done.output + str(done.exception)
