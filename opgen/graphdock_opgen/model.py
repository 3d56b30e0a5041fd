"""Model of an OpDef file: frozen pydantic models, one per block of the schema.

These hold the file as written, after the checks that need no context. What needs context (names that must exist, one
gradient per input, ...) is checked in :mod:`graphdock_opgen.check`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NoReturn

from graphdock.contracts import op_table
from graphdock.contracts.opdef import ACCESSES, EFFECTS, VERBS
from graphdock.errors import did_you_mean
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from graphdock_opgen.fields import ONE_OR_MANY, Name, Number, Spec, choice, enum, kind_of, one_or_many
from graphdock_opgen.names import LONGEST
from graphdock_opgen.reader import Document, Path_

__all__ = [
    "ApiSpec",
    "ArgSpec",
    "ArityMany",
    "AttrSpec",
    "DimsSpec",
    "FileSpec",
    "GradientSpec",
    "OpSpec",
    "TestsSpec",
    "TypeSpec",
    "json_schema",
    "parse_file",
]

SCALAR_ATTR_TYPES = ("int", "float", "bool", "string", "type", "shape", "tensor", "func")
ATTR_TYPES = (*SCALAR_ATTR_TYPES, *(f"list({t})" for t in SCALAR_ATTR_TYPES))

#: dtypes by class, as ``allow`` may name them.
DTYPE_CLASSES: dict[str, tuple[str, ...]] = {
    name: getattr(op_table, name.upper())
    for name in ("ints", "index", "floats", "real", "complex", "inexact", "numeric", "any")
}


_GRADIENT_ENTRY = {
    "anyOf": [
        {"type": "string", "description": "A formula, or none."},
        *(
            {"type": "object", "properties": {k: {"type": "string"}}, "required": [k], "additionalProperties": False}
            for k in ("op", "fn", "todo")
        ),
    ]
}


class TypeSpec(Spec):
    """A type variable."""

    allow: Annotated[list[str], BeforeValidator(one_or_many), ONE_OR_MANY] = []
    default: str | None = None
    list_: bool = Field(default=False, alias="list")
    doc: str = ""


class AttrSpec(Spec):
    """An attribute. ``default`` is read with ``model_fields_set``: null is a value, absent means required."""

    name: Name
    type: Annotated[str, choice(*ATTR_TYPES), enum(ATTR_TYPES)]
    default: Any = None
    min: Number | None = None
    max: Number | None = None
    one_of: list[Any] = []
    doc: str = ""

    @property
    def required(self) -> bool:
        return "default" not in self.model_fields_set


class ArityMany(Spec):
    """``{count: N}``."""

    count: str


def _arity(value: Any) -> Any:
    if isinstance(value, str):
        if value not in ("one", "optional"):
            raise PydanticCustomError(
                "arity",
                f"expected one, optional or {{many: {{count: N}}}}; got {value!r}",
                {"hint": did_you_mean(value, ("one", "optional"))},
            )
        return {"kind": value}
    if isinstance(value, dict) and list(value) == ["many"]:
        return {"kind": "many", "many": value["many"]}
    raise PydanticCustomError("arity", f"expected one, optional or {{many: {{count: N}}}}; got {kind_of(value)}")


_ARITY = {
    "anyOf": [
        {"enum": ["one", "optional"]},
        {
            "type": "object",
            "properties": {
                "many": {"type": "object", "properties": {"count": {"type": "string"}}, "required": ["count"]}
            },
            "required": ["many"],
            "additionalProperties": False,
        },
    ]
}


class AritySpec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    kind: str = "one"
    many: ArityMany | None = None


class ArgSpec(Spec):
    """An input or output."""

    name: Name
    dtype: str
    shape: str | None = None
    arity: Annotated[AritySpec, BeforeValidator(_arity), WithJsonSchema(_ARITY)] = AritySpec()
    memory: Annotated[str, choice("device", "host"), enum(("device", "host"))] = "device"
    access: Annotated[str, choice(*ACCESSES), enum(ACCESSES)] | None = None
    resource: str | None = None
    grad: bool = True
    doc: str = ""


class WhereSpec(Spec):
    check: str
    error: str


class DimsSpec(Spec):
    let: dict[Name, str] = {}
    where: list[WhereSpec] = []


class TraitsSpec(Spec):
    """Flags, and how reproducible the result is."""

    pure: bool = False
    elementwise: bool = False
    commutative: bool = False
    stateful: bool = False
    host: bool = False
    view: bool = False
    reduction: bool = False
    aggregate: bool = False
    no_gradient: bool = False
    unstacks: bool = False
    keeps_zero: bool = False
    deterministic: Annotated[str, choice("bitwise", "tolerance"), enum(("bitwise", "tolerance"))] = "tolerance"

    def names(self) -> tuple[str, ...]:
        """The flags that are set, sorted; ``pure`` is the absence of ``stateful`` and is kept for readers."""
        return tuple(sorted(k for k, v in self if v is True))


class JointSpec(Spec):
    """The ops by which several products of two matrices that share the second one are computed as one."""

    join: Name
    cut: Name
    add: Name


class GradientSpec(Spec):
    """``let`` and one entry per input: a formula, ``none``, ``{op: X}``, ``{fn: f}`` or ``{todo: reason}``."""

    let: dict[Name, str] = {}
    inputs: Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": _GRADIENT_ENTRY})]


def _gradient(value: Any) -> Any:
    if value == "none":
        return {"inputs": {}}
    if isinstance(value, str):
        raise PydanticCustomError(
            "gradient",
            f"expected none or a mapping with the key inputs, got {value!r}",
            {"hint": did_you_mean(value, ["none"])},
        )
    return value


class GradcheckSpec(Spec):
    inputs: list[str] | None = None
    eps: Number | None = None
    rtol: Number | None = None
    atol: Number | None = None


def _gradcheck(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else {"inputs": []}
    return value


_GRADCHECK = {
    "anyOf": [
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {
                "inputs": {"type": "array", "items": {"type": "string"}},
                **{k: {"type": "number"} for k in ("eps", "rtol", "atol")},
            },
            "additionalProperties": False,
        },
    ]
}


class ToleranceSpec(Spec):
    rtol: Number = 0.0
    atol: Number = 0.0


class TestsSpec(Spec):
    samples: list[dict[str, Any]] = []
    error_samples: list[dict[str, Any]] = []
    tolerances: dict[str, ToleranceSpec] = {}
    gradcheck: Annotated[GradcheckSpec | None, BeforeValidator(_gradcheck), WithJsonSchema(_GRADCHECK)] = None


class EndpointSpec(Spec):
    name: str


class ApiSpec(Spec):
    endpoints: list[EndpointSpec] = []
    operator: Annotated[list[str], BeforeValidator(one_or_many), ONE_OR_MANY] = []
    returns: str | None = None
    rename: dict[str, Name] = {}
    default: dict[str, Any] = {}
    order: list[str] = []


_GRADIENT = {
    "anyOf": [
        {"const": "none"},
        {
            "type": "object",
            "properties": {
                "let": {"type": "object", "additionalProperties": {"type": "string"}},
                "inputs": {"type": "object", "additionalProperties": _GRADIENT_ENTRY},
            },
            "required": ["inputs"],
            "additionalProperties": False,
        },
    ]
}


class BodySpec(Spec):
    """Binding of the body in a func attribute: the input list that it takes, the output list that it gives."""

    takes: Name
    gives: Name | None = None


class RegionSpec(Spec):
    """Computation of the op inside of a region: formulas over terms of one iteration space."""

    let: dict[Name, str] = {}
    outputs: dict[Name, str] = {}
    writes: dict[Name, str] = {}
    space: list[Name] = []
    axes: dict[Name, str] = {}
    leading: Annotated[list[Name], BeforeValidator(one_or_many), ONE_OR_MANY] = []
    when: dict[Name, Any] = {}
    gathers: dict[Name, Name] = {}


class CostSpec(Spec):
    """Formulas of one run's cost; None where the default holds."""

    flops: str | None = None
    bytes: str | None = None

    def given(self) -> dict[str, str]:
        return {key: text for key, text in self if text is not None}


