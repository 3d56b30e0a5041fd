"""Parts of a new plugin package: what each option of ``graphdock new plugin`` brings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

__all__ = ["IN_C", "PARTS", "FileOfPart", "HookOfPart", "Part", "hooks_of"]

#: Folder of the package's sources, and of the templates of a part, in paths.
_SOURCE = "src/{package}"


@dataclass(frozen=True, slots=True)
class FileOfPart:
    """A file of a new package.

    Attributes:
      path: below its root; ``{package}`` and ``{name}`` stand for the plugin's.
      template: below ``scaffold``.
      about: what to change there, for the README; empty for what is not changed.
    """

    path: str
    template: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class HookOfPart:
    """A hook that a new plugin implements: it imports ``item`` from ``module``, and returns ``returned``."""

    hook: str
    module: str
    item: str
    returned: str


@dataclass(frozen=True, slots=True)
class Part:
    """Files and words that one option brings.

    Attributes:
      help: of the option. ``noun``: what the package is said to bring, in its summary.
      page: of graphdock's documentation.
      hook: the hook that it implements, or None.
      files: besides the part's tests, ``tests/test_PART.py``.
      needs: parts that it is nothing without.
    """

    help: str
    noun: str
    page: str
    hook: HookOfPart | None = None
    files: tuple[FileOfPart, ...] = ()
    needs: tuple[str, ...] = ()


def _module(part: str, name: str, about: str) -> FileOfPart:
    return FileOfPart(f"{_SOURCE}/{name}.py", f"{part}/{name}.py", about)


_SPECS = (
    FileOfPart(f"{_SOURCE}/specs/{{name}}.yaml", "ops/specs.yaml", "the ops: arguments, shapes, gradients, samples"),
    FileOfPart(f"{_SOURCE}/names.py", "names.py", "public functions that you write by hand; formulas may call them"),
    FileOfPart(f"{_SOURCE}/reference.py", "ops/reference.py", "the oracle of each op, by other means than its kernel"),
)
_MEMORY = "how memory is taken and copied"

#: Option -> what it brings, in the order of ``--help``.
PARTS: Mapping[str, Part] = {
    "device": Part(
        "With a device type of its own, called NAME.",
        "device",
        "write-a-device-plugin.md",
        HookOfPart("register_devices", "device", "{title}Factory", "[{title}Factory()]"),
        (_module("device", "device", f"{_MEMORY}: the two classes of the device contract"),),
    ),
    "asynchronous": Part(
        "With --device: one with queues, whose work runs late.",
        "device",
        "write-an-asynchronous-device.md",
        files=(_module("asynchronous", "device", f"{_MEMORY}, how work is queued, recorded and waited for"),),
        needs=("device",),
    ),
    "ops": Part("With an op of its own, from a spec.", "ops", "write-an-op.md", files=_SPECS),
    "native": Part(
        "With a kernel in C, which is compiled when the package is built; with --device: a device in C.",
        "kernels in C",
        "write-a-native-kernel.md",
        files=(
            FileOfPart("native/kernels.c", "native/kernels.c", "the kernels: one function each"),
            FileOfPart("hatch_build.py", "native/hatch_build.py", "how the sources are compiled when a wheel is built"),
        ),
    ),
    "pattern": Part(
        "With an op, and a pattern: what people write that it computes.",
        "patterns",
        "write-a-pattern.md",
        HookOfPart("register_patterns", "patterns", "PATTERNS", "PATTERNS"),
        (*_SPECS, _module("pattern", "patterns", "both sides of each pattern, and what enters")),
    ),
    "compiler": Part(
        "With a region compiler for the cpu.",
        "region compiler",
        "write-a-region-compiler.md",
        HookOfPart("register_region_compilers", "compiler", "{title}Compiler", "[{title}Compiler()]"),
        (_module("compiler", "compiler", "which operations it claims, and the kernel that it makes of them"),),
    ),
    "executor": Part(
        "With an executor, called NAME.",
        "executor",
        "write-an-executor.md",
        HookOfPart("register_executors", "executor", "{title}Executor", "[{title}Executor()]"),
        (_module("executor", "executor", "how a placed graph becomes a program, and what a step of it does"),),
    ),
    "pass": Part(
        "With a pass, called NAME.",
        "pass",
        "write-a-pass.md",
        HookOfPart("register_passes", "passes", "PASSES", "PASSES"),
        (_module("pass", "passes", "what changes plans, and when"),),
    ),
    "placer": Part(
        "With a placer, called NAME.",
        "placer",
        "write-a-placer.md",
        HookOfPart("register_placers", "placer", "{title}Placer", "[{title}Placer()]"),
        (_module("placer", "placer", "which device each group of nodes gets"),),
    ),
    "transport": Part(
        "With a transport for targets NAME://host:port.",
        "transport",
        "write-a-transport.md",
        HookOfPart("register_transports", "transport", "{title}Transport", "[{title}Transport()]"),
        (
            _module(
                "transport", "transport", "how calls reach a task of another process, and how their answers come back"
            ),
        ),
    ),
    "graph_format": Part(
        "With a form of graphs, called NAME.",
        "form of graphs",
        "write-a-file-format.md",
        HookOfPart("register_graph_formats", "form", "{title}Format", "[{title}Format()]"),
        (_module("graph_format", "form", "how graphs are read and written"),),
    ),
    "endpoints": Part(
        "With names below tf, tf.NAME.something.",
        "names below tf",
        "publish-names.md",
        files=(
            _module("endpoints", "endpoints", "the names below tf, and where each is"),
            _module("endpoints", "functions", "functions of tensors"),
        ),
    ),
}

#: What a device in C has in place of one in Python, with ``--device`` and ``--native``.
IN_C = (
    FileOfPart(f"{_SOURCE}/device.py", "native/device.py"),
    FileOfPart("native/device.c", "native/device.c", "the device: memory, queues, events, and its kernels"),
    FileOfPart(f"{_SOURCE}/kernels.py", "native/device_kernels.py", "which kernel of the library computes which op"),
)
_DEVICE_IN_C = HookOfPart("register_devices", "device", "DEVICE", "[DEVICE.factory()]")
_KERNELS = HookOfPart("register_kernels", "kernels", "KERNELS", "KERNELS")


def hooks_of(
    parts: Collection[str], package: str, title: str, *, specs: bool, kernels: bool, in_c: bool = False
) -> list[HookOfPart]:
    """The hooks of a package with these parts, in the order in which graphdock runs them, with its names in place."""
    hooks = [_DEVICE_IN_C if in_c and part == "device" else PARTS[part].hook for part in parts]
    if specs:
        hooks.append(HookOfPart("register_ops", "", "", f'[OpLibrary("{package}._gen.opdefs", specs="{package}")]'))
    if kernels:
        hooks.append(_KERNELS)
    order = ["register_devices", "register_ops", "register_kernels"]
    found = sorted((h for h in hooks if h is not None), key=lambda h: order.index(h.hook) if h.hook in order else 3)
    return [HookOfPart(h.hook, h.module, h.item.format(title=title), h.returned.format(title=title)) for h in found]
