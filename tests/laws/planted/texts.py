"""Faults of specs, which ``opgen check`` is to find, and of packages and their manifests, which ``doctor`` is to find."""

from __future__ import annotations

from graphdock.plugin.manifest import MARKER

from planted.bench import Fault

CHECK = frozenset({"check"})
DOCTOR = frozenset({"doctor"})

#: A spec without fault; each fault replaces one text of it.
SPEC = """\
graphdock_opdef: 1
namespace: planted
ops:
- name: ClipNorm
  summary: Scale x so that its L2 norm is at most limit.
  types: {T: {allow: [float32, float64]}}
  attrs:
  - {name: power, type: int, min: 1, default: 2}
  inputs:
  - {name: x, dtype: T, shape: "[*S, N]", doc: Any tensor.}
  - {name: limit, dtype: T, shape: "[]", doc: Largest norm; positive.}
  outputs: [{name: y, dtype: T, shape: "[*S, N]"}]
  dims:
    where:
    - {check: "N > 1", error: "N is {N}"}
  gradient:
    let: {n: "sqrt(reduce_sum(x * x))"}
    inputs:
      x: "g.y * (limit / n)"
      limit: none
  decompose:
  - "n = sqrt(reduce_sum(x * x))"
  - "y = x * minimum(1.0, limit / n)"
  tests:
    samples: [{x: {shape: [3, 4]}, limit: {value: 0.5}}]
    error_samples: [{x: {shape: [1]}, limit: {value: 0.5}, match: "N is 1"}]
  api: {endpoints: [{name: clip_norm}]}
"""

#: name -> (text, what stands in its place)
SPECS = {
    "a key that nobody knows": ("summary:", "sumary:"),
    "a dtype that nobody knows": ("[float32, float64]", "[float32, float46]"),
    "a type variable that nobody knows": ("x, dtype: T", "x, dtype: U"),
    "a default that is not of its type": ("default: 2}", 'default: "2"}'),
    "an output dim that nothing binds": ('y, dtype: T, shape: "[*S, N]"', 'y, dtype: T, shape: "[*S, M]"'),
    "a condition that can't be parsed": ('check: "N > 1"', 'check: "N >"'),
    "a condition over a dim that is not there": ('check: "N > 1"', 'check: "K > 1"'),
    "a gradient of an input that is not there": ("      limit: none", "      limits: none"),
    "an input without a gradient": ("      limit: none\n", ""),
    "a formula that calls what is not there": ('sqrt(reduce_sum(x * x))"}', 'squrt(reduce_sum(x * x))"}'),
    "a formula over a name that is not there": ("g.y * (limit / n)", "g.y * (limit / m)"),
    "a decomposition that makes no output": ('"y = x * minimum', '"z = x * minimum'),
    "a sample of an input that is not there": (" samples: [{x:", " samples: [{z:"),
    "a sample without an input": (", limit: {value: 0.5}}]\n    error", "}]\n    error"),
    "an error sample with another message": ('match: "N is 1"', 'match: "N is 7"'),
    "a message that is no regular expression": ('match: "N is 1"', 'match: "N is (1"'),
    "a sample that a condition refuses": (" samples: [{x: {shape: [3, 4]}", " samples: [{x: {shape: [3, 1]}"),
    "a default below its least value": ("min: 1, default: 2}", "min: 3, default: 2}"),
    "a dim where a run of dims stands": ('x, dtype: T, shape: "[*S, N]"', 'x, dtype: T, shape: "[*N, N]"'),
    "two arguments of one name": ("- {name: limit, dtype", "- {name: x, dtype"),
    "an endpoint that is no name": ("{name: clip_norm}", "{name: clip-norm}"),
}

MANIFEST = """\
schema = 1

[plugin]
name = "{name}"
summary = "A plugin with a planted fault"
api = ">=0.3,<0.4"
"""
CODE = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels(): return [KernelDef("Square", "cpu", lambda ctx: np.square)]
"""
DEVICE = """\
import numpy as np
from graphdock.contracts import Device, DeviceFactory, DeviceInfo, KernelDef, hookimpl

class Chip(Device):
    def allocate(self, nbytes, align=64): return np.zeros(nbytes, np.uint8)
    def view(self, storage, offset, dtype, shape): return np.ndarray(shape, dtype.np, storage, offset)
    def copy(self, src, dst): np.copyto(dst, src)
    def from_host(self, array, dst): np.copyto(dst, array)
    def to_host(self, src, dst): np.copyto(dst, src)

class Factory(DeviceFactory):
    device_type = "{name}"
    def probe(self): return [DeviceInfo("{name}")]
    def open(self, info, options): return Chip(info)

