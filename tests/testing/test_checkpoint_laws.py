"""The laws of forms of checkpoints: TensorFlow's holds them, and one without samples is untested."""

from __future__ import annotations

import pytest
from graphdock_testing.case import Untested
from graphdock_testing.checkpoint_laws import CHECKPOINT_LAWS, check_checkpoint_format
from graphdock_testing.conformance import Conformance

pytest.importorskip("google.protobuf")


@pytest.mark.parametrize("law", CHECKPOINT_LAWS)
def test_tensorflows_form_is_right(law):
    check_checkpoint_format("tensorflow v2", law)


def test_a_form_without_samples_is_untested():
    with pytest.raises(Untested, match="tensorflow v1 brings no samples"):
        check_checkpoint_format("tensorflow v1", "values")


def test_the_kit_of_a_package_holds_its_forms_to_them():
    kit = Conformance("tensorflow")
    assert "checkpoint format tensorflow v2" in kit.parts
    cases = [case.id for case in kit.cases("checkpoint format tensorflow v2")]
    assert cases == [f"checkpoint format tensorflow v2[{law}]" for law in CHECKPOINT_LAWS]
