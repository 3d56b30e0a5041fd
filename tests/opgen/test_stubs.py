"""Files a person fills in: appended to, never edited."""

from __future__ import annotations

import pytest
from graphdock import ops
from graphdock_opgen.generate import plan, write
from graphdock_opgen.library import load_library
from graphdock_opgen.stubs import missing_functions, plan_stubs, signature_errors, write_stubs

from .conftest import CLIP_NORM

KERNEL_SPEC = CLIP_NORM.replace(
    '  decompose:\n  - "n = sqrt(reduce_sum(x * x))"\n  - "y = x * minimum(1.0, limit / maximum(n, limit))"\n', ""
)


def stubs(package) -> list[str]:
    return [p.name for p in write_stubs(plan_stubs(load_library(package)))]


def test_stubs_are_written_once_and_what_a_person_writes_survives(make) -> None:
    package = make("graphdock_clipnorm", clipnorm=KERNEL_SPEC)
    assert stubs(package) == ["gradients.py", "kernels.py"]
    gradients = package / "gradients.py"
    text = gradients.read_text()
    assert "def clip_norm_limit(op, grad_y):" in text
    assert "op.inputs: x [*S] T, limit [] T. Gradients given: grad_y [*S] T." in text
    assert 'raise ops.GradientNotFilled("clipnorm.ClipNorm", "limit")' in text
    mine = text.replace('    raise ops.GradientNotFilled("clipnorm.ClipNorm", "limit")', "    return grad_y  # mine\t")
    gradients.write_text(mine)
    kernels = (package / "kernels.py").read_text()
    assert stubs(package) == []
    write(plan(package))
    assert gradients.read_text() == mine
    assert (package / "kernels.py").read_text() == kernels


def test_a_new_function_is_appended_below_what_stands_there(make) -> None:
    package = make("graphdock_clipnorm", clipnorm=KERNEL_SPEC)
    stubs(package)
    gradients = package / "gradients.py"
    before = gradients.read_text() + "# the last line is a comment, without a newline"
    gradients.write_text(before)
    spec = package / "specs" / "clipnorm.yaml"
    second = KERNEL_SPEC.split("ops:\n")[1].replace("ClipNorm", "ClipMean").replace("clip_norm", "clip_mean")
    spec.write_text(KERNEL_SPEC + second)
    assert stubs(package) == ["gradients.py", "kernels.py"]
    after = gradients.read_text()
    assert after.startswith(before + "\n")
    assert after.count("def clip_norm_limit") == 1 and after.count("def clip_mean_limit") == 1


def test_a_stub_needs_no_import_of_the_file_that_it_is_appended_to(make) -> None:
    package = make("graphdock_clipnorm", clipnorm=KERNEL_SPEC)
    (package / "gradients.py").write_text('"""Mine."""\n')
    (package / "kernels.py").write_text("from graphdock.contracts import KernelDef\n\nKERNELS = []\n")
    stubs(package)
    space: dict = {}
    exec((package / "gradients.py").read_text(), space)
    with pytest.raises(ops.GradientNotFilled):
        space["clip_norm_limit"](None, None)
    exec((package / "kernels.py").read_text(), space)
    with pytest.raises(Exception, match=r"the cpu kernel of clipnorm\.ClipNorm is a stub"):
        space["KERNELS"][0].build(None)


def test_generated_stubs_are_python_that_registers_a_kernel(make) -> None:
    package = make("graphdock_clipnorm", clipnorm=KERNEL_SPEC)
    stubs(package)
    space: dict = {}
    exec(compile((package / "kernels.py").read_text(), "kernels.py", "exec"), space)
    (kernel,) = space["KERNELS"]
    assert (kernel.op, kernel.device, kernel.short_name) == ("clipnorm.ClipNorm", "cpu", "clip_norm")
    with pytest.raises(Exception, match=r"the cpu kernel of clipnorm\.ClipNorm is a stub"):
        kernel.build(None)


def test_an_op_with_a_decomposition_needs_no_kernel(make) -> None:
    package = make()
    assert stubs(package) == ["gradients.py"]


def test_a_kernel_known_by_its_op_is_not_asked_for_again(make) -> None:
    package = make("graphdock_clipnorm", clipnorm=KERNEL_SPEC)
    (package / "kernels.py").write_text(
        'from x import KernelDef\nKERNELS = [KernelDef("clipnorm.ClipNorm", "cpu", print)]\n'
    )
    assert stubs(package) == ["gradients.py"]


@pytest.mark.parametrize(
    ("signature", "fits"),
    [
        ("op, grad_y", True),
        ("op, g", True),
        ("op, *grads", True),
        ("op, grad_y, extra=None", True),
        ("op", False),
        ("op, grad_y, grad_z", False),
    ],
)
def test_a_changed_signature_is_an_error_with_both_lines(make, signature: str, fits: bool) -> None:
    package = make()
    (package / "gradients.py").write_text(f"x = 1\n\n\ndef clip_norm_limit({signature}):\n    return None\n")
    errors: list = []
    signature_errors(load_library(package), errors.append)
    if fits:
        assert errors == []
        return
    (error,) = errors
    assert (error.line, error.column) == (18, 19)
    assert (
        f"clipnorm.ClipNorm calls clip_norm_limit(op, grad_y), but gradients.py:4 has clip_norm_limit({signature})"
        in str(error)
    )
    assert "opgen never edits it" in error.hint


def test_names_of_this_package_that_are_not_there(make) -> None:
    text = CLIP_NORM.replace("  decompose:", '  reference: "graphdock_clipnorm.reference:clip_nrm"\n  decompose:')
    package = make("graphdock_clipnorm", clipnorm=text)
    errors: list = []
    missing_functions(load_library(package), errors.append)
    assert "names 'graphdock_clipnorm.reference:clip_nrm', but there is no reference.py" in str(errors[0])
    (package / "reference.py").write_text("def clip_norm(x, limit): ...\n")
    errors.clear()
    missing_functions(load_library(package), errors.append)
    assert "but reference.py has no 'clip_nrm'" in str(errors[0])
    assert errors[0].column == 14


def test_an_op_without_a_kernel_gets_no_stub(make) -> None:
    from .test_compare import HANDLE

    package = make("graphdock_tables", tables=HANDLE)
    assert stubs(package) == ["kernels.py"]
    text = (package / "kernels.py").read_text()
    assert "def push(ctx):" in text and "def table(ctx):" not in text
