"""The generated code in the package says the same as the files that it was made from."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

PROTO = Path(__file__).parents[2] / "proto"


@pytest.mark.parametrize("name", ["externalscaler", "insight"])
def test_generated_code_is_up_to_date_with_its_proto_file(name: str, tmp_path: Path) -> None:
    out = tmp_path / "descriptor"
    source = PROTO / f"{name}.proto"
    assert protoc.main(["protoc", f"-I{PROTO}", f"--descriptor_set_out={out}", str(source)]) == 0
    (wanted,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    found = descriptor_pb2.FileDescriptorProto()
    import_module(f"scaler.serving.protocol.{name}_pb2").DESCRIPTOR.CopyToProto(found)
    found.name = wanted.name
    _forget_json_names(wanted.message_type)
    assert found == wanted, f"{source} changed: run `make proto`"
    stubs = import_module(f"scaler.serving.protocol.{name}_pb2_grpc")
    for service in wanted.service:
        methods = {method.name for method in service.method}
        assert methods <= set(vars(getattr(stubs, f"{service.name}Servicer")))


def _forget_json_names(messages: Iterable[descriptor_pb2.DescriptorProto]) -> None:
    """They follow from the fields' names, and only protoc's own descriptors hold them."""
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        _forget_json_names(message.nested_type)


def test_every_proto_file_has_its_generated_code() -> None:
    for source in PROTO.glob("*.proto"):
        import_module(f"scaler.serving.protocol.{source.stem}_pb2_grpc")
