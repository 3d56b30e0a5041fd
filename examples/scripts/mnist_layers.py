"""A convolutional network of tf.layers over small images, trained with Adam."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)


def initial(*shape):
    return tf.constant_initializer(rng.normal(0, 0.2, shape).astype(np.float32))


def model(images):
    net = tf.layers.conv2d(images, 8, 3, padding="same", activation=tf.nn.relu, kernel_initializer=initial(3, 3, 1, 8))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 16, 3, padding="valid", activation=tf.nn.relu, kernel_initializer=initial(3, 3, 8, 16))
    net = tf.layers.flatten(net)
    net = tf.layers.dense(net, 32, activation=tf.nn.relu, kernel_initializer=initial(64, 32))
    return tf.layers.dense(net, 10, kernel_initializer=initial(32, 10))


def main(_):
    labels = rng.randint(0, 10, 320)
    pictures = rng.normal(0, 0.3, (320, 8, 8, 1)).astype(np.float32)
    pictures[np.arange(320), labels % 8, labels // 2] += 2.0

    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    logits = model(x)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    train = tf.train.AdamOptimizer(1e-2).minimize(loss, global_step=tf.train.get_or_create_global_step())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(20):
            part = slice(step * 16, step * 16 + 16)
            _, value = sess.run([train, loss], {x: pictures[part], y: labels[part]})
            print("step %d loss %.6f" % (step, value))
        print("accuracy %.4f" % sess.run(accuracy, {x: pictures, y: labels}))


if __name__ == "__main__":
    tf.app.run()
