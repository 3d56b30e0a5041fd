"""The plugin: its commands are found by the manifest; it needs no hook."""
