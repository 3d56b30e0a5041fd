"""The catalogue of TensorFlow 1's names tells the truth: what it says is here is here, and nothing else is."""

from __future__ import annotations

import functools

import graphdock as tf
import pytest
from graphdock_tensorflow import catalogue as module
from graphdock_tensorflow.catalogue import catalogue, counts, entry, hint, renamed


def _here(name: str) -> bool:
    try:
        functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return False
    return True


def test_a_name_is_here_exactly_where_the_catalogue_says_so() -> None:
    # graphdock_profiler is a module of its own, no namespace of tf
    known = [e for e in catalogue().values() if not e.name.startswith("profiler.")]
    wrong = [e.name for e in known if _here(e.name) != (e.status == "here")]
    assert wrong == []


def test_it_holds_the_core_api() -> None:
    """Counted over the modules of TensorFlow 1.15.0's wheel, without keras, lite, tpu, raw_ops and contrib."""
    assert len(catalogue()) == 1968
    assert list(catalogue()) == sorted(catalogue())
    assert sum(counts().values()) == 1968 and counts()["here"] >= 440


def test_every_group_has_a_reason_and_is_used() -> None:
    groups = {k: v for k, v in module._groups().items() if k not in ("renamed", "instead", "of_tensorflow_2")}
    for name, about in groups.items():
        assert set(about) <= {"status", "why", "instead"} and about["status"] in ("planned", "refused"), name
        assert about["why"] and not about["why"].endswith("."), name
    used = {e.group for e in catalogue().values()}
    assert used - {""} <= set(groups)
    assert set(groups) - used <= {"keras", "estimator", "contrib", "ops"}  # no part of the core API, or all written


def test_names_with_advice_of_their_own_are_missing_ones() -> None:
    for name, instead in module._groups()["instead"].items():
        assert entry(name).status in ("planned", "refused") and entry(name).instead == instead
    for name, instead in module._groups()["of_tensorflow_2"].items():
        assert name not in catalogue() and not _here(name), name
        assert entry(name).instead == instead and instead in hint(name)


def test_early_names_lead_to_names_of_today() -> None:
    for old, new in renamed().items():
        assert not _here(old), old
        assert new in catalogue() or _here(new), new
        assert hint(old) == f"use tf.{new}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mul", "has no attribute 'mul'; use tf.multiply"),
        ("keras", "it is not here: Keras is a project of its own"),
        ("distribute.Strategy", "it is not yet here: distribution strategies"),
        (
            "summary.initialize",
            "it is not yet here: writers within the graph are TensorFlow 2's",
        ),
        ("matmull", "did you mean 'matmul'?"),
    ],
)
def test_a_missing_name_is_explained(name: str, words: str) -> None:
    with pytest.raises(AttributeError) as caught:
        functools.reduce(getattr, name.split("."), tf)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["nn.max_pul_of_nothing", "l3_lossy", "dxt"])
def test_no_suggestion_beats_a_wrong_one(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        functools.reduce(getattr, name.split("."), tf)
    assert "did you mean" not in str(caught.value)


def test_a_name_that_tensorflow_does_not_have_is_unknown() -> None:
    assert entry("no_such_thing") is None and hint("no_such_thing") is None
    assert hint("matmul") is None and entry("contrib").status == "here"
