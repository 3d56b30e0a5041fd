"""Programs that break a rule are refused, and the message names the part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, check_program
from graphdock.dtypes import as_dtype, bool_, float16, float32, float64, int32, int64, uint64
from graphdock.errors import InvalidArgumentError, PlanError
from graphdock_testing.random_regions import random_region

X = Term("input", float32, (), (0, 1), 0)
GOOD = RegionProgram(
    "r",
    (Axis("i", 3), Axis("j", 4)),
    (RegionInput("x", 0, float16, (3, 4), (0, 1), 2, True),),
    (X, Term("sum", float32, (0,), (0,), (1,)), Term("sub", float32, (0, 1), (0, 1))),
    (RegionOutput("y", 2, float16, (3, 4), (0, 1), (0,)),),
)


def with_term(number, term):
    return replace(GOOD, terms=(*GOOD.terms[:number], term, *GOOD.terms[number + 1 :]))


def with_output(**fields):
    return replace(GOOD, outputs=(replace(GOOD.outputs[0], **fields),))


def updating(*outputs):
    return replace(GOOD, outputs=outputs)


def with_input(**fields):
    return replace(GOOD, inputs=(replace(GOOD.inputs[0], **fields),))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (replace(GOOD, axes=(Axis("i", 3), Axis("i", 4))), "axes: two axes have one name"),
        (with_input(shape=(3, 5)), "input x: a dim of 5 stands on an axis of 4"),
        (with_input(dims=(1, 1), shape=(4, 4)), "input x: dims .1, 1. are not axes"),
        (with_output(dims=(1, 0), shape=(4, 3), inplace=()), "output y: dims .1, 0. are not axes in their order"),
        (
            updating(
                RegionOutput("x", 2, float16, (3, 4), (0, 1), into=0),
                replace(replace(GOOD.outputs[0], inplace=()), inplace=()),
            ),
            "behind one that goes into a v",
        ),
        (
            updating(RegionOutput("x", 2, float16, (3, 4), (0, 1), (0,), 0)),
            "not the only one that goes into its variable",
        ),
        (
            updating(*[RegionOutput(n, 2, float16, (3, 4), (0, 1), into=0) for n in "xy"]),
            "output y: it is not the only",
        ),
        (updating(GOOD.outputs[0], RegionOutput("x", 2, float16, (3, 4), (0, 1), into=0)), "memory is taken over"),
        (updating(RegionOutput("x", 1, float16, (3,), (0,), into=0)), "its variable is read as x along other axes"),
        (with_input(dims=(0,)), "input x: shape .3, 4. has not the 1 dims"),
        (with_input(alignment=3), "an alignment of 3 is no power of two"),
        (with_term(0, replace(X, value=1)), "term t0 .input.: there is no input 1"),
        (with_term(0, replace(X, dtype=float64)), "elements of float16 are not held in float64"),
        (with_term(0, replace(X, axes=(0,))), r"differs along axes \[0, 1\], not \[0\]"),
        (with_term(1, Term("sum", float32, (0,), (0,), (0, 1))), "differs along axes"),
        (with_term(1, Term("sum", float32, (2,), (0,), (1,))), "reads what does not stand before it"),
        (with_term(1, Term("any", float32, (0,), (0,), (1,))), "any gives no float32"),
        (with_term(1, Term("sum", float32, (0,), (0,), ())), "not axes of the space"),
        (with_term(1, Term("literal", as_dtype("float16"), (), (), 1.0)), "a region holds no float16"),
        (with_term(1, Term("literal", float32, (), (), "1")), "'1' is no number"),
        (with_term(1, Term("index", int32, (), (0,), 0)), "an int64 of one axis"),
        (with_term(2, Term("plus", float32, (0, 1), (0, 1))), "no such primitive"),
        (with_term(2, Term("sub", float32, (0,), (0, 1))), "takes 2 terms, not 1"),
        (with_term(2, Term("less", float32, (0, 1), (0, 1))), "of float32 it gives no float32"),
        (with_term(2, Term("and", bool_, (0, 1), (0, 1))), "does not take float32, float32"),
        (with_term(2, Term("select", float32, (0, 0, 1), (0, 1))), "first operand is a bool"),
        (with_term(2, Term("cast", int64, (0,), (0, 1))), "floating values are not cast to integers"),
        (with_term(2, Term("round", float32, (0,), (0, 1), "float32")), "rounds to float16 or bfloat16"),
        (with_output(term=7), "output y: there is no term t7"),
        (with_output(dtype=int32), "t2 is float32, which is not written as int32"),
        (with_output(dims=(0,), shape=(3,)), "differs along an axis that the output has not"),
        (replace(with_input(dying=False)), "can't take over the memory of x"),
    ],
)
def test_a_rule_that_is_broken_is_named(program, words):
    check_program(GOOD)
    with pytest.raises(PlanError, match=words):
        check_program(program)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_the_rules_and_print(seed):
    program, arrays = random_region(np.random.default_rng(seed), (3, 5), [(), (0,), (1,), (0, 1)][seed % 4])
    check_program(program)
    assert len(arrays) == len(program.inputs)
    assert str(program).count("\n") == 1 + len(program.inputs) + len(program.terms) + len(program.outputs)


def drawn(dtype=float32, index=(0,), key=()):
    """A program that draws; ``key``: the axes of the first word."""
    word = Term("literal", uint64, value=3)
    first = Term("input", uint64, (), (0,), 0) if key else word
    place = Term("cast", uint64, (0,), (0,)) if index else word
    draw = Term("draw", dtype, (1, 2, 2, 2, 2, 3), index or key)
    source = RegionInput("x", 0, uint64, (3,), (0,))
    out = RegionOutput("y", 4, dtype, (3,), (0,))
    return RegionProgram(
        "r", (Axis("i", 3),), (source,), (Term("index", int64, (), (0,), 0), first, word, place, draw), (out,)
    )


def test_a_draw_is_of_one_stream():
    check_program(drawn())
    check_program(drawn(float64, ()))
    for wrong in (drawn(uint64), drawn(key=(0,))):
        with pytest.raises(PlanError, match="floating numbers of one stream"):
            check_program(wrong)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_that_draw_keep_the_rules(seed):
    program, arrays = random_region(np.random.default_rng(seed), (3, 5), [(), (0,)][seed % 2], ("float32",), draws=2)
    check_program(program)
    assert sum(t.op == "draw" for t in program.terms) == 2 and len(arrays) == len(program.inputs)


def test_a_word_is_of_a_stream_that_the_region_is_given_and_a_place_is_of_its_axes():
    out = RegionOutput("y", 0, uint64, (), ())

    def check(term, streams=("s",), out=out):
        check_program(RegionProgram("r", (Axis("i", 3),), (), (term,), (out,), streams))

    check(Term("stream", uint64, value=(0, "key")))
    check(Term("place", int64, (), (0,)), out=RegionOutput("y", 0, int64, (3,), (0,)))
    for value, streams in (((1, "key"), ("s",)), ((0, "key"), ()), ((0, "seed"), ("s",))):
        with pytest.raises(PlanError, match="no word of a stream"):
            check(Term("stream", uint64, value=value), streams)
    with pytest.raises(PlanError, match="int64 of some of the axes"):
        check(Term("place", uint64, (), (0,)))


IDS = RegionInput("ids", 0, int32, (3,), (0,))
ROWS = RegionProgram(
    "g",
    (Axis("i", 3), Axis("j", 4)),
    (IDS, RegionInput("table", 1, float32, (9, 4), (None, 1), indices=0)),
    (Term("input", float32, (), (0, 1), 1),),
    (RegionOutput("y", 0, float32, (3, 4), (0, 1)),),
)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((replace(IDS, dtype=float32), ROWS.inputs[1]), "table: input 0 gives no places of rows"),
        ((IDS, replace(ROWS.inputs[1], indices=2)), "table: input 2 gives no places of rows"),
        ((IDS, replace(ROWS.inputs[1], indices=1)), "table: input 1 gives no places of rows"),
        ((replace(IDS, strides=(2,), whole=(6,)), ROWS.inputs[1]), "table: input 0 gives no places of rows"),
        ((IDS, replace(ROWS.inputs[1], dims=(0, 1), shape=(3, 4))), "along a dim without an axis"),
        ((IDS, replace(ROWS.inputs[1], dying=True)), "of what is whole and only read"),
        ((replace(IDS, dying=True), ROWS.inputs[1]), "of what is whole and only read"),
        ((IDS, replace(ROWS.inputs[1], shape=(9, 5))), "table: a dim of 5 stands on an axis of 4"),
        ((replace(IDS, dims=(None,), shape=(1,)), ROWS.inputs[1]), "it differs along axes .1., not .0, 1."),
    ],
)
def test_rows_that_are_gathered_keep_their_rules(inputs, words):
    check_program(ROWS)
    with pytest.raises(PlanError, match=words):
        check_program(replace(ROWS, inputs=inputs))


def test_rows_are_not_gathered_from_a_variable_that_is_written():
    out = RegionOutput("v", 0, float32, (3, 4), (0, 1), into=1)
    with pytest.raises(PlanError, match="gathered from a variable that is written"):
        check_program(replace(ROWS, outputs=(out,)))


def test_indices_are_held_to_the_tensor_and_programs_that_gather_differ():
    table = np.zeros((9, 4), np.float32)
    ROWS.check_indices([np.int32([0, 8, 3]), table])
    ROWS.check_indices([np.zeros(0, np.int32), table])
    for wrong in (9, -1, np.iinfo(np.int32).min):
        with pytest.raises(InvalidArgumentError, match=rf"indices\[1\] is {wrong}, which is out of bounds.*size 9"):
            ROWS.check_indices([np.int32([0, wrong, 3]), table])
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\]\[0\] is 5"):
        ROWS.check_indices([np.int64([[0, 1], [5, 2]]), table[:5]])
    other = replace(ROWS, inputs=(IDS, replace(ROWS.inputs[1], indices=None, shape=(1, 4))))
    assert other.structure() != ROWS.structure()
    assert "table: float32[at ids, j]" in str(ROWS) and "table: float32[1, j]" in str(other)
