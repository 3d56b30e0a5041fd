"""Updates of some rows of variables, as LLVM's text: one function for all sizes of an op, its dtypes and the vectors' width.

All indices are looked at before anything is written. Rules with slots (momentum, Adagrad) want the gradients of a row that is named
more than once added up first, in their order: a hash table finds the row's sum, and each row is updated once, in the order in which
rows are first named. Others update rows one by one, as they are named.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphdock_llvm.emitter import SCALARS, Emitter
from graphdock_llvm.vectors import Place, load, store

__all__ = ["RULES", "Rule", "text"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Update of one row, as an op has it.

    Attributes:
      held: slots of the buffers of the variables that it writes, the variable first. ``given``: of the rows that it takes, and
        ``indices`` that of their numbers. ``scalars``: those of its numbers.
      update: emits what the variables become: an emitter, LLVM's vector type, what they are, the row, and the numbers.
      sums: whether rows that are named more than once are added up first.
    """

    held: tuple[int, ...]
    given: int
    indices: int
    scalars: tuple[int, ...]
    update: Callable[[Emitter, str, list[str], str, list[str]], list[str]]
    sums: bool = False


def _set(e: Emitter, type_: str, held: list[str], given: str, _: list[str]) -> list[str]:
    return [given]


def _added(e: Emitter, type_: str, held: list[str], given: str, _: list[str]) -> list[str]:
    return [e.binary("fadd", type_, held[0], given)]


def _subtracted(e: Emitter, type_: str, held: list[str], given: str, _: list[str]) -> list[str]:
    return [e.binary("fsub", type_, held[0], given)]


def _descended(e: Emitter, type_: str, held: list[str], given: str, numbers: list[str]) -> list[str]:
    return [e.binary("fsub", type_, held[0], e.binary("fmul", type_, given, numbers[0]))]


def _momentum(nesterov: bool) -> Callable[[Emitter, str, list[str], str, list[str]], list[str]]:
    def update(e: Emitter, type_: str, held: list[str], given: str, numbers: list[str]) -> list[str]:
        rate, momentum = numbers
        gathered = e.binary("fadd", type_, e.binary("fmul", type_, held[1], momentum), given)
        step = gathered
        if nesterov:
            step = e.binary("fadd", type_, e.binary("fmul", type_, gathered, momentum), given)
        return [e.binary("fsub", type_, held[0], e.binary("fmul", type_, step, rate)), gathered]

    return update


def _adagrad(e: Emitter, type_: str, held: list[str], given: str, numbers: list[str]) -> list[str]:
    squares = e.binary("fadd", type_, held[1], e.binary("fmul", type_, given, given))
    root = e.math("sqrt", type_.split()[-1].rstrip(">"), squares)
    step = e.binary("fmul", type_, e.binary("fdiv", type_, given, root), numbers[0])
    return [e.binary("fsub", type_, held[0], step), squares]


#: Op, and of an op with the attribute whether it looks ahead -> what it does.
RULES: Mapping[tuple[str, bool], Rule] = {
    ("ResourceScatterUpdate", False): Rule((0,), 2, 1, (), _set),
    ("ResourceScatterAdd", False): Rule((0,), 2, 1, (), _added),
    ("ResourceScatterSub", False): Rule((0,), 2, 1, (), _subtracted),
    ("ResourceSparseApplyGradientDescent", False): Rule((0,), 2, 3, (1,), _descended),
    ("ResourceSparseApplyMomentum", False): Rule((0, 1), 3, 4, (2, 5), _momentum(False), sums=True),
    ("ResourceSparseApplyMomentum", True): Rule((0, 1), 3, 4, (2, 5), _momentum(True), sums=True),
    ("ResourceSparseApplyAdagrad", False): Rule((0, 1), 3, 4, (2,), _adagrad, sums=True),
}

