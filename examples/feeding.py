"""One classifier of handwritten digits, fed in three ways: by ``feed_dict``, by queue runners, by ``tf.data`` over TFRecords.

python -m examples.feeding --steps 200

The batches are the same, so the losses are. What differs is who waits for whom: with queues and datasets, threads read files and
take Examples apart while the step computes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np

from examples import digits
from examples.mlp import inference
from examples.training import Training, command_line, session, summary

#: What an Example holds: the image of a digit, and which it is.
FEATURES = {"image": tf.FixedLenFeature([8, 8, 1], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
#: Files that the Examples are spread over, one after the other.
FILES = 2

#: A way to feed: of the files' names and the options to the tensors of images and labels, and the feeds of each step.
Way = Callable[[list[str], argparse.Namespace], tuple[Any, Any, Callable[[int], dict[Any, Any]]]]


def write(folder: Path, images: np.ndarray, labels: np.ndarray) -> list[str]:
    """Write Examples into TFRecord files; their names."""
    names = []
    for part, rows in enumerate(np.array_split(np.arange(len(images)), FILES)):
        names.append(str(folder / f"digits-{part}.tfrecords"))
        with tf.python_io.TFRecordWriter(names[-1]) as writer:
            for row in rows:
                pixels = tf.train.FloatList(value=images[row].ravel().tolist())
                which = tf.train.Int64List(value=[int(labels[row])])
                feature = {"image": tf.train.Feature(float_list=pixels), "label": tf.train.Feature(int64_list=which)}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return names


def by_feed_dict(names: list[str], options: argparse.Namespace) -> tuple[Any, Any, Callable[[int], dict[Any, Any]]]:
    """Placeholders: Python cuts a batch of arrays for each step."""
    data = digits.load()
    images, labels = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int64, [None])

    def feed(step: int) -> dict[Any, Any]:
        rows = np.arange(step * options.batch, (step + 1) * options.batch) % len(data.train_images)
        return {images: data.train_images[rows], labels: data.train_labels[rows]}

    return images, labels, feed


def by_queue_runners(names: list[str], options: argparse.Namespace) -> tuple[Any, Any, Callable[[int], dict[Any, Any]]]:
    """A queue of names, a reader, and a queue of batches: two threads that run steps of their own."""
    files = tf.train.string_input_producer(names, shuffle=False)
    _, record = tf.TFRecordReader().read(files)
    one = tf.parse_single_example(record, FEATURES)
    images, labels = tf.train.batch([one["image"], one["label"]], options.batch, capacity=4 * options.batch)
    return images, labels, lambda step: {}


def by_dataset(names: list[str], options: argparse.Namespace) -> tuple[Any, Any, Callable[[int], dict[Any, Any]]]:
    """A dataset of the same files, which makes two batches ahead."""
    dataset = tf.data.TFRecordDataset(names).repeat().batch(options.batch)
    dataset = dataset.map(lambda records: tf.parse_example(records, FEATURES)).prefetch(2)
    element = dataset.make_one_shot_iterator().get_next()
    return element["image"], element["label"], lambda step: {}


WAYS: dict[str, Way] = {"feed_dict": by_feed_dict, "queue runners": by_queue_runners, "tf.data": by_dataset}


def losses_of(way: str, names: list[str], options: argparse.Namespace) -> tuple[list[float], Any]:
    """Train a new network that is fed in one of the ways: the loss of every step, and what a step is."""
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        images, labels, feed = WAYS[way](names, options)
        logits = inference(images, [options.hidden], 10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.train.AdamOptimizer(options.rate).minimize(loss)
        with session(options) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord, threads = tf.train.Coordinator(), []
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(sess, coord)
            start = time.perf_counter()
            losses = [float(sess.run([loss, step], feed(number))[0]) for number in range(options.steps)]
            rate = options.steps / (time.perf_counter() - start)
            print(f"{way:13s}   loss {losses[0]:8.4f} -> {losses[-1]:8.4f}   {rate:,.1f} steps/s", flush=True)
            explanation = sess.explain([loss, step], feed(0))
            coord.request_stop()
            coord.join(threads)
    return losses, explanation


def main(arguments: list[str] | None = None) -> Training:
    """Train three times; the largest difference of two losses of one step is 0 on one backend."""
    options = command_line(
        __doc__,
        arguments,
        steps=500,
        hidden=(64, "units of the hidden layer"),
        rate=(0.005, "learning rate"),
    )
    data = digits.load()
    with tempfile.TemporaryDirectory() as folder:
        names = write(Path(folder), data.train_images, data.train_labels)
        runs = {way: losses_of(way, names, options) for way in WAYS}
    losses = np.array([found for found, _ in runs.values()])
    training = Training(
        losses[0].tolist(), {"largest difference": float(np.ptp(losses, axis=0).max())}, runs["tf.data"][1]
    )
    for name, result in training.results.items():
        print(f"{name} {result:.4f}")
    print(summary(training.explanation))
    return training


if __name__ == "__main__":
    main()
