"""Names for annotations cost nothing and mean nothing while a program runs. What a checker makes of them: tests/typing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import graphdock as tf
from graphdock import typing


def test_they_are_any_at_run_time():
    assert tf.typing is typing and typing.TensorLike is typing.DTypeLike is typing.ShapeLike is Any

    def f(x: tf.typing.TensorLike | None = None) -> None: ...

    f()


def test_the_names_of_dtypes_are_all_there_are():
    assert sorted(get_args(typing.DTypeName)) == sorted(tf.dtypes.ALL)


def test_operators_are_those_that_tensors_and_variables_have():
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(typing))
    (declared,) = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "Operators"]
    names = {n.name for n in declared.body if isinstance(n, ast.FunctionDef)}
    for kind in (tf.Tensor, tf.Variable):
        assert names == {n for n in vars(kind) if n in names}
    plain = {
        n
        for n in vars(tf.Variable)
        if n.startswith("__") and n.strip("_") in {m.strip("_").removeprefix("r") for m in names}
    }
    assert plain <= names


def test_importing_them_imports_no_numpy():
    code = "import graphdock.typing, sys; assert 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
