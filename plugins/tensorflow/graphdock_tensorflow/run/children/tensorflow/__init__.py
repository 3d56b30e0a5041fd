"""First on the path of the Pythons that ``graphdock run`` starts: graphdock answers in its place."""

import importlib
import sys

from graphdock_tensorflow.run.finder import of_environment

of_environment()
sys.modules.pop(__name__, None)
sys.modules[__name__] = importlib.import_module(__name__)
