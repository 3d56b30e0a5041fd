"""What C is given: every kind of attribute and argument, read back by a kernel that says it in its message."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

TELL = """
#include <string.h>
static int at;
static void tensor(char *out, const gd_tensor *t) {
    at += sprintf(out + at, "%d:%d[", t->dtype, t->rank);
    for (int i = 0; i < t->rank; i++) at += sprintf(out + at, "%d/%d ", (int)t->shape[i], (int)t->strides[i]);
    at += sprintf(out + at, "]%d ", (int)t->size);
}
static void attr(char *out, const gd_attr *a) {
    at += sprintf(out + at, "%d%s%d(", a->kind, a->is_list ? "*" : "=", (int)a->count);
    for (int64_t i = 0; i < a->count; i++) {
        if (a->ints) at += sprintf(out + at, "%lld ", (long long)a->ints[i]);
        if (a->floats) at += sprintf(out + at, "%g ", a->floats[i]);
        if (a->texts) at += sprintf(out + at, "%s/%d ", a->texts[i].data, (int)a->texts[i].size);
    }
    at += sprintf(out + at, ") ");
}
GRAPHDOCK_KERNEL(kernel) {
    char *out = call->message;
    at = 0;
    for (int i = 0; i < call->input_count; i++) tensor(out, &call->inputs[i]);
    for (int i = 0; i < call->output_count; i++) tensor(out, &call->outputs[i]);
    at += sprintf(out + at, "| ");
    for (int i = 0; i < call->attr_count; i++) attr(out, &call->attrs[i]);
    at += sprintf(out + at, "| begins %d %d %d, %d %d | %d %d %d", call->input_begin[0], call->input_begin[1],
                  call->input_begin[2], call->output_begin[0], call->output_begin[1], (int)call->abi_version,
                  call->call_size == sizeof(gd_call), (int)strlen(call->attrs[5].texts[0].data));
    return GD_INVALID_ARGUMENT;
}
"""


@pytest.fixture(scope="module")
def told(lab):
    config = lab.pin(TELL, "lab.Tell", layout="strided")

    def tell(x, rest=(), **attrs):
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            fed = tf.placeholder(x.dtype, x.shape)
            y = lab.ops.tell(tf.transpose(fed) if x.ndim > 1 else fed, [tf.constant(r) for r in rest], **attrs)
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(y, {fed: x})
        return caught.value.message.removeprefix("lab.Tell: ")

    return tell


def test_tensors_have_their_dtype_shape_strides_and_place(told):
    said = told(np.zeros((3, 2)), [np.float32(1), np.zeros((0, 4), np.int64)])
    tensors, attrs, rest = said.split("| ", 2)
    # a transposed input keeps its strides: 13 is float64, 12 float32, 5 int64
    assert tensors == "13:2[2/8 3/16 ]6 12:0[]1 5:2[0/32 4/8 ]0 13:2[2/24 3/8 ]6 "
    assert attrs.startswith("5=1(13 ) 5*2(12 5 ) ")
    assert rest == "begins 0 1 3, 0 1 | 1 1 2"


def test_attributes_of_every_kind(told):
    attrs = told(np.zeros(2, np.float32)).split("| ")[1]
    assert attrs == (
        "5=1(12 ) 5*0() 1=1(3 ) 2=1(0.5 ) 3=1(1 ) 4=1(é/2 ) 6=2(2 3 ) 1*0() 2*2(1.5 -2 ) 4*2(a/1 bc/2 ) 5=1(13 ) "
    )
    attrs = told(
        np.zeros(2, np.int32),
        count=-7,
        flag=False,
        word="",
        dims=[None, 4],
        ints=[5],
        floats=[],
        words=[],
        kind=tf.string,
    ).split("| ")[1]
    assert attrs == "5=1(4 ) 5*0() 1=1(-7 ) 2=1(0.5 ) 3=1(0 ) 4=1(/0 ) 6=2(-1 4 ) 1*1(5 ) 2*0() 4*0() 5=1(0 ) "


def test_a_shape_of_unknown_rank_has_no_count(told):
    assert "6=-1() " in told(np.zeros(2, np.float32), dims=tf.TensorShape(None))


def test_an_attribute_beyond_64_bits_is_refused_by_name(lab):
    from graphdock_native.call import attributes_problem

    class Node:
        opdef = tf.default_host().ops.get("lab.Wait")
        attrs = {"address": 2**63}

    assert attributes_problem(Node) == f"its attribute address={2**63} has no place in 64 bits"
    Node.attrs = {"address": -(2**63)}
    assert attributes_problem(Node) is None


STATUS = """
GRAPHDOCK_KERNEL(kernel) {
    const int32_t status = ((const int32_t *)call->inputs[0].data)[0];
    return status < 100 ? status : gd_fail(call, status - 100, "it says \\"%s\\" and 100%%", "\\xff");
}
"""


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (103, tf.errors.InvalidArgumentError, 'lab.Wait: it says "\ufffd" and 100%'),
        (108, tf.errors.ResourceExhaustedError, 'lab.Wait: it says "\ufffd" and 100%'),
        (112, tf.errors.UnimplementedError, 'lab.Wait: it says "\ufffd" and 100%'),
        (11, tf.errors.OutOfRangeError, "the native kernel kernel of lab.Wait failed and gave no reason"),
        (77, tf.errors.InternalError, "the native kernel kernel of lab.Wait returned the unknown status 77"),
        (177, tf.errors.InternalError, 'returned the unknown status 77: it says "\ufffd" and 100%'),
    ],
)
def test_a_status_becomes_its_error_with_the_node_and_the_line(lab, status, error, message):
    config = lab.pin(STATUS, "lab.Wait")
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        x = tf.placeholder(tf.int32, [])
        y = lab.ops.wait(x, address=0, name="waiting")
        with pytest.raises(error) as caught:
            session.run(y, {x: status})
        assert type(caught.value) is error and message in caught.value.message
        assert caught.value.op_name == "waiting" and "test_call.py" in caught.value.site
        with pytest.raises(tf.errors.OutOfRangeError, match="gave no reason"):
            session.run(y, {x: 11})  # a message is of one call
