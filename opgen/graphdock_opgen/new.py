"""``graphdock new``: starts a plugin package, or an op in one."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import graphdock
from graphdock.errors import AlreadyExistsError, GraphdockError, InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.plugin import manifest
from graphdock.plugin.discovery import discover

from graphdock_opgen.writing_group import WritingGroup

__all__ = ["command"]

_PLUGIN = re.compile(r"[a-z][a-z0-9_]*")
#: What no plugin may be named, besides graphdock's own: packages of it, and what kernels of no plugin are said to come from.
_TAKEN = {"host", "user", "core", "templates"}
#: Folder of the templates that a package of native kernels has for itself.
_NATIVE = "scaffold_native"
#: That of the templates of ops that have a kernel in Triton.
_TRITON = "scaffold_triton"
_OP = re.compile(r"[A-Z][A-Za-z0-9]*")


@click.group("new", cls=WritingGroup)
def command() -> None:
    """Start a plugin package, or an op in one."""


@command.command(short_help="Make the package graphdock-NAME, which works as it is.")
@click.argument("name")
@click.option("--device", is_flag=True, help="With a device type of its own, called NAME.")
@click.option("--ops", is_flag=True, help="With an op of its own, from a spec.")
@click.option("--native", is_flag=True, help="With a kernel in C, which is compiled when the package is built.")
@click.option("--summary", default=None, help="One line for `graphdock plugins`.")
@click.option(
    "--dir", "parent", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to make it."
)
def plugin(name: str, device: bool, ops: bool, native: bool, summary: str | None, parent: Path) -> None:
    """Make the package graphdock-NAME: sources, manifest, tests; it builds, installs and passes them as it is.

    NAME is the plugin's and the backend's: lower case letters, digits and underscores. With neither --device nor --ops it
    brings a kernel for the cpu device: in NumPy, or with --native in C.
    """
    if native and (device or ops):
        raise click.UsageError("--native goes with neither --device nor --ops: such a package begins with kernels")
    if not _PLUGIN.fullmatch(name):
        raise click.UsageError(f"{name!r} is no plugin name: a lower-case letter, then letters, digits and underscores")
    if name in _TAKEN | {found.plugin for found in discover() if found.is_own}:
        raise AlreadyExistsError(f"graphdock has a {name!r} of its own", hint="name the plugin otherwise")
    package = f"graphdock_{name}"
    dist = name.replace("_", "-")
    root = parent / f"graphdock-{dist}"
    if root.exists():
        raise AlreadyExistsError(f"{root} exists", hint="name another plugin, or another folder with --dir")
    context: dict[str, Any] = {
        "name": name,
        "dist": dist,
        "package": package,
        "title": "".join(part.capitalize() for part in name.split("_")),
        "summary": summary or _summary(name, device, ops),
        "device": device,
        "ops": ops,
    }
    source = root / "src" / package
    files = {
        root / "pyproject.toml": "pyproject.toml",
        root / ".gitignore": "gitignore",
        root / "README.md": "README.md",
        root / "tests" / f"test_{name}.py": "test_plugin.py",
        source / "__init__.py": "init.py",
        source / "graphdock-plugin.toml": "manifest.toml",
        source / "plugin.py": "plugin.py",
        source / "kernels.py": "kernels.py",
        source / "py.typed": "py.typed",
    }
    if native:
        files |= {
            root / "pyproject.toml": f"{_NATIVE}/pyproject.toml",
            root / "hatch_build.py": f"{_NATIVE}/hatch_build.py",
            root / ".gitignore": f"{_NATIVE}/gitignore",
            root / "README.md": f"{_NATIVE}/README.md",
            root / "native" / "kernels.c": f"{_NATIVE}/kernels.c",
            root / "tests" / f"test_{name}.py": f"{_NATIVE}/test_plugin.py",
            source / "graphdock-plugin.toml": f"{_NATIVE}/manifest.toml",
            source / "kernels.py": f"{_NATIVE}/kernels.py",
        }
    if device:
        files[source / "device.py"] = "device.py"
    if ops:
        files[source / "specs" / f"{name}.yaml"] = "specs.yaml"
        files[source / "names.py"] = "names.py"
        files[source / "reference.py"] = "reference.py"
    for path, template in files.items():
        _write(path, _render(template, **context))
    commands: list[list[str | Path]] = [["generate", source]] if ops else []
    commands.append(["manifest", source])
    if native:
        commands.append(["header", "--package", source, "--out", root / "native"])
    _opgen(*commands)
    click.echo(f"made {root}")
    install = "pip install -e '.[test]'"
    if native:  # its build hook is graphdock's own
        install = f"pip install hatchling editables && {install} --no-build-isolation"
    click.echo(f"next: cd {root} && {install} && pytest && pytest --graphdock-backend {name}")


@command.command(short_help="Add the op NAME (CamelCase) to a package.")
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
    no ops yet gets what ops need besides: names.py, the hook register_ops, and its wrappers as attributes.

    With --triton the op has a second kernel, in a module of its own, which kernels.py launches; its tests, in the interpreter and
    of what the compiler makes, go into the folder tests beside src.
    """
    if (name is None) == (source is None):
        raise click.UsageError("give the op's NAME, or --from MODULE:FUNCTION")
    if name is not None and not _OP.fullmatch(name):
        raise click.UsageError(f"{name!r} is no op name: CamelCase, such as ClipNorm")
    if triton and name is None:
        raise click.UsageError("--triton goes with a NAME: what --from takes has a kernel in Python")
    directory = (package or _find_package()).resolve()
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
    kernel = _render("op_kernel.py", **context)
    if triton:
        files = _triton_files(directory, snake)
        kernel += _render(f"{_TRITON}/op_kernel.py", **context)
    _add(directory, spec, _render(f"{_TRITON}/op.yaml" if triton else "op.yaml", **context), kernel, namespace)
    if triton:
        for path, template in files.items():
            _write(path, _render(f"{_TRITON}/{template}", **context))
    reference = f'"""Oracles of {dotted}\'s ops."""\n\nimport numpy as np\n'
    _append(directory / "reference.py", _render("op_reference.py", **context), reference)
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
    _write(module, text)
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
    """What ``module:function`` names: an op made with tf.custom_op."""
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
    path = directory / manifest.FILE_NAME
    if not path.is_file():
        raise NotFoundError(
            f"{directory} holds neither specs/*.yaml nor {manifest.FILE_NAME}",
            hint="`graphdock new plugin` makes a package",
        )
    return manifest.load(path).name


