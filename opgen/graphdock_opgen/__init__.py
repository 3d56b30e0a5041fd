"""The op generator: OpDef YAML to OpDefs, annotated wrappers, gradients, stubs of names, and pages.

The pipeline: :mod:`reader` (YAML with positions), :mod:`model` (the schema), :mod:`check` (what needs context),
:mod:`library` (a package's files and the names formulas may use), :mod:`formula` and :mod:`gradients` (bodies of
functions), :mod:`render` (Jinja2), :mod:`generate` (write and check). Nothing of it is imported while a program runs.
"""
