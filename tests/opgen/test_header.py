"""``graphdock opgen header``: the C header of an op compiles as C and C++ and reads what a call holds, by name."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.contracts import ArgDef, AttrDef, OpDef, TypeVarDef
from graphdock.plugin.manifest import MARKER
from graphdock_native import NativeLibrary, compile_library, include_directory
from graphdock_opgen.header import header_name, render_header

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
ODD = OpDef(
    "odd.HTTPServer2D",
    summary="Ends */ a comment, /* begins one, \\ and goes on\nelsewhere. /",
    inputs=(ArgDef("double", "T", doc="*/ int x; /*"), ArgDef("call", "T", arity="optional"), ArgDef("class", "T")),
    outputs=(ArgDef("double", "T"), ArgDef("a", "T", arity="many", count="N")),
    attrs=(
        AttrDef("int", "int"),
        AttrDef("maybe", "int", None),
        AttrDef("template", "list(string)"),
        AttrDef("N", "int", inferred=True),
        AttrDef("body", "func"),
    ),
    types=(TypeVarDef("T"),),
)


def opgen(*args):
    return CliRunner().invoke(cli, ["opgen", *map(str, args)])


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
@pytest.mark.parametrize("op", ["MatMul", "Split", "Cast", "StridedSlice", "NoOp", "odd"])
@pytest.mark.sampled(2)
def test_every_header_compiles_without_a_warning(tmp_path, op, suffix):
    opdef = ODD if op == "odd" else tf.default_host().ops.get(op)
    name = header_name(opdef.name)
    (tmp_path / name).write_text(render_header(opdef))
    source = tmp_path / f"use{suffix}"
    prefix = name.removesuffix(".h")
    source.write_text(
        f'#include "{name}"\n#include "{name}"\nGRAPHDOCK_LIBRARY\n'
        f"GRAPHDOCK_KERNEL(k) {{ return {prefix}_args_of(call).call == call ? GD_OK : GD_INTERNAL; }}\n"
    )
    assert compile_library([source], tmp_path / "use", STRICT).is_file()


def test_names_that_c_keeps_for_itself_get_an_underscore():
    text = render_header(ODD)
    for member in (
        "double_; ",
        "call_; ",
        "class_; ",
        "double__; ",
        "gd_list a; ",
        "int64_t int_; ",
        "gd_attr *maybe; ",
    ):
        assert member in text
    assert header_name(ODD.name) == "odd_http_server2d.h"
    assert "int x" in text and "*/ int x" not in text


def test_a_kernel_reads_its_arguments_by_name(tmp_path, request):
    pytest.importorskip("cffi")
    assert opgen("header", "MatMul", "--out", tmp_path).exit_code == 0
    (tmp_path / "mm.c").write_text("""
#include "mat_mul.h"
GRAPHDOCK_LIBRARY
GRAPHDOCK_KERNEL(mm) {
    const mat_mul_args m = mat_mul_args_of(call);
    const double *a = (const double *)m.a->data, *b = (const double *)m.b->data;
    double *y = (double *)m.y->data;
    const int64_t rows = m.y->shape[0], columns = m.y->shape[1], inner = m.a->shape[m.transpose_a ? 0 : 1];
    if (m.T != GD_FLOAT64) return gd_fail(call, GD_UNIMPLEMENTED, "only float64");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += a[m.transpose_a ? k * rows + i : i * inner + k] * b[m.transpose_b ? j * inner + k : k * columns + j];
            y[i * columns + j] = sum;
        }
    return GD_OK;
}
""")
    library = NativeLibrary(compile_library([tmp_path / "mm.c"], tmp_path / "mm", ["-O2", *STRICT]))
    host = tf.default_host()
    host.kernels.add(library.kernel("MatMul", "mm", name="mm_in_c", label="test"), "in_c", "graphdock_std")
    request.addfinalizer(lambda: host.kernels.discard("in_c"))
    config = tf.SessionConfig(kernels={"MatMul@cpu": "in_c.mm_in_c"})
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 5))
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        np.testing.assert_allclose(session.run(tf.matmul(tf.constant(a), tf.constant(b), transpose_a=True)), a.T @ b)
        with pytest.raises(tf.errors.UnimplementedError, match="only float64"):
            session.run(tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])))


def test_the_command_writes_checks_and_says_what_is_wrong(tmp_path):
    out = tmp_path / "native"
    first = opgen("header", "MatMul", "Relu", "--out", out)
    assert first.exit_code == 0 and first.output.count(": written") == 2
    assert sorted(p.name for p in out.iterdir()) == ["mat_mul.h", "relu.h"]
    assert opgen("header", "MatMul", "--out", out, "--check").exit_code == 0
    (out / "relu.h").write_text("changed")
    stale = opgen("header", "MatMul", "Relu", "--out", out, "--check")
    assert stale.exit_code == 1 and "relu.h: not what Relu says" in stale.output
    assert (out / "relu.h").read_text() == "changed"
    unknown = opgen("header", "MatMull", "--out", out)
    assert unknown.exit_code == 1 and "did you mean 'MatMul'?" in unknown.output


def test_a_package_need_not_be_installed(tmp_path):
    package = tmp_path / "graphdock_here"
    (package / "_gen").mkdir(parents=True)
    (package / "specs").mkdir()
    (package / "__init__.py").write_text("")
    none = opgen("header", "here.Op", "--package", package, "--out", tmp_path)
    assert none.exit_code == 1 and "graphdock opgen generate" in none.output
    (package / "_gen" / "__init__.py").write_text("")
    (package / "_gen" / "opdefs.py").write_text(
        "from graphdock.contracts import OpDef\nOPS = {'here.Op': lambda: OpDef('here.Op', summary='An op.')}\n"
    )
    assert opgen("header", "here.Op", "Relu", "--package", package, "--out", tmp_path).exit_code == 0
    assert "An op." in Path(tmp_path, "here_op.h").read_text() and Path(tmp_path, "relu.h").is_file()
    other = opgen("header", "here.Opp", "--package", package, "--out", tmp_path)
    assert other.exit_code == 1 and "no op named 'here.Opp'" in other.output


def test_without_names_it_writes_the_headers_of_a_package_with_kernels(tmp_path):
    package = tmp_path / "graphdock_there"
    package.mkdir()
    (package / "__init__.py").write_text("")
    lacking = opgen("header", "--package", package, "--out", tmp_path)
    assert lacking.exit_code == 1 and "lists no kernels" in lacking.output and "name the ops" in lacking.output
    assert opgen("header", "--out", tmp_path).exit_code == 2
    rows = "".join(f'  {{op = "{op}", device = "cpu"}},\n' for op in ("Relu", "Neg"))
    head = 'schema = 1\n[plugin]\nname = "there"\nsummary = "."\napi = ">=0.3,<0.4"\n'
    (package / "graphdock-plugin.toml").write_text(f"{head}\n{MARKER}\n[kernels]\nrows = [\n{rows}]\n")
    assert opgen("header", "--package", package, "--out", tmp_path / "native").exit_code == 0
    assert sorted(p.name for p in (tmp_path / "native").iterdir()) == ["neg.h", "relu.h"]


def test_the_header_of_the_interface_is_where_compilers_look():
    assert (include_directory() / "graphdock" / "kernel.h").is_file()
