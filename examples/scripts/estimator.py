"""An estimator: a model_fn, a dataset of a generator as input_fn, a hook that prints, evaluation and prediction."""

import tempfile

import numpy as np
import tensorflow as tf

STEPS = 20
rng = np.random.RandomState(5)
IMAGES = rng.normal(0, 1, (160, 12)).astype(np.float32)
LABELS = (IMAGES[:, :3].argmax(1) + (IMAGES[:, 3] > 0.5)).astype(np.int64)


def initial(*shape):
    return tf.constant_initializer(np.random.RandomState(6).normal(0, 0.4, shape).astype(np.float32))


def model_fn(features, labels, mode, params):
    net = features["images"]
    for layer, (ins, outs) in enumerate([(12, 24), (24, 16)]):
        net = tf.layers.dense(net, outs, tf.nn.relu, kernel_initializer=initial(ins, outs), name="layer%d" % layer)
    logits = tf.layers.dense(net, 4, kernel_initializer=initial(16, 4), name="logits")
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": classes, "best": tf.reduce_max(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, classes)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(params["rate"], step, 5, 0.9, staircase=True)
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def batches(epochs):
    data = tf.data.Dataset.from_tensor_slices(({"images": IMAGES}, LABELS))
    return data.repeat(epochs).batch(16).prefetch(1).make_one_shot_iterator().get_next()


class PrintLoss(tf.train.SessionRunHook):
    def before_run(self, run_context):
        graph = run_context.session.graph
        return tf.train.SessionRunArgs([tf.train.get_global_step(graph), graph.get_collection(tf.GraphKeys.LOSSES)[0]])

    def after_run(self, run_context, run_values):
        print("loss %.6f" % run_values.results[1])


def main(_):
    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), tf_random_seed=1, save_checkpoints_steps=10)
    classifier = tf.estimator.Estimator(model_fn, params={"rate": 0.1}, config=config)
    classifier.train(lambda: batches(None), hooks=[PrintLoss()], max_steps=STEPS)
    found = classifier.evaluate(lambda: batches(1))
    print("step %d accuracy %.4f loss %.6f" % (found["global_step"], found["accuracy"], found["loss"]))
    for prediction in list(classifier.predict(lambda: batches(1)))[:3]:
        print("class %d of logit %.6f" % (prediction["classes"], prediction["best"]))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