#: The numbers are rows of the variable, how many are named, elements of one, and of rules that add up first the memory of the
#: table, by how much a hash is shifted to be a place of it, and what such places are masked with. That memory holds the table, the
#: rows' numbers, and their sums.
_HEAD = """
define void @region(ptr %table, ptr %n) {
entry:
  %high = load i64, ptr %n
  %count.at = getelementptr i64, ptr %n, i64 1
  %count = load i64, ptr %count.at
  %wide.at = getelementptr i64, ptr %n, i64 2
  %wide = load i64, ptr %wide.at
  %indices.at = getelementptr ptr, ptr %table, i64 INDICES
  %indices = load ptr, ptr %indices.at
  %given.at = getelementptr ptr, ptr %table, i64 GIVEN
  %given = load ptr, ptr %given.at
HELD
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %check, label %end
check:
  %c = phi i64 [ 0, %entry ], [ %c.next, %check ]
  %bad = phi i1 [ false, %entry ], [ %worse, %check ]
  %c.at = getelementptr INDEX, ptr %indices, i64 %c
  %c.index = load INDEX, ptr %c.at
  %c.wide = WIDEN %c.index
  %out = icmp uge i64 %c.wide, %high
  %worse = or i1 %bad, %out
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %count
  br i1 %c.more, label %check, label %checked
checked:
  br i1 %worse, label %fail, label %begin
fail:
  %status.at = getelementptr ptr, ptr %table, i64 STATUS
  %status = load ptr, ptr %status.at
  store i64 1, ptr %status
  ret void
"""
_ONE_BY_ONE = """begin:
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %i.next, %each ]
  %i.at = getelementptr INDEX, ptr %indices, i64 %i
  %i.index = load INDEX, ptr %i.at
  %i.wide = WIDEN %i.index
  %last = sub i64 %high, 1
  %row = call i64 @llvm.umin.i64(i64 %i.wide, i64 %last)
  %place = mul i64 %row, %wide
  %from = mul i64 %i, %wide
  %its = getelementptr TYPE, ptr %given, i64 %from
  call void @row(HELD_ROWSptr %its, i64 %wide, ptr %table)
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %count
  br i1 %i.more, label %each, label %end
end:
  ret void
}
"""
_SUMMED = """begin:
  %memory.at = getelementptr i64, ptr %n, i64 3
  %memory = load ptr, ptr %memory.at
  %shift.at = getelementptr i64, ptr %n, i64 4
  %shift = load i64, ptr %shift.at
  %mask.at = getelementptr i64, ptr %n, i64 5
  %mask = load i64, ptr %mask.at
  %places = add i64 %mask, 1
  %rows = getelementptr i64, ptr %memory, i64 %places
  %sums = getelementptr i64, ptr %rows, i64 %count
  %bytes = mul i64 %places, 8
  call void @llvm.memset.p0.i64(ptr %memory, i8 -1, i64 %bytes, i1 false)
  %row.bytes = mul i64 %wide, SIZE
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %i.next, %found ]
  %known = phi i64 [ 0, %begin ], [ %known.next, %found ]
  %i.at = getelementptr INDEX, ptr %indices, i64 %i
  %i.index = load INDEX, ptr %i.at
  %i.wide = WIDEN %i.index
  %last = sub i64 %high, 1
  %row = call i64 @llvm.umin.i64(i64 %i.wide, i64 %last)
  %from = mul i64 %i, %wide
  %its = getelementptr TYPE, ptr %given, i64 %from
  %mixed = mul i64 %row, -7046029254386353131
  %first = lshr i64 %mixed, %shift
  br label %probe
probe:
  %at = phi i64 [ %first, %each ], [ %at.next, %other ]
  %slot = getelementptr i64, ptr %memory, i64 %at
  %entry.there = load i64, ptr %slot
  %empty = icmp slt i64 %entry.there, 0
  br i1 %empty, label %new, label %compare
compare:
  %there.at = getelementptr i64, ptr %rows, i64 %entry.there
  %there = load i64, ptr %there.at
  %same = icmp eq i64 %there, %row
  br i1 %same, label %again, label %other
other:
  %at.plus = add i64 %at, 1
  %at.next = and i64 %at.plus, %mask
  br label %probe
new:
  store i64 %known, ptr %slot
  %new.at = getelementptr i64, ptr %rows, i64 %known
  store i64 %row, ptr %new.at
  %new.place = mul i64 %known, %wide
  %new.sum = getelementptr TYPE, ptr %sums, i64 %new.place
  call void @llvm.memcpy.p0.p0.i64(ptr %new.sum, ptr %its, i64 %row.bytes, i1 false)
  %known.more = add i64 %known, 1
  br label %found
again:
  %again.place = mul i64 %entry.there, %wide
  %again.sum = getelementptr TYPE, ptr %sums, i64 %again.place
  call void @sum(ptr %again.sum, ptr %its, i64 %wide, ptr %table)
  br label %found
found:
  %known.next = phi i64 [ %known.more, %new ], [ %known, %again ]
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %count
  br i1 %i.more, label %each, label %update
update:
  %k = phi i64 [ 0, %found ], [ %k.next, %update ]
  %k.at = getelementptr i64, ptr %rows, i64 %k
  %k.row = load i64, ptr %k.at
  %place = mul i64 %k.row, %wide
  %k.from = mul i64 %k, %wide
  %k.sum = getelementptr TYPE, ptr %sums, i64 %k.from
  call void @row(HELD_ROWSptr %k.sum, i64 %wide, ptr %table)
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %known.next
  br i1 %k.more, label %update, label %end
end:
  ret void
}
"""


