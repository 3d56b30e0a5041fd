"""Write ``left_out.toml``: what the manifests of graphdock's plugins say that an installation without one of them lacks."""

from __future__ import annotations

import json
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence

from graphdock.plugin.endpoints import read_table
from graphdock.plugin.host import Host
from graphdock.plugin.left_out import TABLE

#: Table -> what stands above it.
_HEADS = {
    "packages": "import packages that other plugins import, and do not need for all of their names",
    "names": "first parts of names below tf that no other plugin has; of the standard library, without which no program runs, none",
    "ops": "names below tf.ops",
}
_FIRST = (
    "What each plugin of graphdock's whole wheel brings, for the error of an installation that leaves the plugin out.\n"
    "# Written by `make generate` (scripts/left_out.py), but for [packages]."
)


def tables() -> dict[str, dict[str, list[str]]]:
    """The kinds of names -> plugin -> the names. ``packages`` is written by hand, and stays."""
    host = Host()
    own = [s for s in host.plugins() if s.found.is_own and s.manifest is not None]
    stated = {s.name: s.manifest for s in own if s.manifest is not None}
    names = {s.name: sorted({name.partition(".")[0] for name in read_table(s)}) for s in own}
    count = Counter(name for found in names.values() for name in found)
    found = {
        "commands": {plugin: [c.name for c in m.commands] for plugin, m in stated.items()},
        "kernels": {s.name: sorted({k.op for k in s.kernel_rows}) for s in own if not stated[s.name].devices},
        "packages": tomllib.loads(TABLE.read_text(encoding="utf-8"))["packages"],
        "graph": {"tensorflow": [f.name for f in host.graph_formats.all()]},
        "checkpoint": {"tensorflow": [f.name for f in host.checkpoint_formats.all()]},
        "names": {plugin: [n for n in each if count[n] == 1] for plugin, each in names.items() if plugin != "std"},
        "ops": {s.name: sorted(n[4:] for n in read_table(s) if n.startswith("ops.")) for s in own if s.name != "std"},
    }
    return {kind: {plugin: each for plugin, each in sorted(rows.items()) if each} for kind, rows in found.items()}


def written(found: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """The text of the file, in lines of 120 characters."""
    parts = [f"# {_FIRST}\n"]
    for kind, rows in found.items():
        lines = [f"# {_HEADS[kind]}"] if kind in _HEADS else []
        lines.append(f"[{kind}]")
        for plugin, names in rows.items():
            words = ", ".join(map(json.dumps, names))
            line = f"{plugin} = [{words}]"
            if len(line) > 120:
                wrapped = textwrap.wrap(f"{words},", 118, break_long_words=False, break_on_hyphens=False)
                line = "\n".join([f"{plugin} = [", *(f"  {each}" for each in wrapped), "]"])
            lines.append(line)
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Write the file; with ``--check`` compare it, and return 1 where it is not what the manifests say."""
    text = written(tables())
    if "--check" not in arguments:
        TABLE.write_text(text, encoding="utf-8")
    elif text != TABLE.read_text(encoding="utf-8"):
        print(f"{TABLE.name} is not what the manifests say: run `make generate`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
