"""Modules that scripts use around their graphs: ``tf.app``, ``tf.flags``, ``tf.gfile``, ``tf.logging``, ``tf.compat``.

Nothing here knows of ops, devices or sessions.
"""
