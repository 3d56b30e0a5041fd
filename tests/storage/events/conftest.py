"""Messages of the library protobuf with the fields that ours name: what bytes are compared with."""

from __future__ import annotations

import pytest


def _describe(file, kind, done):
    name = kind.__qualname__.replace(".", "_")
    if name in done:
        return
    done.add(name)
    from google.protobuf import descriptor_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    for field in kind._fields.values():
        if field.scalar is None:
            _describe(file, field.message, done)
    message = file.message_type.add(name=name)
    groups = {}
    for field in kind._fields.values():
        made = message.field.add(name=field.name, number=field.number)
        made.label = kinds.LABEL_REPEATED if field.repeated else kinds.LABEL_OPTIONAL
        if field.scalar is None:
            made.type, made.type_name = kinds.TYPE_MESSAGE, ".events." + field.message.__qualname__.replace(".", "_")
        else:
            made.type = kinds.Type.Value("TYPE_" + ("INT32" if field.kind == "enum" else field.kind.upper()))
        if field.oneof:
            if field.oneof not in groups:
                groups[field.oneof] = len(message.oneof_decl)
                message.oneof_decl.add(name=field.oneof)
            made.oneof_index = groups[field.oneof]


@pytest.fixture(scope="session")
def protobuf_of():
    """The library's class for a class of ours."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    files = {}

    def make(kind):
        if kind not in files:
            file = descriptor_pb2.FileDescriptorProto(name=f"{kind.__qualname__}.proto", syntax="proto3")
            file.package = "events"
            done = set()
            _describe(file, kind, done)
            pool = descriptor_pool.DescriptorPool()
            pool.Add(file)
            name = "events." + kind.__qualname__.replace(".", "_")
            files[kind] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        return files[kind]

    return make
