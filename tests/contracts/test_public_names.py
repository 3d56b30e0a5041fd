"""Tables of public names: rows as they are, and a module's namespaces spelled out."""

from __future__ import annotations

from graphdock.contracts.public_names import names_of, spelled_out


def test_a_row_stays_and_namespaces_are_spelled_out() -> None:
    table = {"unit": "p.more:unit", "p.other": {"tf tf.math": "half twice=doubled", "tf.a.b": "half"}}
    assert spelled_out(table) == {
        "unit": "p.more:unit",
        **{name: "p.other:half" for name in ("half", "math.half", "a.b.half")},
        **{name: "p.other:doubled" for name in ("twice", "math.twice")},
    }


def test_no_names_are_no_rows() -> None:
    assert spelled_out({}) == spelled_out({"p.m": {}}) == {}
    assert list(names_of("p.m", "tf", "")) == []
