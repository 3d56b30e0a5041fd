"""Dataclasses whose methods are compiled when one of them is first called.

``dataclasses.dataclass`` compiles up to six functions of each class when its module is imported, and most are never called:
that took a third of the time from the import to a first result. ``lazy_dataclass`` makes the same class with the same fields, and
lets the standard library make its methods at the first call of ``__init__``, ``__repr__``, a comparison or ``__hash__``
(docs/adr/0109).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["lazy_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as lazy_dataclass
else:
    import inspect
    from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass

    _ORDER = ("__lt__", "__le__", "__gt__", "__ge__")

    def lazy_dataclass(cls=None, /, *, frozen=False, eq=True, order=False, slots=False, kw_only=False):
        """A decorator as ``dataclasses.dataclass``, for what is made seldom enough that a first call of 1 ms does not matter.

        A dataclass that inherits from a lazy one is lazy as well; there is no ``InitVar``. Any thread may make the first call.
        """

        def wrap(cls):
            own = set(cls.__dict__)
            made = dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            names = ["__init__", "__repr__", *(("__eq__",) if eq else ()), *(_ORDER if order else ())]
            if eq and frozen:
                names.append("__hash__")
            elif eq and "__hash__" not in own:
                made.__hash__ = None
            names = [name for name in names if name not in own]
            made._lazily = frozen, slots
            for name in names:
                setattr(made, name, _stub(made, name))
            if frozen:
                made.__setattr__, made.__delattr__ = _set, _delete
                if slots:
                    made.__getstate__, made.__setstate__ = _state, _restore
            made.__signature__ = _Signature()
            return made

        return wrap if cls is None else wrap(cls)

    def _stub(cls, name):
        """The method of that name until it is called."""

        def method(self, *args, **kwargs):
            return _compiled(cls, name)(self, *args, **kwargs)

        method.__name__, method.__qualname__, method.of = name, f"{cls.__qualname__}.{name}", cls
        return method

    def _compiled(cls, name):
        """Let the standard library make a class of the same fields with this method, and take it."""
        frozen, slots = cls._lazily
        like = [(f.name, f.type, _like(f)) for f in fields(cls)]
        said = {"__doc__": cls.__doc__}
        if hasattr(cls, "__post_init__"):
            said["__post_init__"] = cls.__post_init__
        init, compares = name == "__init__", name in ("__eq__", "__hash__", *_ORDER)
        twin = make_dataclass(
            cls.__name__,
            like,
            namespace=said,
            init=init,
            repr=name == "__repr__",
            eq=compares,
            order=name in _ORDER,
            frozen=frozen and (init or compares),
            slots=slots and init,
        )
        method = getattr(twin, name)
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method

    def _like(f):
        """A field of the same facts."""
        names = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
        return field(**{name: getattr(f, name) for name in names})

    class _Signature:
        """``__signature__`` of a class whose ``__init__`` may not be compiled yet."""

        def __get__(self, instance, owner):
            init = owner.__init__
            found = inspect.signature(_compiled(init.of, "__init__") if hasattr(init, "of") else init)
            return found.replace(parameters=list(found.parameters.values())[1:])

    def _set(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _delete(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self):
        return [getattr(self, f.name) for f in fields(self)]

    def _restore(self, state):
        for f, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, f.name, value)