def _refuse_declared(library: Any, type_: str) -> None:
    if library is not None and any(known.type == type_ for known in library.ops):
        raise AlreadyExistsError(f"{library.package} declares the op {type_!r} already")


def _add(directory: Path, spec: Path, entry: str, kernel: str, namespace: str = "") -> None:
    """Append an entry to a spec file, or begin one, and a kernel. Raises what is wrong with the specs, which are then as before."""
    library: Any = importlib.import_module("graphdock_opgen.library")
    before = spec.read_text(encoding="utf-8") if spec.is_file() else None
    first = not any(spec.parent.glob("*.yaml"))
    spec.parent.mkdir(exist_ok=True)
    _append(spec, entry, f"graphdock_opdef: 1\nnamespace: {namespace}\nops:\n")
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
    head = "import numpy as np\nfrom graphdock.contracts import KernelDef\n\nKERNELS = []\n"
    if kernel:
        _append(directory / "kernels.py", kernel, f'"""Kernels of {library.dotted_name(directory)}."""\n\n{head}')
    if first:
        _begin_ops(directory, library.dotted_name(directory))


def _begin_ops(directory: Path, package: str) -> None:
    """What a package with its first op needs besides the spec."""
    if not (directory / "names.py").is_file():
        _write(directory / "names.py", _render("names.py"))
    for file, function, template in (
        ("plugin.py", "register_ops", "op_hook.py"),
        ("__init__.py", "__getattr__", "op_exports.py"),
    ):
        path = directory / file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        if function not in defined:
            _append(path, _render(template, package=package), "")


def _finish(directory: Path) -> None:
    commands: list[list[str | Path]] = [["generate", directory]]
    if (directory / "graphdock-plugin.toml").is_file():
        commands.append(["manifest", directory])
    _opgen(*commands)


def _summary(name: str, device: bool, ops: bool) -> str:
    if device:
        return f"The {name} device for graphdock"
    return f"Ops of {name} for graphdock" if ops else f"Kernels of {name} for graphdock"


def _render(template: str, **context: Any) -> str:
    environment: Any = importlib.import_module("graphdock_opgen.render").environment()
    text: str = environment.get_template(f"{template if '/' in template else f'scaffold/{template}'}.j2").render(
        **context
    )
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip("\n") + "\n" if text else "", encoding="utf-8", newline="\n")


def _append(path: Path, text: str, head: str) -> None:
    before = path.read_text(encoding="utf-8") if path.is_file() else head
    if before and not before.endswith("\n"):
        before += "\n"
    path.write_text(before + text, encoding="utf-8", newline="\n")


def _find_package() -> Path:
    for name in ("specs", manifest.FILE_NAME):
        found = sorted({p.parent for pattern in ("src/*/", "*/", "") for p in Path().glob(pattern + name)})
        if len(found) > 1:
            raise InvalidArgumentError(
                f"several packages have {name}: " + ", ".join(map(str, found)), hint="name one with --package"
            )
        if found:
            return found[0]
    raise NotFoundError(
        f"no package with specs/ or {manifest.FILE_NAME} below ./src or here", hint="name it with --package"
    )


#: Runs commands of opgen one after the other, up to the first that fails.
_COMMANDS = """
import json, sys
from graphdock_opgen.cli import command
for arguments in json.loads(sys.argv[1]):
    try:
        command(arguments, prog_name="graphdock opgen")
    except SystemExit as end:
        if end.code:
            raise
"""


def _opgen(*commands: Sequence[str | Path]) -> None:
    """Run commands of opgen in a process of their own: the manifest's part of it imports the package."""
    lines = [list(map(str, command)) for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS, json.dumps(lines)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        told = " and ".join(" ".join(line) for line in lines)
        raise GraphdockError(f"opgen {told} failed:\n{done.stdout}{done.stderr}")
