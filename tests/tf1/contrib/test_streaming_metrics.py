"""Streaming metrics take predictions before labels, and are those of ``tf.metrics``."""

import graphdock as tf


def test_predictions_come_first():
    predictions, labels = tf.constant([1.0, 1.0, 0.0, 1.0]), tf.constant([1.0, 0.0, 0.0, 0.0])
    metrics = tf.contrib.metrics
    found = [
        metrics.streaming_precision(predictions, labels),
        metrics.streaming_recall(predictions, labels),
        metrics.streaming_accuracy(predictions, labels, name="right"),
        metrics.streaming_mean(predictions),
    ]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        sess.run([update for _, update in found])
        values = sess.run([value for value, _ in found])
    assert [round(float(value), 4) for value in values] == [0.3333, 1.0, 0.5, 0.75]
    assert found[2][0].op.name.startswith("right")
