"""Element types: one interned object per dtype, spelled as NumPy spells it.

This module does not import NumPy: :attr:`DType.np` does, at first use, so that commands that only list things stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdock.errors import DTypeError, did_you_mean

__all__ = [
    "ALIASES",
    "ALL",
    "DType",
    "as_dtype",
    "bfloat16",
    "bool_",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "resource",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]


class DType:
    """An element type.

    Attributes:
      name: ``"float32"``; also what a spec, a manifest and GraphDef write.
      kind: ``b`` bool, ``i`` signed, ``u`` unsigned, ``f`` floating, ``c`` complex, ``S`` string, ``R`` resource handle,
        ``V`` variant.
      size: bytes per element; 0 for string, resource and variant.
    """

    __slots__ = ("_np", "kind", "name", "size")

    def __init__(self, name: str, kind: str, size: int) -> None:
        self.name = name
        self.kind = kind
        self.size = size
        self._np: Any = None

    @property
    def np(self) -> Any:
        """The ``numpy.dtype``; bfloat16 is ml_dtypes', string is object (bytes), resource and variant are object."""
        if self._np is None:
            import numpy

            if self.name == "bfloat16":
                import ml_dtypes

                self._np = numpy.dtype(ml_dtypes.bfloat16)
            elif self.kind in "SRV":
                self._np = numpy.dtype(object)
            else:
                self._np = numpy.dtype(self.name)
        return self._np

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type (TensorFlow's name)."""
        return self.np.type

    @property
    def base_dtype(self) -> DType:
        """Itself: TensorFlow's reference dtypes, whose base this is there, do not exist here."""
        return self

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_differentiable(self) -> bool:
        """Return whether gradients reach tensors of this type: floating and complex ones."""
        return self.kind in "fc"

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "u"

    @property
    def is_numpy_compatible(self) -> bool:
        """Return whether NumPy has arrays of it: not of resource handles and variants."""
        return self.kind not in "RV"

    @property
    def real_dtype(self) -> DType:
        """The dtype of a complex one's parts; of any other itself."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def limits(self) -> tuple[Any, Any]:
        """Smallest and largest value: of an integer its own, of any other 0 and 1, as TensorFlow's images use them."""
        return (self.min, self.max) if self.is_integer else (0, 1)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether ``other`` is the same dtype; TensorFlow's reference dtypes do not exist here."""
        return as_dtype(other) is self

    @property
    def min(self) -> Any:
        """Smallest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """Largest finite value."""
        return self._limits().max

    def _limits(self) -> Any:
        import numpy

        if self.is_integer:
            return numpy.iinfo(self.np)
        if self.name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.finfo(self.np)
        if self.is_floating:
            return numpy.finfo(self.np)
        raise DTypeError(f"{self.name} has no smallest or largest value")

    @property
    def accumulator(self) -> DType:
        """Return what sums and products of this type are accumulated in: float32 for float16 and bfloat16, else itself."""
        return float32 if self.name in ("float16", "bfloat16") else self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except DTypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


bool_ = DType("bool", "b", 1)
int8 = DType("int8", "i", 1)
int16 = DType("int16", "i", 2)
int32 = DType("int32", "i", 4)
int64 = DType("int64", "i", 8)
uint8 = DType("uint8", "u", 1)
uint16 = DType("uint16", "u", 2)
uint32 = DType("uint32", "u", 4)
uint64 = DType("uint64", "u", 8)
float16 = DType("float16", "f", 2)
bfloat16 = DType("bfloat16", "f", 2)
float32 = DType("float32", "f", 4)
float64 = DType("float64", "f", 8)
complex64 = DType("complex64", "c", 8)
complex128 = DType("complex128", "c", 16)
string = DType("string", "S", 0)
resource = DType("resource", "R", 0)
#: What is no tensor: a history (the values of one tensor in a loop's iterations), or what a branch holds, if it was taken.
variant = DType("variant", "V", 0)

ALL: dict[str, DType] = {
    d.name: d
    for d in (
        bool_,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64,
        complex128,
        string,
        resource,
        variant,
    )
}

half = float16
double = float64
#: TensorFlow's other names of dtypes, in text.
ALIASES: dict[str, DType] = {"half": half, "float": float32, "double": double}

_PYTHON = {bool: bool_, int: int32, float: float32, complex: complex128, str: string, bytes: string}


def as_dtype(value: Any) -> DType:
    """The DType for a DType, a name, a NumPy dtype or scalar type, or a Python type.

    Python's ``int`` means int32 and ``float`` means float32, as in TensorFlow.

    Raises:
      DTypeError: nothing of that name; the nearest name is suggested.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = ALL.get(value) or ALIASES.get(value)
        if found is None:
            raise DTypeError(f"no dtype named {value!r}", hint=did_you_mean(value, ALL))
        return found
    if value is None:
        raise DTypeError("None is not a dtype", expected="one of " + ", ".join(ALL))
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    import numpy

    try:
        np_dtype = numpy.dtype(value)
    except TypeError:
        raise DTypeError(f"{value!r} is not a dtype", expected="one of " + ", ".join(ALL)) from None
    if np_dtype.kind in "OSU":
        return string
    found = ALL.get(np_dtype.name)
    if found is None:
        raise DTypeError(f"graphdock has no dtype for NumPy's {np_dtype.name!r}", expected="one of " + ", ".join(ALL))
    return found


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # ``tf.dtypes.cast`` and its like, which plugins publish
