"""Plugins: finding them, reading their manifests, loading them whole or not at all, and what they registered.

``hookspecs`` is the page of hooks, and the table of them. ``discovery`` finds entry points, ``manifest`` reads what a
package says of itself, both without importing it; ``loader`` imports one plugin and runs its hooks; ``state`` says how far each
came; ``registry`` and ``devices`` hold what they brought; ``settings`` is what the configuration file and the environment say;
``host`` ties it up.
"""
