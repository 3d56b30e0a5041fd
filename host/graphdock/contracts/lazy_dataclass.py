"""Dataclasses whose fields are looked at, and whose methods are compiled, when somebody asks for them.

``dataclasses.dataclass`` looks at each field and compiles up to six functions of each class when its module is imported, and most
are never called: that took a third of the time from the import to a first result. ``lazy_dataclass`` makes the same class; the
standard library finds its fields when somebody asks for them, and makes ``__repr__`` at its first call. Comparisons and
``__hash__`` are made at theirs, of the fields' values. A loop binds the arguments of the first instances; the class that has many
gets a compiled ``__init__`` (docs/adr/0109).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["changed", "defaults_of", "lazy_dataclass"]

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import dataclass as lazy_dataclass
    from dataclasses import replace as changed
    from typing import Any

    def defaults_of(cls: type) -> Mapping[str, Any]: ...
else:
    import inspect
    import operator
    from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, make_dataclass
    from types import SimpleNamespace

    _ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
    #: Instances of a class that are made before its ``__init__`` is compiled, which takes as long as to bind some 40.
    _FEW = 24
    _set_field = object.__setattr__

    def lazy_dataclass(cls=None, /, *, frozen=False, eq=True, order=False, slots=False, kw_only=False):
        """A decorator as ``dataclasses.dataclass``, for modules that a first session loads.

        A dataclass that inherits from a lazy one is lazy as well. There is no ``InitVar``, and annotations are texts. Any thread
        may make the first call.
        """

        def wrap(cls):
            own = dict(cls.__dict__)
            names = [name for name, kind in cls.__annotations__.items() if not _is_of_class(kind)]
            given = {name: own.get(name, MISSING) for name in names}
            made = _with_slots(cls, own, names) if slots else _without_fields(cls, given)
            methods = ["__repr__", *(("__eq__",) if eq else ()), *(_ORDER if order else ())]
            if eq and frozen:
                methods.append("__hash__")
            elif eq and "__hash__" not in own:
                made.__hash__ = None
            made._lazily = frozen, kw_only, given
            made.__dataclass_params__ = _PARAMS
            made.__dataclass_fields__ = _Late(made, "__dataclass_fields__", _fields)
            made.__match_args__ = _Late(made, "__match_args__", _match_args)
            made.__signature__ = _Signature()
            if "__init__" not in own:
                made.__init__ = _binder(made)
            for name in methods:
                if name not in own:
                    setattr(made, name, _stub(made, name))
            if frozen:
                made.__setattr__, made.__delattr__ = _set, _delete
                if slots:
                    made.__getstate__, made.__setstate__ = _state, _restore
            return made

        return wrap if cls is None else wrap(cls)

    #: What a dataclass that inherits from a lazy one asks of it.
    _PARAMS = SimpleNamespace(frozen=False)

    def _is_of_class(kind):
        return str(kind).removeprefix("typing.").startswith("ClassVar")

    def _with_slots(cls, own, names):
        """The class again, with slots for its fields."""
        taken = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
        space = {name: value for name, value in own.items() if name not in (*names, "__dict__", "__weakref__")}
        space["__slots__"] = tuple([name for name in names if name not in taken])
        made = type(cls)(cls.__name__, cls.__bases__, space)
        made.__qualname__ = cls.__qualname__
        return made

    def _without_fields(cls, given):
        """The class with plain defaults."""
        for name, value in given.items():
            if isinstance(value, Field):
                if value.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)
        return cls

    def changed(one, **values):
        """As ``dataclasses.replace``, which has the standard library find the fields."""
        kept = {name: getattr(one, name) for name, facts in _arguments(type(one)).items() if facts[2]}
        return type(one)(**{**kept, **values})

    def defaults_of(cls):
        """Name of each field -> its default, made by its factory where it has one; without the library's fields."""
        found = _arguments(cls).items()
        return {name: default if factory is MISSING else factory() for name, (default, factory, *_) in found}

    class _Late:
        """Attribute of a class that is made when it is first asked for."""

        def __init__(self, cls, name, make):
            self.of = cls, name, make

        def __get__(self, instance, owner):
            cls, name, make = self.of
            value = make(cls)
            setattr(cls, name, value)
            return value

    def _fields(cls):
        """The fields, by the standard library, those of bases first."""
        _, kw_only, given = cls._lazily
        found = {}
        for base in reversed(cls.__mro__[1:]):
            found |= getattr(base, "__dataclass_fields__", {})
        space = {name: value for name, value in given.items() if value is not MISSING}
        # without a docstring it would make one, of the signature
        space |= {"__module__": cls.__module__, "__doc__": "Fields.", "__annotations__": cls.__annotations__}
        own = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(type(cls.__name__, (), space))
        return found | own.__dataclass_fields__

    def _match_args(cls):
        return tuple([f.name for f in fields(cls) if f.init and not f.kw_only])

    def _arguments(cls):
        """Name -> default, factory, whether ``__init__`` takes it and whether by keyword alone, of each field; then whether it is
        compared, and hashed."""
        found = cls.__dict__.get("_bound")
        if found is not None:
            return found
        found = {}
        for each in reversed(cls.__mro__):
            space = each.__dict__
            if "_lazily" not in space:
                for f in space.get("__dataclass_fields__", {}).values():
                    found[f.name] = f.default, f.default_factory, f.init, f.kw_only, f.compare, f.hash
                continue
            _, kw_only, given = space["_lazily"]
            for name, value in given.items():
                if isinstance(value, Field):
                    by_keyword = kw_only if value.kw_only is MISSING else value.kw_only
                    facts = value.default, value.default_factory, value.init, by_keyword, value.compare, value.hash
                    found[name] = facts
                else:
                    found[name] = value, MISSING, True, kw_only, True, None
        cls._bound = found
        return found

    def _binder(cls):
        """The ``__init__`` of a class until it is compiled."""
        made, known = 0, None

        def method(self, *args, **kwargs):
            nonlocal made, known
            if known is None:
                arguments = _arguments(cls)
                taken = {name for name, facts in arguments.items() if facts[2]}
                needed = {n for n in taken if arguments[n][0] is arguments[n][1] is MISSING}
                factories = [(n, facts[1]) for n, facts in arguments.items() if facts[1] is not MISSING]
                constant = {n: facts[0] for n, facts in arguments.items() if facts[0] is not MISSING}
                known = (
                    taken,
                    needed,
                    [name for name in arguments if name in taken and not arguments[name][3]],
                    constant,
                    factories,
                )
            made += 1
            taken, needed, positional, constant, factories = known
            given = dict(zip(positional, args, strict=False))
            fits = len(args) <= len(positional) and given.keys().isdisjoint(kwargs)
            given.update(kwargs)
            if made > _FEW or not fits or not needed <= given.keys() <= taken:
                _compiled_init(cls)(self, *args, **kwargs)
                return
            put = _set_field if cls._lazily[0] else setattr
            for name, factory in factories:
                if name not in given:
                    given[name] = factory()
            for name, value in {**constant, **given}.items():
                put(self, name, value)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()

        return _named(method, cls, "__init__")

    def _named(method, cls, name):
        method.__name__, method.__qualname__, method.of = name, f"{cls.__qualname__}.{name}", cls
        return method

    class _Factory:
        """The default of an argument whose field has a factory."""

        def __repr__(self):
            return "<factory>"

    _FACTORY = _Factory()

    def _compiled_init(cls):
        """The ``__init__`` of a class, compiled, which it has from now on."""
        space = {"_set_field": _set_field, "_FACTORY": _FACTORY}
        parameters, keywords, body = ["self"], [], []
        arguments = _arguments(cls)
        for name, (default, factory, init, by_keyword, *_) in arguments.items():
            default_text, value = "", name
            if factory is not MISSING:
                space[f"_make_{name}"] = factory
                default_text, value = "=_FACTORY", f"_make_{name}() if {name} is _FACTORY else {name}"
            elif default is not MISSING:
                space[f"_default_{name}"] = default
                default_text = f"=_default_{name}"
            if init:
                (keywords if by_keyword else parameters).append(name + default_text)
            elif factory is not MISSING:
                value = f"_make_{name}()"
            elif default is not MISSING:
                value = f"_default_{name}"
            else:
                continue
            body.append(f"_set_field(self, {name!r}, {value})" if cls._lazily[0] else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        head = ", ".join([*parameters, *(("*", *keywords) if keywords else ())])
        text = f"def __init__({head}):\n  " + "\n  ".join(body or ["pass"])
        # not a text: Python would end with an interrupt's exit code where one comes here, though the program goes on
        exec(compile(text, "<lazy dataclass>", "exec"), space)
        method = space["__init__"]
        method.__qualname__ = f"{cls.__qualname__}.__init__"
        types = [each.__dict__.get("__annotations__", {}) for each in reversed(cls.__mro__)]
        kinds = {name: kind for said in types for name, kind in said.items()}
        method.__annotations__ = {name: kinds[name] for name, facts in arguments.items() if facts[2]} | {"return": None}
        cls.__init__ = method
        return method

    def _stub(cls, name):
        """The method of that name until it is called."""

        def method(self, *args, **kwargs):
            return _compiled(cls, name)(self, *args, **kwargs)

        return _named(method, cls, name)

    def _compiled(cls, name):
        """The method of that name, which the class has from now on."""
        if name == "__repr__":
            like = [(f.name, f.type, field(default=None, repr=f.repr)) for f in fields(cls)]
            twin = make_dataclass(cls.__name__, like, namespace={"__doc__": "One."}, init=False, eq=False)
            method = twin.__repr__
            method.__qualname__ = f"{cls.__qualname__}.{name}"
        else:
            method = _named(_hash(cls) if name == "__hash__" else _comparison(cls, getattr(operator, name)), cls, name)
        setattr(cls, name, method)
        return method

    def _comparison(cls, of_values):
        """A method that compares two of one class by their values."""
        values = _values([name for name, (*_, compare, _) in _arguments(cls).items() if compare])

        def method(self, other):
            return of_values(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

        return method

    def _hash(cls):
        """The hash of the values that say that they count, or that are compared and say nothing."""
        facts = _arguments(cls).items()
        values = _values([name for name, (*_, compare, hashed) in facts if (compare if hashed is None else hashed)])
        return lambda self: hash(values(self))

    def _values(names):
        """Function that gives the values of fields as a tuple."""
        if len(names) > 1:
            return operator.attrgetter(*names)
        return lambda self: tuple([getattr(self, name) for name in names])

    class _Signature:
        """``__signature__`` of a class whose ``__init__`` may not be compiled yet."""

        def __get__(self, instance, owner):
            init = owner.__init__
            found = inspect.signature(_compiled_init(init.of) if hasattr(init, "of") else init)
            return found.replace(parameters=list(found.parameters.values())[1:])

    def _set(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _delete(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self):
        return [getattr(self, f.name) for f in fields(self)]

    def _restore(self, state):
        for f, value in zip(fields(self), state, strict=True):
            _set_field(self, f.name, value)
