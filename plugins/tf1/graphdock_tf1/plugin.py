"""Entry point of the ``tf1`` plugin: names below ``tf``, and nothing to register."""
