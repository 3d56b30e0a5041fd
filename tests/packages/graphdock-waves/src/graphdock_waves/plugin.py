"""Entry point of the plugin ``waves``, which has names below ``tf`` and nothing else."""
