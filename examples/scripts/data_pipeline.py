"""Examples in TFRecords, read by tf.data: parsed, batched, repeated, and switched from training to testing by a handle."""

import os
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(4)


def write(path, count):
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(count):
            x = rng.normal(size=4)
            features = tf.train.Features(
                feature={
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                    "y": tf.train.Feature(float_list=tf.train.FloatList(value=[x.dot(weights) + 0.1])),
                }
            )
            writer.write(tf.train.Example(features=features).SerializeToString())


def parse(record):
    found = tf.parse_single_example(
        record, {"x": tf.FixedLenFeature([4], tf.float32), "y": tf.FixedLenFeature([1], tf.float32)}
    )
    return found["x"], found["y"]


folder = tempfile.mkdtemp()
train_file, test_file = os.path.join(folder, "train"), os.path.join(folder, "test")
write(train_file, 50)
write(test_file, 20)
training = tf.data.TFRecordDataset(train_file).map(parse).repeat().batch(8).prefetch(2)
testing = tf.data.TFRecordDataset([test_file]).map(parse).batch(20)
handle = tf.placeholder(tf.string, [])
iterator = tf.data.Iterator.from_string_handle(handle, training.output_types, training.output_shapes)
x, y = iterator.get_next()
w = tf.Variable(tf.zeros([4, 1]))
b = tf.Variable(tf.zeros([1]))
loss = tf.losses.mean_squared_error(y, tf.matmul(x, w) + b)
rate = tf.train.exponential_decay(0.2, tf.train.get_or_create_global_step(), 5, 0.9)
train = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, tf.train.get_global_step())
train_iterator, test_iterator = training.make_one_shot_iterator(), testing.make_initializable_iterator()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {handle: sess.run(train_iterator.string_handle())}
    test_feed = {handle: sess.run(test_iterator.string_handle())}
    for step in range(20):
        _, value = sess.run([train, loss], feed)
        print("step %d loss %.6f" % (step, value))
    sess.run(test_iterator.initializer)
    print("test %.6f" % sess.run(loss, test_feed))
    try:
        sess.run(loss, test_feed)
    except tf.errors.OutOfRangeError:
        print("end 1")
