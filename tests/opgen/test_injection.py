"""What a spec, a file's name or a summary says stays text: wild texts render to the code that plain ones do."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from pathlib import Path

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.errors import InvalidArgumentError, OpSpecError
from graphdock_opgen.generate import plan
from graphdock_opgen.pages import INDEX, render_index, render_pages
from graphdock_opgen.stubs import plan_stubs

#: Texts that end what they stand in, if they can: docstring, string, comment, TOML value, HTML comment, list item, code span.
WILD = [
    'a"""+__import__("os").abort()+"""',
    "'+__import__('os').abort()+'",
    '"',
    "\\",
    "C:\\new\\u\\x\\N",
    "line\nimport os; os.abort()\n",
    "\r__import__('os').abort()\u2028__import__('os').abort()\x85",
    "{{ 1/0 }}{% include 'x' %}{0.__class__}%s",
    "--><script>alert(1)</script>",
    "` <b> | c ](javascript:d) ```",
]
#: Placeholders stand in each field that takes a text.
SPEC = """\
graphdock_opdef: 1
namespace: wild
ops:
- name: Both
  summary: SUMMARY
  doc: DOC
  math: MATH
  deprecated: DEPRECATED
  types: {T: {allow: floats, doc: TYPE}}
  attrs:
  - {name: mode, type: string, default: DEFAULT, one_of: [DEFAULT, up], doc: ATTR}
  - {name: modes, type: list(string), default: [DEFAULT]}
  - {name: shape, type: tensor, default: {KEY: [DEFAULT]}}
  inputs: [{name: x, dtype: T, shape: "[*S]", doc: INPUT}, {name: y, dtype: T, shape: "[*S]"}]
  outputs: [{name: z, dtype: T, shape: "[*S]", doc: OUTPUT}]
  dims: {where: [{check: "rank(S) < 5", error: ERROR}]}
  gradient: {inputs: {x: "where(mode == 'LITERAL1', g.z, g.z * cast(len('LITERAL0'), T))", y: {todo: TODO}}}
  tests:
    samples: [{x: {shape: [2], low: 1}, y: {value: [1.0, 2.0]}, note: NOTE}]
    error_samples: [{x: {shape: [2]}, y: {shape: [2]}, match: MATCH}]
