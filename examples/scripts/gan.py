"""A generative adversarial network of points on a circle: two optimizers, each over its own variables."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)


def dense(x, units, name):
    shape = (x.get_shape()[1].value, units)
    with tf.variable_scope(name):
        w = tf.get_variable("w", initializer=rng.normal(0, 0.3, shape).astype(np.float32))
        b = tf.get_variable("b", initializer=tf.zeros([units]))
    return tf.matmul(x, w) + b


def generator(z):
    with tf.variable_scope("generator"):
        return dense(tf.tanh(dense(z, 16, "first")), 2, "second")


def discriminator(x, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        hidden = tf.nn.leaky_relu(dense(x, 16, "first"))
        return dense(hidden, 1, "second")


real = tf.placeholder(tf.float32, [None, 2])
noise = tf.placeholder(tf.float32, [None, 4])
fake = generator(noise)
of_real, of_fake = discriminator(real), discriminator(fake, reuse=True)
d_loss = tf.reduce_mean(
    tf.nn.sigmoid_cross_entropy_with_logits(logits=of_real, labels=tf.ones_like(of_real))
) + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=of_fake, labels=tf.zeros_like(of_fake)))
g_loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=of_fake, labels=tf.ones_like(of_fake)))
variables = tf.trainable_variables()
d_train = tf.train.AdamOptimizer(2e-3, beta1=0.5).minimize(
    d_loss, var_list=[v for v in variables if v.name.startswith("discriminator")]
)
g_train = tf.train.AdamOptimizer(2e-3, beta1=0.5).minimize(
    g_loss, var_list=[v for v in variables if v.name.startswith("generator")]
)
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for step in range(20):
    angles = rng.uniform(0, 2 * np.pi, 32)
    points = np.stack([np.cos(angles), np.sin(angles)], 1)
    z = rng.normal(size=(32, 4))
    _, d = sess.run([d_train, d_loss], {real: points, noise: z})
    _, g = sess.run([g_train, g_loss], {noise: z})
    print("step %d loss %.6f %.6f" % (step, d, g))
print("mean %.5f" % fake.eval({noise: z}).mean())
sess.close()
