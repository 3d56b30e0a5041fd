"""``make test`` runs one in n of the cases of a test that is marked ``sampled(n)``, always the same, and never none."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest


@dataclass(frozen=True)
class Item:
    nodeid: str
    n: int | None
    marks: list[str] = field(default_factory=list, compare=False)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return None if self.n is None else getattr(pytest.mark, name)(self.n).mark

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def test_one_in_n_of_each_function_stays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    (sample,) = (p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "not_in_the_sample"))
    monkeypatch.setattr(sample, "_ONE_IN_DEBUG", 1)
    many = [Item(f"a.py::test_many[{i}]", 3) for i in range(31)]
    few = [Item(f"a.py::test_few[{i}]", 4) for i in range(2)]
    plain = [Item(f"a.py::test_plain[{i}]", None) for i in range(5)]
    sample.pytest_collection_modifyitems([*many, *few, *plain])
    left = {item for item in [*many, *few, *plain] if item.marks == ["exhaustive"]}
    assert len(left & set(many)) == 31 - 11 and len(left & set(few)) == 1 and not left & set(plain)
    assert left == set(sample.not_in_the_sample([*plain, *few, *many[::-1]]))
    monkeypatch.setattr(sample, "_ONE_IN_DEBUG", 3)  # as in debug mode
    assert len(set(sample.not_in_the_sample(plain))) == 5 - 2