@functools.cache
def text(op: str, ahead: bool, dtype: str, index: str, number: str, lanes: int) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``; a status follows the op's buffers.

    Args:
      op, ahead: of :data:`RULES`. ``dtype``: of the variables; ``index``, ``number``: LLVM's types of indices and of numbers.
    """
    rule, scalar = RULES[op, ahead], SCALARS[dtype]
    functions = [_row("row", rule, dtype, number, lanes)]
    if rule.sums:
        functions.append(_row("sum", Rule((0,), 0, 0, (), _added), dtype, number, lanes))
    held = "\n".join(
        f"  %held.at.{i} = getelementptr ptr, ptr %table, i64 {slot}\n  %held.{i} = load ptr, ptr %held.at.{i}"
        for i, slot in enumerate(rule.held)
    )
    body = _HEAD + (_SUMMED if rule.sums else _ONE_BY_ONE)
    rows = "".join(f"ptr %row.{i}, " for i in range(len(rule.held)))
    ways = "".join(f"  %row.{i} = getelementptr {scalar}, ptr %held.{i}, i64 %place\n" for i in range(len(rule.held)))
    body = body.replace("  call void @row(HELD_ROWS", f"{ways}  call void @row({rows}")
    for which in ("%c.index", "%i.index"):
        body = body.replace(
            f"WIDEN {which}", f"add i64 {which}, 0" if index == "i64" else f"sext {index} {which} to i64"
        )
    words = {
        "INDICES": str(rule.indices),
        "GIVEN": str(rule.given),
        "HELD": held,
        "STATUS": str(1 + max(*rule.held, rule.given, rule.indices, *rule.scalars)),
        "INDEX": index,
        "TYPE": scalar,
        "SIZE": str({"float": 4, "double": 8}[scalar]),
    }
    for word, value in words.items():
        body = body.replace(word, value)
    declared: dict[str, str] = {}
    for e, _ in functions:
        declared |= e.declarations
    declared["llvm.umin.i64"] = "declare i64 @llvm.umin.i64(i64, i64)"
    declared["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    declared["llvm.memcpy.p0.p0.i64"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return "\n".join([*sorted(declared.values()), *(body for _, body in functions), body])


def _row(name: str, rule: Rule, dtype: str, number: str, lanes: int) -> tuple[Emitter, str]:
    """A function of one row: whole vectors, then the lanes that are left."""
    e, scalar = Emitter(lanes), SCALARS[dtype]
    type_ = e.vector(scalar)
    e.label("entry")
    numbers = []
    for slot in rule.scalars:
        where = e.value(f"load ptr, ptr {e.value(f'getelementptr ptr, ptr %table, i64 {slot}')}")
        value = e.value(f"load {number}, ptr {where}")
        if number != scalar:
            value = e.convert("fpext" if scalar == "double" else "fptrunc", number, value, scalar)
        numbers.append(e.broadcast(scalar, value))
    held = [f"%held.{i}" for i in range(len(rule.held))]

    def visit(place: Place) -> None:
        before = [load(e, dtype, h, place) for h in held]
        after = rule.update(e, type_, before, load(e, dtype, "%given", place), numbers)
        for value, h in zip(after, held, strict=True):
            store(e, dtype, value, h, place)

    e.line(f"%whole = and i64 %wide, {-lanes}")
    e.line("%any = icmp ugt i64 %whole, 0")
    e.line("br i1 %any, label %vector, label %rest")
    e.label("vector")
    e.line("%k = phi i64 [ 0, %entry ], [ %k.next, %vector ]")
    visit(Place("%k", None))
    e.line(f"%k.next = add i64 %k, {lanes}")
    e.line("%more = icmp ult i64 %k.next, %whole")
    e.line("br i1 %more, label %vector, label %rest")
    e.label("rest")
    e.line("%left = sub i64 %wide, %whole")
    e.line("%some = icmp ugt i64 %left, 0")
    e.line("br i1 %some, label %tail, label %end")
    e.label("tail")
    mask = e.value(f"icmp ult {e.vector('i64')} {e.lanes('i64')}, {e.broadcast('i64', '%left')}")
    visit(Place("%whole", mask))
    e.line("br label %end")
    e.label("end")
    arguments = "".join(f"ptr {h}, " for h in held)
    head = f"define internal void @{name}({arguments}ptr %given, i64 %wide, ptr %table) {{"
    return e, "\n".join([head, *e.lines, "  ret void", "}"])
