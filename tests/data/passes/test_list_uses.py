"""Lists that stay lists in a loop, because what it does with them may be an error, and what is said of them."""

from __future__ import annotations

import graphdock as tf
import pytest
from list_programs import CPU, LISTS, agree, array, numbers, outcome, plan_of, squares

STAY = {
    "two elements an iteration": (
        lambda i, v, o: o.write(2 * i, v).write(2 * i + 1, v),
        {"size": 10},
        "writes several",
    ),
    "one element twice": (lambda i, v, o: o.write(i, v).write(i, v), {}, "writes several elements"),
    "every other element": (lambda i, v, o: o.write(2 * i, v), {"size": 10}, "not the loop's counter"),
    "an index that is computed": (
        lambda i, v, o: o.write(tf.cast(v[0], tf.int32), v),
        {"count": 1},
        "not the loop's counter",
    ),
    "an index below zero": (lambda i, v, o: o.write(i - 1, v), {}, "negative"),
    "what it wrote": (lambda i, v, o: o.write(i, o.read(i) + v), {"element_shape": [3]}, "reads what it writes"),
    "elements of other shapes": (
        lambda i, v, o: o.write(i, v[: i + 1]),
        {"infer_shape": False, "size": 3, "count": 3},
        "shape",
    ),
    "neighbours, each of which may be read once": (None, {}, "each may be read once"),
    "two arrays of other sizes": (None, {}, "comes first"),
    "effects before an error": (None, {}, "other things"),
}


@pytest.mark.parametrize("kind", STAY)
def test_what_may_be_an_error_within_the_loop_stays_a_list_and_explain_says_why(kind):
    change, fields, reason = STAY[kind]
    if kind == "two arrays of other sizes":
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
        a, b = array(4), array(3)
        loop = tf.while_loop(lambda i, *_: i < n, lambda i, a, b: (i + 1, a.write(i, x), b.write(i, x * 2)), [0, a, b])
        fetches, fed = [loop[1].stack(), loop[2].stack()], {x: numbers(3), n: 6}
    elif "neighbours" in kind:
        x = tf.placeholder(tf.float32, [6, 3])
        rows = array(6).unstack(x)
        made = tf.while_loop(
            lambda i, _: i < 1, lambda i, o: (i + 1, o.write(i, rows.read(i) * rows.read(i + 1))), [0, array(5)]
        )
        fetches, fed = [made[1].stack()], {x: numbers(6, 3)}
    elif kind == "effects before an error":
        n, total = tf.placeholder(tf.int32, []), tf.Variable(0.0, use_resource=True)

        def body(i, o):
            with tf.control_dependencies([total.assign_add(1.0)]):
                value = tf.cast(tf.identity(i), tf.float32)
            return i + 1, o.write(i, value)

        made = tf.while_loop(lambda i, _: i < n, body, [0, array(4)])[1].stack()
        for given in (LISTS, CPU):
            with tf.Session(config=tf.SessionConfig(**given)) as sess:
                sess.run(total.initializer)
                with pytest.raises(tf.errors.InvalidArgumentError, match="write to index 4"):
                    sess.run(made, {n: 9})
                assert sess.run(total) == 5.0
        fetches, fed = [made], {n: 9}
    else:
        fetches, fed = squares(change, **fields)
    ops, said = plan_of(fetches, fed)
    assert reason in "\n".join(said) and {"TensorListSetItem", "TensorListGetItem"} & ops, said
    if kind != "effects before an error":
        agree(outcome(fetches, fed, **CPU), outcome(fetches, fed, **LISTS))
