import graphdock as tf
import pytest


@pytest.fixture(params=["straight_line", "dataflow"])
def run(request):
    """What a session with that executor gives for what a function builds."""

    def built(function, *args):
        with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(executor=request.param)) as session:
            return session.run(function(*args))

    return built
