"""apply_op: how Python values, dtypes, lists and attributes become the inputs of an operation."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import DTypeError, InvalidArgumentError, OutOfRangeError, UnknownOpError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (1.0, "float32"),
        (True, "bool"),
        (2**40, "int64"),
        ("text", "string"),
        ([1, 2.5], "float32"),
        (np.float64(1), "float64"),
        (np.arange(3), "int64"),
        (np.zeros(2, np.float16), "float16"),
        ([], "float32"),
    ],
)
def test_dtypes_of_python_values_and_arrays(value, dtype):
    assert tf.constant(value).dtype.name == dtype


@pytest.mark.parametrize("dtype", ["int64", "float16", "float64", "uint8"])
def test_python_numbers_take_the_other_operands_dtype(dtype):
    x = tf.placeholder(dtype, [2])
    assert (x + 1).dtype == dtype and (1 + x).dtype == dtype and tf.add(x, 1).dtype == dtype
    assert ops.apply_op("Add", x=[1, 2], y=x).dtype == dtype


def test_there_is_no_promotion_between_tensors():
    x, y = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.float64, [], name="y")
    with pytest.raises(DTypeError) as info:
        x + y
    assert (info.value.expected, info.value.got) == ("float32", "float64")
    assert "tf.cast" in info.value.hint and "y:0" in str(info.value)
    assert (x + np.zeros((), np.float64)).dtype == tf.float32  # an array is a value; TensorFlow 1 casts it as well


def test_values_that_do_not_fit_the_dtype():
    with pytest.raises(OutOfRangeError):
        tf.placeholder(tf.uint8, []) + 300
    with pytest.raises(DTypeError):
        tf.placeholder(tf.int32, []) + 0.5
    with pytest.raises(DTypeError):
        tf.placeholder(tf.float32, []) + "x"
    with pytest.raises(InvalidArgumentError):
        tf.constant([[1, 2], [3]])
    with pytest.raises(InvalidArgumentError):
        tf.constant(object())


def test_an_op_refuses_a_dtype_it_does_not_take():
    with pytest.raises(DTypeError) as info:
        tf.matmul(tf.constant([["a"]]), tf.constant([["b"]]))
    assert "string" in str(info.value) and "MatMul" in str(info.value)


def test_what_comes_back():
    x = tf.constant([1.0, 2.0])
    assert isinstance(ops.apply_op("Identity", input=x), tf.Tensor)
    assert isinstance(ops.apply_op("NoOp"), tf.Operation)
    assert isinstance(ops.apply_op("Unpack", value=x, num=2), list)


def test_list_arguments_must_be_lists_and_agree():
    x = tf.constant([1.0])
    op = tf.add_n([x, x, x]).op
    assert op.get_attr("N") == 3 and op.arg("inputs") == [x, x, x]
    with pytest.raises(InvalidArgumentError, match="must be a list of tensors"):
        ops.apply_op("AddN", inputs=x)
    with pytest.raises(InvalidArgumentError, match="AddN needs"):
        ops.apply_op("AddN", inputs=[])
    with pytest.raises(DTypeError):
        tf.add_n([x, tf.constant([1])])


def test_lists_with_tensors_are_packed():
    x = tf.constant(2.0)
    packed = tf.convert_to_tensor([1.0, x, [3.0][0]])
    assert packed.shape == [3]
    with tf.Session() as sess:
        assert sess.run(packed).tolist() == [1.0, 2.0, 3.0]


def test_missing_and_unknown_arguments():
    x = tf.constant([[1.0]])
    with pytest.raises(InvalidArgumentError, match="MatMul needs its input 'b'"):
        ops.apply_op("MatMul", a=x)
    with pytest.raises(InvalidArgumentError, match="no argument 'transpose_z'") as info:
        ops.apply_op("MatMul", a=x, b=x, transpose_z=True)
    assert "transpose_" in info.value.hint
    with pytest.raises(InvalidArgumentError, match="attribute 'transpose_a'"):
        ops.apply_op("MatMul", a=x, b=x, transpose_a=1)
    with pytest.raises(UnknownOpError, match="'Matmul'") as info:
        ops.apply_op("Matmul", a=x, b=x)
    assert "MatMul" in info.value.hint
    with pytest.raises(InvalidArgumentError, match="needs attribute 'value'|needs the dtype"):
        ops.apply_op("Const")


def test_errors_carry_the_name_it_would_have_had_and_the_line():
    with pytest.raises(InvalidArgumentError) as info, tf.name_scope("layer"):
        tf.matmul(tf.ones([2, 3]), tf.ones([4, 5]), name="product")
    assert info.value.op == "layer/product" and "test_apply.py" in info.value.site


def test_constants_fill_their_shape():
    with tf.Session() as sess:
        assert sess.run(tf.constant(7, shape=[2, 2])).tolist() == [[7, 7], [7, 7]]
        assert sess.run(tf.constant([1, 2], shape=[2, 3])).tolist() == [[1, 2, 2], [2, 2, 2]]
    with pytest.raises(InvalidArgumentError):
        tf.constant([1, 2, 3], shape=[2])
    with pytest.raises(InvalidArgumentError):
        tf.constant([1, 2], shape=[1, 2], verify_shape=True)


def test_conversion_functions_are_found_in_reverse_order_of_registration():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    tf.register_tensor_conversion_function(Celsius, lambda v, dtype, name: tf.constant(v.degrees, dtype))
    x = tf.placeholder(tf.float64, [])
    assert tf.convert_to_tensor(Celsius(3.0)).dtype == tf.float32
    assert (x + Celsius(3.0)).dtype == tf.float64
    tf.register_tensor_conversion_function(Celsius, lambda v, dtype, name: tf.constant([v.degrees]))
    assert tf.convert_to_tensor(Celsius(3.0)).shape == [1]


def test_the_graph_takes_a_copy_of_an_array():
    array = np.ones(3, np.float32)
    x = tf.constant(array)
    array[:] = 5
    with tf.Session() as sess:
        assert sess.run(x).tolist() == [1, 1, 1]
    with pytest.raises(ValueError):
        x.op.get_attr("value")[0] = 2


def test_an_integer_attribute_is_no_bool():
    with pytest.raises(InvalidArgumentError, match="'axis' of Pack has a wrong value"):
        ops.apply_op("Pack", values=[tf.constant(1.0)], axis=True)


def test_an_error_names_the_operation_of_an_open_scope_once() -> None:
    with tf.Graph().as_default(), tf.name_scope("s"), pytest.raises(tf.errors.DTypeError) as caught:
        tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2], tf.float64), name="w")
    assert caught.value.op == "s/w"


def test_what_one_operation_was_given_decides_nothing_of_the_next():
    x = tf.placeholder(tf.float32, [2])
    indices, depth, one = tf.constant([0, 1]), tf.constant(3), tf.constant(1.0)
    given = {"indices": indices, "depth": depth, "on_value": one, "off_value": one}
    assert ops.apply_op("OneHot", axis=1, **given).op.get_attr("axis") == 1
    for _ in range(2):  # equal values of other types: what was refused is refused again
        with pytest.raises(InvalidArgumentError, match="axis"):
            ops.apply_op("OneHot", axis=True, **given)
    assert ops.apply_op("OneHot", axis=1, **given).op.get_attr("axis") == 1
    made = [ops.apply_op("LeakyRelu", features=x, alpha=alpha).op.get_attr("alpha") for alpha in (0.0, -0.0, 0)]
    assert [str(alpha) for alpha in made] == ["0.0", "-0.0", "0.0"]
    assert [(x + y).dtype for x, y in ((one, one), (depth, depth), (one, one))] == [tf.float32, tf.int32, tf.float32]
    with pytest.raises(DTypeError, match="Add"):
        ops.apply_op("Add", x=one, y=depth)
