"""The JSON Schema for editors: it takes every spec of the repository and refuses what opgen refuses by shape."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from graphdock_opgen.model import json_schema

from .test_spec_errors import GOOD

ROOT = Path(__file__).parents[2]
SPECS = sorted([*ROOT.glob("host/graphdock/ops/specs/*.yaml"), *ROOT.glob("plugins/*/*/specs/*.yaml")])


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
@pytest.mark.sampled(2)
def test_every_spec_of_the_repository_fits(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    errors = [f"{list(e.path)}: {e.message[:200]}" for e in validator.iter_errors(yaml.safe_load(path.read_text()))]
    assert errors == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("graphdock_opdef",), 2),
        (("ops", 0, "sumary"), "x"),
        (("ops", 0, "name"), "lower"),
        (("ops", 0, "inputs", 0, "arity"), "several"),
        (("ops", 0, "attrs", 0, "type"), "integer"),
        (("ops", 0, "gradient"), "nothing"),
        (("ops", 0, "gradient", "inputs", "w"), {"fun": "f"}),
        (("ops", 0, "tests", "gradcheck"), 1),
        (("ops", 0, "traits"), {"deterministic": "no"}),
    ],
)
def test_what_opgen_refuses(path: tuple, value: object, validator: jsonschema.Draft202012Validator) -> None:
    data = copy.deepcopy(yaml.safe_load(GOOD))
    assert list(validator.iter_errors(data)) == []
    place = data
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    assert list(validator.iter_errors(data))


def test_the_command_prints_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphdock_opgen", "schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    subprocess.run([*command, "--out", str(tmp_path / "s.json")], check=True)
    assert json.loads(printed) == json_schema()
    assert (tmp_path / "s.json").read_text() == printed
