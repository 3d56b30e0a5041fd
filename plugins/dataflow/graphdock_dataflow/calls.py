"""Rows that call a function with some slots and put what it returns into others; made for few arguments, which most have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

__all__ = ["Fire", "Take", "caller", "taker"]

#: What a row does with its activation's slots; it returns True where it has to wait.
Fire: TypeAlias = "Callable[[list[Any]], Any]"
#: What puts the result of a call into the slots.
Take: TypeAlias = "Callable[[list[Any], Any], None]"


def taker(makes: Sequence[int]) -> Take:
    """Puts the result of a call into slots: of one the result itself, of several its items, of none nothing."""
    if len(makes) == 1:
        (only,) = makes

        def one(values: list[Any], result: Any) -> None:
            values[only] = result

        return one

    def each(values: list[Any], result: Any) -> None:
        for slot, item in zip(makes, result, strict=True):
            values[slot] = item

    return each if makes else lambda values, result: None


def caller(function: Callable[..., Any], args: Sequence[int], makes: Sequence[int]) -> Fire:
    """Calls a function with the contents of slots."""
    if len(makes) == 1 and 1 <= len(args) <= 3:
        return _SHORT[len(args) - 1](function, *args, makes[0])
    take = taker(makes)

    def call(values: list[Any]) -> None:
        take(values, function(*[values[slot] for slot in args]))

    return call


def _unary(function: Callable[..., Any], a: int, out: int) -> Fire:
    def call(values: list[Any]) -> None:
        values[out] = function(values[a])

    return call


def _binary(function: Callable[..., Any], a: int, b: int, out: int) -> Fire:
    def call(values: list[Any]) -> None:
        values[out] = function(values[a], values[b])

    return call


def _ternary(function: Callable[..., Any], a: int, b: int, c: int, out: int) -> Fire:
    def call(values: list[Any]) -> None:
        values[out] = function(values[a], values[b], values[c])

    return call


_SHORT: tuple[Callable[..., Fire], ...] = (_unary, _binary, _ternary)
