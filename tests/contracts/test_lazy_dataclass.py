"""``lazy_dataclass`` makes what ``dataclasses.dataclass`` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading

import pytest
from graphdock.contracts.lazy_dataclass import lazy_dataclass


def family(decorate):
    """Classes of every kind that the host has, made by a decorator."""

    @decorate(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: list[int] = dataclasses.field(default_factory=list, compare=False)
        size: int = dataclasses.field(default=3, kw_only=True)
        total: int = dataclasses.field(default=0, init=False, repr=False)

        def __post_init__(self):
            object.__setattr__(self, "total", self.x + self.size)

    @decorate(frozen=True, slots=True)
    class Named(Point):
        """A point with a name."""

        name: str = "a"

    @decorate(slots=True, eq=False)
    class Same:
        """One that equals itself alone."""

        x: int = 1

    @decorate(slots=True)
    class Changing:
        """One that is compared and not hashed."""

        x: int = 1

    @decorate(frozen=True, order=True, slots=True)
    class Ordered:
        """One with an order."""

        x: int = 1
        y: str = ""

    @decorate
    class Plain:
        """One with a dict, and a text of its own."""

        x: int = 1

        def __repr__(self):
            return "plain"

    @decorate(frozen=True, kw_only=True)
    class Keywords:
        """One of keywords alone."""

        a: int
        b: int = 2

    return {each.__name__: each for each in (Point, Named, Same, Changing, Ordered, Plain, Keywords)}


ARGUMENTS = {
    "Point": [((1,), {}), ((1, [2]), {"size": 5}), ((2,), {})],
    "Named": [((1,), {}), ((1, [], "b"), {}), ((1, [7], "b"), {})],
    "Same": [((), {}), ((2,), {})],
    "Changing": [((), {}), ((2,), {}), ((2,), {})],
    "Ordered": [((2, "b"), {}), ((2, "a"), {}), ((1, "z"), {}), ((2, "a"), {})],
    "Plain": [((), {}), ((3,), {})],
    "Keywords": [((), {"a": 1}), ((), {"a": 1, "b": 2}), ((), {"a": 2})],
}


def facts(cls, arguments):
    """Facts that a user sees of a class and of instances of it; of each thing that fails the class of the error and its text."""

    def outcome(ask):
        try:
            return ask()
        except (TypeError, AttributeError) as error:  # a FrozenInstanceError is one
            return type(error), str(error).replace("family.<locals>.", "")

    made = [cls(*positional, **named) for positional, named in arguments]
    yield [(f.name, f.type, f.default, f.init, f.compare, f.kw_only) for f in dataclasses.fields(cls)]
    yield str(inspect.signature(cls)), cls.__match_args__, cls.__doc__, hasattr(made[0], "__dict__")
    yield outcome(lambda: cls(*[0] * 9)), outcome(lambda: cls(nothing=1))
    for one in made:
        yield repr(one).replace("family.<locals>.", "") if type(one).__name__ != "Same" else ""
        yield dataclasses.asdict(one), outcome(lambda one=one: hash(one)) if type(one).__name__ != "Same" else None
        yield outcome(lambda one=one: setattr(one, "x", 9)), outcome(lambda one=one: delattr(one, "x"))
        yield [outcome(lambda one=one, other=other: one == other) for other in (*made, 1)]
        yield [outcome(lambda one=one, other=other: (one < other, one >= other)) for other in (*made, 1)]
    for one, (positional, named) in zip(made, arguments, strict=True):
        fresh = cls(*positional, **named)
        yield dataclasses.asdict(copy.copy(fresh)), dataclasses.asdict(dataclasses.replace(fresh, **named))
        assert type(one) is cls


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_it_is_the_standard_librarys_class(name):
    lazy, known = family(lazy_dataclass)[name], family(dataclasses.dataclass)[name]
    for got, expected in zip(facts(lazy, ARGUMENTS[name]), facts(known, ARGUMENTS[name]), strict=True):
        assert got == expected


@lazy_dataclass(frozen=True, slots=True)
class Kept:
    """One that can be pickled."""

    x: int
    y: str = "b"


def test_frozen_ones_are_pickled_and_copied():
    assert pickle.loads(pickle.dumps(Kept(2))) == Kept(2) == copy.deepcopy(Kept(2))


def test_a_signature_asks_for_no_instance():
    cls = family(lazy_dataclass)["Named"]
    assert (
        str(inspect.signature(cls))
        == "(x: 'int', y: 'list[int]' = <factory>, name: 'str' = 'a', *, size: 'int' = 3) -> None"
    )


def test_a_class_without_the_decorator_inherits_what_is_not_compiled_yet():
    class Under(family(lazy_dataclass)["Changing"]):
        pass

    assert (Under(4).x, Under(4) == Under(4), repr(Under(4)).endswith("Under(x=4)")) == (4, True, True)


def test_threads_make_the_first_call_together():
    for _ in range(50):
        cls = family(lazy_dataclass)["Ordered"]
        barrier, made = threading.Barrier(4), []

        def make(cls=cls, barrier=barrier, made=made):
            barrier.wait()
            made.append((cls(1, "x"), hash(cls(1, "x"))))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [(cls(1, "x"), hash(cls(1, "x")))] * 4


def test_an_import_and_the_first_instances_compile_no_methods():
    program = (
        "import builtins\n"
        "from graphdock.contracts.lazy_dataclass import lazy_dataclass\n"
        "count, compiled = [0], builtins.exec\n"
        "builtins.exec = lambda *a: (count.__setitem__(0, count[0] + 1), compiled(*a))[1]\n"
        "@lazy_dataclass(frozen=True, slots=True)\n"
        "class A:\n"
        "    '''One.'''\n"
        "    x: int = 1\n"
        "before = count[0]\n"
        "A()\n"
        "few = count[0]\n"
        "[A(n) for n in range(100)]\n"
        "print(before, few, count[0] > few)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "True"]


def test_a_program_that_catches_an_interrupt_while_a_method_is_compiled_ends_well():
    text = """
import sys
from graphdock.contracts.lazy_dataclass import lazy_dataclass

@lazy_dataclass
class Point:
    x: int

def interrupt(frame, event, arg):
    if event == "call" and frame.f_back is not None and frame.f_back.f_code.co_name == "_compiled_init":
        if frame.f_code.co_name == "<module>":
            raise KeyboardInterrupt

caught = False
sys.settrace(interrupt)
try:
    for i in range(100):
        Point(i)
except KeyboardInterrupt:
    caught = True
sys.settrace(None)
assert caught
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