class OpSpec(Spec):
    """One op."""

    name: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=LONGEST)
    version: int = Field(default=1, ge=1)
    summary: str
    doc: str = ""
    math: str = ""
    types: dict[Name, TypeSpec] = {}
    attrs: list[AttrSpec] = []
    inputs: list[ArgSpec] = []
    outputs: list[ArgSpec] = []
    dims: DimsSpec = DimsSpec()
    shape_fn: str | None = None
    executes: Annotated[str, choice(*VERBS), enum(tuple(VERBS))] = "kernel"
    effects: list[Annotated[str, choice(*EFFECTS), enum(EFFECTS)]] = []
    bodies: dict[Name, BodySpec] = {}
    resource: str | None = None
    host_fn: str | None = None
    traits: TraitsSpec = TraitsSpec()
    aliases: dict[str, str] = {}
    scalar: str | None = None
    region: RegionSpec | None = None
    evaluate: str | None = None
    identity: Name | None = None
    neutral: dict[Name, int] = {}
    constants: dict[Name, dict[str, list[Name]]] = {}
    sum: Name | None = None
    joint: JointSpec | None = None
    stacked: str | None = None
    rows: Name | None = None
    cost: CostSpec = CostSpec()
    gradient: Annotated[GradientSpec | None, BeforeValidator(_gradient), WithJsonSchema(_GRADIENT)] = None
    decompose: list[str] = []
    reference: str | None = None
    tests: TestsSpec = TestsSpec()
    api: ApiSpec = ApiSpec()
    deprecated: str | None = None


