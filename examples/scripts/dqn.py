"""Deep Q-learning on a corridor: two networks, a buffer of what was seen, copies of weights every few steps."""

import random
from collections import deque

import numpy as np
import tensorflow as tf

CELLS, ACTIONS, GAMMA = 6, 2, 0.9
rng = np.random.RandomState(2)
random.seed(2)


def network(state, name):
    with tf.variable_scope(name):
        w1 = tf.get_variable("w1", initializer=rng.normal(0, 0.3, (CELLS, 16)).astype(np.float32))
        b1 = tf.get_variable("b1", [16], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", initializer=rng.normal(0, 0.3, (16, ACTIONS)).astype(np.float32))
        return tf.matmul(tf.nn.relu(tf.nn.xw_plus_b(state, w1, b1)), w2)


state = tf.placeholder(tf.float32, [None, CELLS], "state")
action = tf.placeholder(tf.int32, [None], "action")
target = tf.placeholder(tf.float32, [None], "target")
online, frozen = network(state, "online"), network(state, "frozen")
taken = tf.reduce_sum(online * tf.one_hot(action, ACTIONS), axis=1)
loss = tf.reduce_mean(tf.squared_difference(taken, target))
train = tf.train.RMSPropOptimizer(0.01).minimize(
    loss, var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="online")
)
copies = [
    tf.assign(there, here)
    for here, there in zip(
        tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="online/[wb][12]:"),
        tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="frozen"),
    )
]


def seen(cell):
    return np.eye(CELLS, dtype=np.float32)[cell]


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(copies)
    memory, cell, trained = deque(maxlen=200), 0, 0
    while trained < 20:
        move = random.randrange(ACTIONS)
        after = min(max(cell + (1 if move else -1), 0), CELLS - 1)
        done = after == CELLS - 1
        memory.append((cell, move, float(done), after, done))
        cell = 0 if done else after
        if len(memory) < 32 or len(memory) % 4:
            continue
        cells, moves, rewards, afters, ends = zip(*random.sample(memory, 16))
        best = sess.run(frozen, {state: [seen(c) for c in afters]}).max(axis=1)
        wanted = np.array(rewards) + GAMMA * best * (1.0 - np.array(ends))
        feeds = {state: [seen(c) for c in cells], action: moves, target: wanted}
        value, _ = sess.run([loss, train], feed_dict=feeds)
        print("step %d loss %.6f" % (trained, value))
        trained += 1
        if trained % 5 == 0:
            sess.run(copies)
