"""Advice on errors that say that a program is written for another world: Python 2, eager execution, libraries that are not here."""

from __future__ import annotations

import re

__all__ = ["hint_of"]

#: What Python 3 says of programs for Python 2.
_PYTHON_2 = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized|leading zeros in decimal"
    r"|inconsistent use of tabs|name '(xrange|unicode|raw_input|basestring|long|unichr|reduce)' is not defined"
    r"|'dict' object has no attribute '(iteritems|itervalues|iterkeys|has_key)'"
    r"|No module named '(cPickle|urllib2|ConfigParser|StringIO|Queue|cStringIO)'"
)
#: What is said of values of eager execution, which a graph's tensors are not.
_EAGER = re.compile(r"'(Tensor|Variable)' object has no attribute '(numpy|assign_numpy)'")
#: Module that programs of TensorFlow 1 import -> what installs it.
_PACKAGES = {
    "PIL": "pillow", "cv2": "opencv-python", "future": "future", "gym": "gym", "h5py": "h5py", "imageio": "imageio",
    "matplotlib": "matplotlib", "nltk": "nltk", "pandas": "pandas", "regex": "regex", "requests": "requests",
    "six": "six", "skimage": "scikit-image", "sklearn": "scikit-learn", "toposort": "toposort", "tqdm": "tqdm",
    "yaml": "pyyaml",
}  # fmt: skip


def hint_of(error: BaseException) -> str | None:
    """Return what to do about an error that ended a program; None where nothing is known beyond its own words."""
    text = str(error)
    if _PYTHON_2.search(text):
        where = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else "the program"
        return f"{where} is written for Python 2; `2to3 -w FILE` (pip install 2to3) rewrites it"
    found = _EAGER.search(text)
    if found is not None:
        return (
            f"a {found[1]} has a value only in a step: `.{found[2]}()` is of eager execution, in TensorFlow 2; fetch it, as "
            "with tf.Session() as sess: sess.run(x)"
        )
    package = _PACKAGES.get(str(error.name).partition(".")[0]) if isinstance(error, ModuleNotFoundError) else None
    if package is not None:
        return f"the program needs a library that is not installed: pip install {package}"
    return None