"""
FIELDS = sorted(set(re.findall(r"\b[A-Z]{3,}[01]?\b", SPEC)))
IN_FORMULA = ("LITERAL0", "LITERAL1")


def quoted(text: str) -> str:
    """As a double-quoted scalar of YAML."""
    plain = lambda c: " " <= c <= "~" and c not in '"\\'  # noqa: E731
    return '"' + "".join(c if plain(c) else f"\\U{ord(c):08x}" for c in text) + '"'


def filled(**texts: str) -> str:
    out = SPEC
    for name in FIELDS:
        text = texts.get(name, name.lower())
        if name == "ERROR":
            text = text.replace("{", "").replace("}", "")
        if name == "MATCH":
            text = re.escape(text)
        if name in IN_FORMULA:
            out = out.replace(f"'{name}'", re.sub(r'(["\\])', r"\\\1", repr(text)))
        else:
            out = re.sub(rf"\b{name}\b", lambda _, t=text: quoted(t), out)
    return out


class _Masked(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.Constant("") if isinstance(node.value, str) else node


def bones(source: str) -> str:
    """The code of a module, whatever its strings say."""
    return ast.dump(_Masked().visit(ast.parse(source)))


def rendered(make, text: str) -> dict[str, str]:
    result = plan(make("wild_pkg", wild=text))
    assert result.errors == ()
    files = {p.name: t for p, t in result.files.items()} | render_pages(result.library)
    files[INDEX] = render_index(result.library)
    for addition in plan_stubs(result.library):
        files[addition.path.name] = addition.head + addition.text
    return files


@pytest.mark.parametrize("text", WILD)
def test_generated_code_is_the_same_whatever_texts_say(make, tmp_path_factory, text: str) -> None:
    want = rendered(make, filled())
    again = lambda name, **files: _elsewhere(tmp_path_factory.mktemp("again"), name, files)  # noqa: E731
    got = rendered(again, filled(**dict.fromkeys(FIELDS, text)))
    assert got.keys() == want.keys() and len(want) >= 9
    for name in want:
        if name.endswith((".py", ".pyi")):
            assert bones(got[name]) == bones(want[name]), name
            got[name].encode()
        else:
            _check_page(got[name], want[name])


def _elsewhere(folder: Path, name: str, files: dict[str, str]) -> Path:
    package = folder / name
    (package / "specs").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for stem, text in files.items():
        (package / "specs" / f"{stem}.yaml").write_text(text)
    return package


def _check_page(got: str, want: str) -> None:
    heads = lambda page: [line for line in page.splitlines() if line.startswith("#")]  # noqa: E731
    assert heads(got) == heads(want)
    rows = lambda page: [len(re.findall(r"(?<!\\)\|", line)) for line in page.splitlines() if line.startswith("|")]  # noqa: E731
    assert rows(got) == rows(want)
    body = "\n".join(line for line in got.splitlines()[1:] if not line.startswith("    "))
    outside = re.sub(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", body)
    assert not re.search(r"(?<!\\)<|(?<=\])\(javascript", outside), outside


@pytest.mark.parametrize("text", WILD)
def test_strings_in_formulas_are_those_of_the_spec(make, text: str) -> None:
    """Also where one string looks like what stands for another while the formula is printed."""
    source = rendered(make, filled(LITERAL0=text, LITERAL1="\u00f00 \u00f01 __string_0__"))["gradients.py"]
    strings = {n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert {text, "\u00f00 \u00f01 __string_0__"} <= strings


@pytest.mark.parametrize("text", [t for t in WILD if "/" not in t])
def test_a_file_of_any_name_loads_and_runs_nothing(tmp_path: Path, text: str) -> None:
    number = WILD.index(text)
    path = tmp_path / f"{text}.yaml"
    path.write_text(filled().replace("namespace: wild", f"namespace: wild{number}"))
    assert tf.load_op_library(path).ops == [f"wild{number}.Both"]


@pytest.mark.parametrize("text", [t for t in WILD if "/" not in t] + ["1", "a-b", "\u00fc"])
def test_in_a_package_a_file_has_the_name_of_a_module(make, text: str) -> None:
    package = make("wild_pkg", good=filled())
    os.rename(package / "specs" / "good.yaml", package / "specs" / f"{text}.yaml")
    (error,) = plan(package).errors
    assert isinstance(error, OpSpecError) and "no module can be called" in str(error)


@pytest.mark.parametrize("text", ["a-b", "class", "1x", 'a"""+b+"""'])
def test_a_package_has_the_name_of_one(make, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a Python package"):
        plan(make(text, good=filled()))


@pytest.mark.parametrize("field", ["name: mode", "name: x,", "name: z", "T: {allow"])
@pytest.mark.parametrize("name", ["class", "_ops", "a b", "x; import os", "\u00fc", "None", "x" * 101])
def test_names_are_names(make, field: str, name: str) -> None:
    begin, _, last = field.rpartition(" ") if field.startswith("name") else ("", "", "T")
    old, new = (
        (field, f'{begin} "{name}"{"," if last.endswith(",") else ""}') if begin else (field, f'"{name}": {{allow')
    )
    errors = plan(make("wild_pkg", wild=filled().replace(old, new, 1))).errors
    assert errors and all(isinstance(e, OpSpecError) for e in errors)


@pytest.mark.parametrize("flags", [(), ("--device", "--ops", "--pass", "--executor")], ids=["kernels", "all"])
@pytest.mark.parametrize("text", WILD)
@pytest.mark.sampled(2)
def test_a_new_package_says_its_summary_and_nothing_else(
    tmp_path: Path, text: str, flags: tuple[str, ...], monkeypatch
) -> None:
    monkeypatch.setattr("graphdock_opgen.new.opgen", lambda *args: None)
    for summary, folder in (("Plain", "plain"), (text, "wild")):
        made = CliRunner().invoke(
            cli, ["new", "plugin", "lab", *flags, "--summary", summary, "--dir", str(tmp_path / folder)]
        )
        assert made.exit_code == 0, made.output
    plain, wild = (tmp_path / n / "graphdock-lab" for n in ("plain", "wild"))
    files = sorted(p.relative_to(plain) for p in plain.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(wild) for p in wild.rglob("*") if p.is_file())
    for path in files:
        got, want = ((root / path).read_bytes().decode() for root in (wild, plain))
        if path.suffix == ".py":
            assert bones(got) == bones(want), path
        elif path.suffix == ".toml":
            table, key = ("project", "description") if path.name == "pyproject.toml" else ("plugin", "summary")
            mine, theirs = tomllib.loads(got), tomllib.loads(want)
            assert mine[table].pop(key) == text and theirs[table].pop(key) == "Plain" and mine == theirs
        elif path.name == "README.md":
            assert got.splitlines()[3:] == want.splitlines()[3:]
    package = ast.parse((wild / "src" / "graphdock_lab" / "__init__.py").read_bytes())
    assert ast.literal_eval(package.body[0].value) == text + "."
