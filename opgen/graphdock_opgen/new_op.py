"""``graphdock new op``: an op in a package, from a name or from a function under tf.custom_op."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import click
import graphdock
from graphdock.errors import AlreadyExistsError, GraphdockError, InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.plugin import manifest
from graphdock.plugin.discovery import FILE_NAME

from graphdock_opgen.manifest import with_hook
from graphdock_opgen.new_files import append, find_package, opgen, render, write

__all__ = ["op"]

_OP = re.compile(r"[A-Z][A-Za-z0-9]*")
#: Folder of the templates of ops that have a kernel in Triton.
_TRITON = "triton"


@click.command("op", short_help="Add the op NAME (CamelCase) to a package.")
@click.argument("name", required=False)
@click.option("--from", "source", metavar="MODULE:FUNCTION", help="Take an op that was made with tf.custom_op.")
@click.option(
    "--package",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The import package. Default: the one below ./src or here that holds specs/ or a manifest.",
)
@click.option(
    "--triton", is_flag=True, help="With a kernel in Triton for NVIDIA GPUs, and tests of it that need no GPU."
)
def op(name: str | None, source: str | None, package: Path | None, triton: bool) -> None:
    """Add the op NAME (CamelCase) to a package: a spec that works, its kernel, its oracle; then change all three.

    With --from, MODULE is imported, and the spec says what the op FUNCTION says; the function becomes the oracle, in a module of
    the package. Kernels that were registered for it are left out, and named. A function that imports a module beside MODULE is
    refused. Text is appended to specs/*.yaml, kernels.py and reference.py; no line that is there is changed. A package that has
    no ops yet gets what ops need besides: names.py, the hooks register_ops and register_kernels (in the manifest too, where it
    states its hooks), and its wrappers as attributes.

    With --triton the op has a second kernel, in a module of its own, which kernels.py launches; its tests, in the interpreter and
    of what the compiler makes, go into the folder tests beside src.
    """
    if (name is None) == (source is None):
        raise click.UsageError("give the op's NAME, or --from MODULE:FUNCTION")
    if name is not None and not _OP.fullmatch(name):
        raise click.UsageError(f"{name!r} is no op name: CamelCase, such as ClipNorm")
    if triton and name is None:
        raise click.UsageError("--triton goes with a NAME: what --from takes has a kernel in Python")
    directory = (package or find_package()).resolve()
    if name is None:
        _op_from(str(source), directory)
        return
    names: Any = importlib.import_module("graphdock_opgen.names")
    library: Any = importlib.import_module("graphdock_opgen.library")
    found = _library(directory)
    stem, namespace = (found.files[0].stem, found.files[0].spec.namespace) if found else (_plugin_name(directory),) * 2
    dotted, snake, type_ = library.dotted_name(directory), names.snake(name), names.op_type(namespace, name)
    _refuse_declared(found, type_)
    context = {"op": name, "package": dotted, "snake": snake, "type": type_}
    spec = directory / "specs" / f"{stem}.yaml"
    kernel = render("op_kernel.py", **context)
    if triton:
        files = _triton_files(directory, snake)
        kernel += render(f"{_TRITON}/op_kernel.py", **context)
    _add(directory, spec, render(f"{_TRITON}/op.yaml" if triton else "op.yaml", **context), kernel, namespace)
    if triton:
        for path, template in files.items():
            write(path, render(f"{_TRITON}/{template}", **context))
    reference = f'"""Oracles of {dotted}\'s ops."""\n\nimport numpy as np\n'
    _append_code(directory / "reference.py", render("op_reference.py", **context), reference)
    _finish(directory)
    click.echo(f"{type_}: change its entry in {spec.name}, then {snake} in kernels.py and in reference.py")
    if triton:
        click.echo(
            f"its kernel for GPUs is in {snake}_triton.py; add graphdock-triton to the dependencies in pyproject.toml"
        )


def _triton_files(directory: Path, snake: str) -> dict[Path, str]:
    """Files of a kernel in Triton -> their templates. Raises AlreadyExistsError where one of them is there."""
    root = directory.parents[1] if directory.parent.name == "src" else directory.parent
    files = {
        directory / f"{snake}_triton.py": "triton_kernel.py",
        root / "tests" / f"test_{snake}_interpreted.py": "test_interpreted.py",
        root / "tests" / f"test_{snake}_cubins.py": "test_cubins.py",
    }
    for path in files:
        if path.exists():
            raise AlreadyExistsError(f"{path} exists", hint="name the op otherwise, or move the file")
    return files


def _op_from(source: str, directory: Path) -> None:
    """The op of a decorated function as an entry of a spec, a module of its functions, and a stub of its kernel."""
    made = _custom_op(source)
    library: Any = importlib.import_module("graphdock_opgen.library")
    python: Any = importlib.import_module("graphdock_opgen.from_python")
    found = _library(directory)
    opdef, function = made.op_def, made.name.partition("::")[2]
    _refuse_declared(found, opdef.name)
    namespace = opdef.name.partition(".")[0]
    stem = next((f.stem for f in (found.files if found else ()) if f.spec.namespace == namespace), namespace)
    # a module named like the wrapper would hide it as an attribute of the package
    module = directory / f"{function}_function.py"
    if module.exists():
        raise AlreadyExistsError(f"{module} exists", hint="rename it: the op's functions go there")
    dotted = f"{library.dotted_name(directory)}.{module.stem}"
    functions = python.Functions(
        function, made.function, made.shape_function, made.gradient_function, dict(made.signature.enums)
    )
    local = python.local_imports(opdef, functions, library.dotted_name(directory))
    if local:
        raise InvalidArgumentError(
            f"{made.name} imports {', '.join(local)}, which stands beside {Path(made.source.rpartition(':')[0]).name} "
            "and would be no part of the package",
            site=made.source,
            hint=f"move what it needs into that file, from where it is copied, or into {library.dotted_name(directory)}",
        )
    text, kernel = python.module_source(opdef, functions), python.kernel_source(opdef, functions, dotted)
    spec = directory / "specs" / f"{stem}.yaml"
    write(module, text)
    try:
        _add(directory, spec, python.entry(opdef, functions, dotted), kernel or "", namespace)
    except GraphdockError:
        module.unlink()
        raise
    _finish(directory)
    click.echo(
        f"{opdef.name}: its entry is in {spec.name}, its functions in {module.name}, a kernel to replace in kernels.py"
    )
    for left in made.kernels:
        click.echo(f"left out: its kernel {left.name} for {left.device}; write it into kernels.py")
    if python.needs_sample(opdef):
        click.echo(
            f"TODO: {spec.name} has no sample of {opdef.name}, so that conformance checks nothing of it: fill the one there"
        )


def _custom_op(source: str) -> Any:
    """Return what ``module:function`` names: an op made with tf.custom_op."""
    module_name, colon, attribute = source.partition(":")
    if not colon or not attribute.isidentifier() or not all(p.isidentifier() for p in module_name.split(".")):
        raise click.UsageError(f"--from takes MODULE:FUNCTION, not {source!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise NotFoundError(f"no module {error.name!r}, which --from {source} needs") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    made = getattr(module, attribute, None)
    if made is None:
        raise NotFoundError(f"module {module_name} has no {attribute!r}", hint=did_you_mean(attribute, vars(module)))
    if not isinstance(made, graphdock.ops.CustomOp):
        raise InvalidArgumentError(
            f"{source} is no op", expected="a function under @tf.custom_op", got=type(made).__name__
        )
    return made


def _library(directory: Path) -> Any:
    """The package's op library; None where it has no ops yet. Raises the first fault of its specs."""
    if not any((directory / "specs").glob("*.yaml")):
        _plugin_name(directory)
        return None
    library: Any = importlib.import_module("graphdock_opgen.library")
    found = library.load_library(directory)
    if found.errors:
        raise found.errors[0]
    return found


def _plugin_name(directory: Path) -> str:
    """The name in a package's manifest, which is the namespace of its ops."""
    path = directory / FILE_NAME
    if not path.is_file():
        raise NotFoundError(
            f"{directory} holds neither specs/*.yaml nor {FILE_NAME}",
            hint="`graphdock new plugin` makes a package",
        )
    return manifest.load(str(path)).name


def _refuse_declared(library: Any, type_: str) -> None:
    if library is not None and any(known.type == type_ for known in library.ops):
        raise AlreadyExistsError(f"{library.package} declares the op {type_!r} already")


def _add(directory: Path, spec: Path, entry: str, kernel: str, namespace: str = "") -> None:
    """Append an entry to a spec file, or begin one, and a kernel. Raises what is wrong with the specs, which are then as before."""
    library: Any = importlib.import_module("graphdock_opgen.library")
    before = spec.read_text(encoding="utf-8") if spec.is_file() else None
    first = not any(spec.parent.glob("*.yaml"))
    if kernel and "KERNELS" not in (_bound(directory / "kernels.py") or {"KERNELS"}):
        raise NotFoundError(f"{directory / 'kernels.py'} has no list KERNELS", hint="the op's kernel is appended to it")
    spec.parent.mkdir(exist_ok=True)
    append(spec, entry, f"graphdock_opdef: 1\nnamespace: {namespace}\nops:\n")
    try:
        errors = library.load_library(directory).errors
        if errors:
            raise errors[0]
    except GraphdockError:
        if before is None:
            spec.unlink()
        else:
            spec.write_text(before, encoding="utf-8", newline="\n")
        raise
    package = library.dotted_name(directory)
    if kernel:
        head = f'"""Kernels of {package}."""\n\nimport numpy as np\nfrom graphdock.contracts import KernelDef\n\nKERNELS = []\n'
        _append_code(directory / "kernels.py", kernel, head)
    if first:
        _begin_ops(directory, package)


def _bound(path: Path) -> set[str]:
    """Names that a module of the package binds at its top; empty where there is none."""
    if not path.is_file():
        return set()
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {name.asname or name.name.partition(".")[0] for name in node.names}
        else:
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


#: Name that appended code may use -> its import.
_IMPORTS = {"np": "import numpy as np", "KernelDef": "from graphdock.contracts import KernelDef"}


def _append_code(path: Path, text: str, head: str) -> None:
    """Append to a module, which begins with ``head``, with the imports that the text needs and the module lacks."""
    known = _bound(path)
    used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    lines = [f"{line}  # noqa: E402\n" for name, line in _IMPORTS.items() if known and name in used - known]
    append(path, ("\n" + "".join(lines) if lines else "") + text, head)


def _begin_ops(directory: Path, package: str) -> None:
    """Add what a package with its first op needs besides the spec."""
    if not (directory / "names.py").is_file():
        write(directory / "names.py", render("names.py"))
    wanted = [("plugin.py", "register_ops", "op_hook.py"), ("__init__.py", "__getattr__", "op_exports.py")]
    if (directory / "kernels.py").is_file():
        wanted.insert(1, ("plugin.py", "register_kernels", "kernel_hook.py"))
    for file, function, template in wanted:
        if function not in _bound(directory / file):
            append(directory / file, render(template, package=package), "")
            if function.startswith("register_"):
                _state_hook(directory / FILE_NAME, function)


def _state_hook(path: Path, hook: str) -> None:
    """Add a hook to the manifest's ``hooks``, where it states them."""
    if path.is_file():
        path.write_text(with_hook(path.read_text(encoding="utf-8"), hook), encoding="utf-8", newline="\n")


def _finish(directory: Path) -> None:
    commands: list[list[str | Path]] = [["generate", directory]]
    if (directory / "graphdock-plugin.toml").is_file():
        commands.append(["manifest", directory])
    opgen(*commands)