@hookimpl
def register_devices(): return [Factory()]
"""
OWN = '\n[[devices]]\ntype = "{name}"\n'

#: name -> (plugin's name, manifest, code)
PACKAGES = {
    "a schema that nobody knows": ("schema", MANIFEST.replace("schema = 1", "schema = 9"), CODE),
    "contracts of a later version": ("later", MANIFEST.replace(">=0.3,<0.4", ">=9.0,<10"), CODE),
    "no text of TOML": ("broken", MANIFEST + "[[[", CODE),
    "a key of the manifest that nobody knows": ("key", MANIFEST + 'colour = "red"\n', CODE),
    "another plugin's name": ("name", MANIFEST.replace("{name}", "other"), CODE),
    "no manifest": ("bare", None, CODE),
    "a module that is not installed": ("imports", MANIFEST + 'imports = ["no_such_module_anywhere"]\n', CODE),
    "an option whose default is not of its type": (
        "option",
        MANIFEST + '\n[options.streams]\ntype = "int"\ndefault = "two"\ndoc = "How many."\n',
        CODE,
    ),
    "a kernel in the manifest that is not there": (
        "gone",
        MANIFEST + f'\n{MARKER}\n[kernels]\nrows = [\n  {{op = "Sqrt", device = "cpu"}},\n]\n',
        CODE,
    ),
    "a device in the manifest that is not there": ("nodevice", MANIFEST + OWN, CODE),
    "code that raises": ("raises", MANIFEST, "npx"),
    "code that ends the process": ("quits", MANIFEST, "import os\nos._exit(5)\n"),
    "a hook that raises": ("hook", MANIFEST, CODE.replace("return [Kernel", "return 1 / 0, [Kernel")),
    "a hook that returns something else": ("hooked", MANIFEST, CODE.replace("return [Kernel", "return [None, Kernel")),
    "a probe that raises": (
        "probe",
        MANIFEST + OWN,
        DEVICE.replace('return [DeviceInfo("{name}")]', 'raise RuntimeError("no driver")'),
    ),
    "a probe that ends the process": (
        "probequits",
        MANIFEST + OWN,
        DEVICE.replace('return [DeviceInfo("{name}")]', "import os; os._exit(6)"),
    ),
    "a probe that finds another type": (
        "probeother",
        MANIFEST + OWN,
        DEVICE.replace('DeviceInfo("{name}")', 'DeviceInfo("another")'),
    ),
    "two kernels of one name": (
        "twice",
        MANIFEST,
        CODE.replace("np.square)]", "np.square), KernelDef('Square', 'cpu', lambda ctx: np.square)]"),
    ),
    "two kernels that tie": (
        "tie",
        MANIFEST,
        CODE.replace("np.square)]", "np.square), KernelDef('Square', 'cpu', lambda ctx: np.square, name='again')]"),
    ),
    "a kind of names that nobody knows": ("provides", MANIFEST + '\n[provides]\nexecutor = ["x"]\n', CODE),
    "an op in the manifest that is not there": (
        "noops",
        MANIFEST + f'\n{MARKER}\n[ops]\nnames = [\n  "noops.Legs",\n]\n',
        CODE,
    ),
    "a pass in the manifest that is not there": (
        "nopass",
        MANIFEST + '\n[provides]\npasses = ["nopass.tidy"]\n',
        CODE,
    ),
    "a range of versions that is none": ("versions", MANIFEST.replace(">=0.3,<0.4", "soon"), CODE),
    "names of functions that are no list": (
        "endpoints",
        MANIFEST + '\n[provides]\npasses = "all"\n',
        CODE,
    ),
    "an exception without a reason": (
        "noreason",
        MANIFEST + '\n[[conformance.xfail]]\nop = "Square"\n',
        CODE,
    ),
    "a kernel for an op that nobody has": ("noop", MANIFEST, CODE.replace('"Square"', '"NoSuchOpAnywhere"')),
}


CLASH_OPS = """\
from graphdock.contracts import OpLibrary, hookimpl

@hookimpl
def register_ops(): return [OpLibrary("graphdock_{name}.opdefs")]
"""
#: What two packages state both, by the lower part of their manifests; and the one that graphdock itself states.
CLASHES = {
    "one op type": f'\n{MARKER}\n[ops]\nnames = [\n  "shop.Legs",\n]\n',
    "one device type": '\n[[devices]]\ntype = "shop"\n',
    "an alias that is the other one's type": '\n[[devices]]\ntype = "{name}dev"\naliases = ["shopalias"]\n',
    "one pass": '\n[provides]\npasses = ["shop"]\n',
    "one executor": '\n[provides]\nexecutors = ["shop"]\n',
    "one scheme": '\n[provides]\nsession_factories = ["shop"]\n',
    "one kind of resource": '\n[provides]\nresource_kinds = ["shop.Table"]\n',
    "one format of graphs": '\n[provides]\ngraph_formats = ["shop"]\n',
    "one format of checkpoints": '\n[provides]\ncheckpoint_formats = ["shop"]\n',
}


def clash_faults() -> list[Fault]:
    """Each a package with a twin, ``NAMEtwin``, that states the same."""
    found = []
    for number, (name, lower) in enumerate(CLASHES.items()):
        plugin = f"clash{number}"
        texts = {n: (MANIFEST + lower).replace("{name}", n) for n in (plugin, f"{plugin}twin")}
        files = {"plugin.py": CODE, "graphdock-plugin.toml": texts[plugin], "twin.toml": texts[f"{plugin}twin"]}
        found.append(Fault(name, "clash", "-", DOCTOR, text=plugin, files=files))
    own = (MANIFEST + f'\n{MARKER}\n[ops]\nnames = [\n  "Abs",\n]\n').replace("{name}", "clashown")
    found.append(
        Fault(
            "an op of graphdock's own",
            "clash",
            "-",
            DOCTOR,
            text="clashown",
            files={"plugin.py": CODE, "graphdock-plugin.toml": own},
        )
    )
    return found


def spec_faults() -> list[Fault]:
    found = []
    for name, (old, new) in SPECS.items():
        assert SPEC.count(old) == 1, (name, SPEC.count(old))
        found.append(Fault(name, "spec", "-", CHECK, text=SPEC.replace(old, new)))
    return found


def package_faults() -> list[Fault]:
    found = []
    for name, (plugin, manifest, code) in PACKAGES.items():
        files = {"plugin.py": code.replace("{name}", plugin)}
        if manifest is not None:
            files["graphdock-plugin.toml"] = manifest.replace("{name}", plugin)
        found.append(Fault(name, "manifest", "-", DOCTOR, text=plugin, files=files))
    return found
