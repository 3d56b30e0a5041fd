"""``tf.contrib.training.HParams``: types, texts, JSON."""

from __future__ import annotations

import json

import graphdock as tf
import pytest

HParams = tf.contrib.training.HParams


def made() -> HParams:
    return HParams(rate=0.1, steps=3, name="cnn", wide=False, sizes=[8, 4], nothing=None)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {}),
        ("rate=0.5", {"rate": 0.5}),
        ("rate=2,steps=7", {"rate": 2.0, "steps": 7}),
        (" rate = 1e-3 , name=a b", {"rate": 1e-3, "name": "a b"}),
        ("name=,steps=4", {"name": "", "steps": 4}),
        ("wide=true", {"wide": True}),
        ("wide=1", {"wide": True}),
        ("wide=False", {"wide": False}),
        ("sizes=[1,2,3],steps=-1", {"sizes": [1, 2, 3], "steps": -1}),
        ("sizes=[1 2]", {"sizes": [1, 2]}),
        ("sizes[1]=9,rate=1", {"sizes": [8, 9], "rate": 1.0}),
    ],
)
def test_a_text_changes_values(text, changes) -> None:
    params = made()
    before = params.values()
    assert params.parse(text) is params
    assert params.values() == {**before, **changes}
    assert {name: type(value) for name, value in params.values().items()} == {n: type(v) for n, v in before.items()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rate", "Malformed hyperparameter value"),
        ("sizes=[1,2", "Malformed hyperparameter value"),
        ("sizes=[1]x", "Malformed hyperparameter value"),
        ("other=1", "Unknown hyperparameter type for other"),
        ("steps=1.5", "Could not parse hparam 'steps'"),
        ("wide=maybe", "Could not parse hparam 'wide'"),
        ("steps=1,steps=2", "Multiple assignments to variable 'steps'"),
        ("sizes=3", "Must pass a list for multi-valued parameter: sizes."),
        ("steps=[3]", "Must not pass a list for single-valued parameter: steps"),
        ("sizes[2]=1", r"sizes\[2\] is no place"),
    ],
)
def test_a_wrong_text_is_told_and_changes_nothing(text, words) -> None:
    params = made()
    with pytest.raises(ValueError, match=words):
        params.parse(text)
    assert params.values() == made().values()


@pytest.mark.parametrize(
    ("name", "value"), [("rate", "0.1"), ("rate", True), ("steps", 0.5), ("name", 1), ("wide", 1), ("sizes", [1.5])]
)
def test_a_value_of_another_type_is_refused(name, value) -> None:
    with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
        made().set_hparam(name, value)


def test_values_are_added_removed_and_overridden() -> None:
    params = HParams()
    params.add_hparam("rate", 0.1)
    with pytest.raises(ValueError, match="is reserved: rate"):
        params.add_hparam("rate", 1.0)
    with pytest.raises(ValueError, match="is reserved: values"):
        params.add_hparam("values", 1.0)
    with pytest.raises(ValueError, match="cannot be empty: sizes"):
        params.add_hparam("sizes", [])
    params.override_from_dict({"rate": 1})
    assert params.rate == 1.0 and isinstance(params.rate, float)
    with pytest.raises(KeyError):
        params.set_hparam("other", 1)
    assert "rate" in params and params.get("rate") == 1.0 and params.get("other", 5) == 5
    with pytest.raises(ValueError, match="is incompatible with default=x"):
        params.get("rate", "x")
    params.del_hparam("rate")
    assert "rate" not in params and params.values() == {} and not hasattr(params, "rate")


def test_json_and_texts_of_values() -> None:
    params = made()
    assert json.loads(params.to_json()) == params.values()
    params.add_hparam("function", len)
    assert "function" not in json.loads(params.to_json(indent=2, sort_keys=True))
    assert params.parse_json('{"steps": 9}').steps == 9
    assert str(HParams(b=1, a=2)) == "[('a', 2), ('b', 1)]"
