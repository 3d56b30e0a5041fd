"""The plugin: its command is found by the manifest; it needs no hook."""
