"""A generator and a discriminator of digits, trained against each other.

Radford, Metz and Chintala, "Unsupervised representation learning with deep convolutional generative adversarial networks", 2015,
at the size of scikit-learn's digits. Both normalise by the batch; the two optimizers share no variable.

    python -m examples.dcgan --steps 2000
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np

from examples import digits
from examples.training import Training, command_line, session, train

NOISE = 32
_SMALL = tf.truncated_normal_initializer(stddev=0.05)


def batch_norm(x: Any, name: str) -> Any:
    """Each channel with the mean and variance of the batch."""
    channels = int(x.shape[-1])
    with tf.variable_scope(name):
        beta = tf.get_variable("beta", [channels], initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", [channels], initializer=tf.ones_initializer())
        mean, variance = tf.nn.moments(x, list(range(len(x.shape) - 1)))
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def dense(x: Any, outputs: int, name: str) -> Any:
    """x [N, inputs] times weights, plus biases."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [int(x.shape[1]), outputs], initializer=_SMALL)
        return tf.matmul(x, weights) + tf.get_variable("biases", [outputs], initializer=tf.zeros_initializer())


def half(x: Any, outputs: int, name: str) -> Any:
    """A convolution of half the height and width."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [3, 3, int(x.shape[3]), outputs], initializer=_SMALL)
        return tf.nn.conv2d(x, weights, [1, 2, 2, 1], "SAME")


def twice(x: Any, outputs: int, name: str) -> Any:
    """A transposed convolution of twice the height and width."""
    batch, height, width, channels = (int(size) for size in x.shape)
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [3, 3, outputs, channels], initializer=_SMALL)
        shape = [batch, 2 * height, 2 * width, outputs]
        return tf.nn.conv2d_transpose(x, weights, shape, [1, 2, 2, 1], "SAME")


def generator(noise: Any, width: int = 32) -> Any:
    """Images [N, 8, 8, 1] from 0 to 1 of noise [N, NOISE]."""
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        x = tf.reshape(dense(noise, 2 * 2 * 2 * width, "dense"), [-1, 2, 2, 2 * width])
        x = tf.nn.relu(batch_norm(x, "norm1"))
        x = tf.nn.relu(batch_norm(twice(x, width, "up1"), "norm2"))
        return tf.sigmoid(twice(x, 1, "up2"))


def discriminator(images: Any, width: int = 32) -> Any:
    """Logits [N] that images [N, 8, 8, 1] are real."""
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        x = tf.nn.leaky_relu(half(images, width, "down1"))
        x = tf.nn.leaky_relu(batch_norm(half(x, 2 * width, "down2"), "norm"))
        x = tf.reshape(x, [-1, 2 * 2 * 2 * width])
        return tf.reshape(dense(x, 1, "dense"), [-1])


def losses(real: Any, noise: Any, width: int = 32) -> tuple[Any, Any]:
    """Losses of the discriminator and of the generator, of real images and of noise."""
    on_real = discriminator(real, width)
    on_made = discriminator(generator(noise, width), width)

    def cross_entropy(logits: Any, label: float) -> Any:
        labels = tf.fill(tf.shape(logits), label)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    return cross_entropy(on_real, 0.9) + cross_entropy(on_made, 0.0), cross_entropy(on_made, 1.0)


def variables_of(part: str) -> list[Any]:
    """Return what the optimizer of ``generator`` or ``discriminator`` trains."""
    return [variable for variable in tf.trainable_variables() if variable.name.startswith(f"{part}/")]


def drawn(images: np.ndarray) -> str:
    """Images [N, 8, 8, 1] side by side, as text."""
    shades = np.array(list(" .:-=+*#%@"))
    rows = shades[np.clip(images[..., 0] * 10, 0, 9).astype(int)].transpose(1, 0, 2)
    return "\n".join("  ".join("".join(part) for part in row) for row in rows)


def main(arguments: list[str] | None = None) -> Training:
    """Train both in each step, then show some digits that nobody wrote."""
    options = command_line(
        __doc__,
        arguments,
        steps=2000,
        width=(32, "channels of the wide layers"),
        rate=(0.0005, "learning rate of both"),
    )
    data = digits.load()
    random = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        real = tf.placeholder(tf.float32, [options.batch, 8, 8, 1], name="real")
        noise = tf.placeholder(tf.float32, [options.batch, NOISE], name="noise")
        d_loss, g_loss = losses(real, noise, options.width)
        made = generator(noise, options.width)
        optimize = [tf.train.AdamOptimizer(options.rate, beta1=0.5) for _ in range(2)]
        d_step = optimize[0].minimize(d_loss, var_list=variables_of("discriminator"))
        g_step = optimize[1].minimize(g_loss, var_list=variables_of("generator"))

        def feed(_: int) -> dict[Any, Any]:
            pick = random.randint(len(data.train_images), size=options.batch)
            return {real: data.train_images[pick], noise: random.normal(size=(options.batch, NOISE))}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                images, d_value, g_value = sess.run([made, d_loss, g_loss], feed(0))
                print(drawn(images[:8]))
                return {"loss of the discriminator": float(d_value), "loss of the generator": float(g_value)}

            return train(sess, options, tf.group(d_step, g_step), d_loss, feed, measure)


if __name__ == "__main__":
    main()