class FileSpec(Spec):
    """One file. ``graphdock_opdef`` comes first and is 1."""

    graphdock_opdef: Literal[1]
    namespace: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=LONGEST)
    ops: list[OpSpec]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an OpDef file."""
    schema = FileSpec.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphdock OpDef file",
        **{k: v for k, v in schema.items() if k != "title"},
    }


_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def parse_file(document: Document) -> FileSpec:
    """The model of a file. Raises OpSpecError at the first fault."""
    data = document.data
    if not isinstance(data, dict) or next(iter(data), None) != "graphdock_opdef":
        document.fail(
            (), "an OpDef file begins with its schema version", hint="make 'graphdock_opdef: 1' the first line"
        )
    if data["graphdock_opdef"] != 1:
        document.fail(
            ("graphdock_opdef",),
            f"schema version {data['graphdock_opdef']!r} is not known here",
            hint="this opgen reads version 1",
        )
    try:
        return FileSpec.model_validate(data)
    except ValidationError as e:
        _fail(document, e.errors(include_url=False)[0])


def _fail(document: Document, error: Any) -> NoReturn:
    path: Path_ = ()
    for part in error["loc"]:
        if (*path, part) in document.values:
            path = (*path, part)
    context = error.get("ctx") or {}
    hint = context.get("hint")
    kind = error["type"]
    if kind == "unknown_key":
        hint = hint or f"known keys: {context['known']}"
        document.fail((*path, context["key"]), error["msg"], hint=hint, key=True)
    if kind == "missing":
        document.fail(path, f"key {error['loc'][-1]!r} is missing")
    where = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""
    if kind in _EXPECTED:
        document.fail(path, f"{where}expected {_EXPECTED[kind]}, got {kind_of(error['input'])}")
    document.fail(path, f"{where}{error['msg'][0].lower()}{error['msg'][1:]}", hint=hint)
