"""Counts of the sources against the bars in ``budget.toml``; exit 1 where one is above its bar.

Lines are those of Python files, generated ones included; the generated ones are counted once more by themselves, as ``ruff format``
leaves them. A circle of imports counts imports inside functions; those for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Modules that a circle of imports may have.
LARGEST_CIRCLE = 3
#: The seeds' program, as far as its first step.
FIRST_STEP = """
import sys
import graphdock as tf

x = tf.placeholder(tf.float32, [None, 4])
w = tf.Variable(tf.ones([4, 2]))
loss = tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits(labels=tf.ones([3, 2]), logits=tf.nn.relu(tf.matmul(x, w))))
train = tf.train.AdagradOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run([train, loss], {x: [[1.0, 2.0, 3.0, 4.0]] * 3})
print(sum(name.partition(".")[0].startswith("graphdock") for name in sys.modules))
"""


def sources(folder: Path) -> Iterator[Path]:
    """The Python files of a room, without its tests."""
    for path in sorted(folder.rglob("*.py")):
        if "tests" not in path.relative_to(folder).parts:
            yield path


def lines(paths: Iterator[Path]) -> int:
    """Lines of files."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def generated() -> list[Path]:
    """The Python files that opgen writes for the host and std."""
    return sorted(p for room in ("host", "plugins") for p in (ROOT / room).rglob("*.py") if "_gen" in p.parts)


def formatted_lines(path: Path) -> int:
    """Lines of a file as ``ruff format`` leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"]
    done = subprocess.run(command, input=path.read_text(), capture_output=True, text=True, check=True)
    return len(done.stdout.splitlines())


def nodes(path: Path) -> int:
    """AST nodes of a file."""
    return sum(1 for _ in ast.walk(ast.parse(path.read_text())))


def _packages() -> dict[str, Path]:
    found = {"graphdock": ROOT / "host"}
    for base in (ROOT / "opgen", ROOT / "templates", *(ROOT / "plugins").iterdir()):
        found.update({p.name: base for p in base.glob("graphdock_*") if p.is_dir()})
    return found


def imports() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports, inside functions too."""
    modules = {}
    for package, base in _packages().items():
        for path in sources(base / package):
            parts = path.relative_to(base).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path

    def known(name: str) -> str:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name

    def walk(statements: Iterable[ast.AST]) -> Iterator[str]:
        for each in statements:
            if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.dump(each.test):
                continue
            if isinstance(each, ast.Import):
                yield from (alias.name for alias in each.names)
            elif isinstance(each, ast.ImportFrom) and each.module:
                for alias in each.names:
                    inner = f"{each.module}.{alias.name}"
                    yield inner if inner in modules else each.module
            for part in ("body", "handlers", "orelse", "finalbody", "cases"):
                yield from walk(getattr(each, part, ()))

    found = {}
    for name, path in modules.items():
        targets = {known(target) for target in walk(ast.parse(path.read_text()).body)}
        found[name] = targets - {"", name, "graphdock"}  # the façade imports what is asked of it
    return found


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, the largest first (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found = []
    for start in graph:
        work = [(start, iter(graph[start]))] if start not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                path.append(node)
            for target in rest:
                if target not in index:
                    work.append((target, iter(graph[target])))
                    break
                if target in path:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = path.index(node)
                    found.append(sorted(path[at:]))
                    del path[at:]
    return sorted([group for group in found if len(group) > 1], key=len, reverse=True)


def counts() -> dict[str, int]:
    """Every count that has a bar, but of modules loaded."""
    files = generated()
    made = {"host": lines(sources(ROOT / "host")), "opgen": lines(sources(ROOT / "opgen"))}
    for folder in sorted((ROOT / "plugins").iterdir()):
        if folder.is_dir():
            made[f"plugins/{folder.name}"] = lines(sources(folder))
    made["generated lines"] = sum(map(formatted_lines, files))
    made["generated nodes"] = sum(map(nodes, files))
    return made


def modules_of_a_first_session() -> int:
    """Modules of ours that the seeds' program has loaded after its first steps."""
    done = subprocess.run([sys.executable, "-c", FIRST_STEP], capture_output=True, text=True, check=True, cwd=ROOT)
    return int(done.stdout)


def main() -> int:
    """Print every count with its bar, and what is above."""
    bars = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    found = counts() | {"modules of a first session": modules_of_a_first_session()}
    failed = False
    for name in sorted({*bars, *found}):
        bar, count = bars.get(name), found.get(name)
        wrong = "no bar" if bar is None else "nothing is counted" if count is None else "above" if count > bar else ""
        failed = failed or bool(wrong)
        print(f"{name:28} {'-' if count is None else count:>8} of {'-' if bar is None else bar:>8}  {wrong}")
    for circle in circles(imports()):
        if len(circle) > LARGEST_CIRCLE:
            failed = True
            print(f"a circle of {len(circle)} modules imports itself: {', '.join(circle)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
