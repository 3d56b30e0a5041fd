"""Examples for the tests, by TensorFlow's messages."""

from __future__ import annotations

import graphdock as tf


def feature(values):
    """A Feature of floats, integers or bytes, by the first of them; of none without a kind."""
    if not values:
        return tf.train.Feature()
    first = values[0]
    if isinstance(first, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if isinstance(first, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features):
    """The bytes of an Example."""
    made = {key: feature(values) for key, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def sequence_example(context, lists):
    """The bytes of a SequenceExample."""
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={k: feature(v) for k, v in context.items()}),
        feature_lists=tf.train.FeatureLists(
            feature_list={k: tf.train.FeatureList(feature=[feature(v) for v in vs]) for k, vs in lists.items()}
        ),
    ).SerializeToString()
