"""``tensorflow.python.lib.io.file_io``: files by the functions that ``tf.gfile`` has under other names."""

from __future__ import annotations

from typing import Any

import graphdock as tf

__all__ = [
    "FileIO", "copy", "create_dir", "delete_file", "delete_recursively", "file_exists", "get_matching_files", "is_directory",
    "list_directory", "read_file_to_string", "recursive_create_dir", "rename", "stat", "walk", "write_string_to_file",
]  # fmt: skip

FileIO = tf.gfile.GFile
copy = tf.gfile.Copy
create_dir = tf.gfile.MkDir
delete_file = tf.gfile.Remove
delete_recursively = tf.gfile.DeleteRecursively
file_exists = tf.gfile.Exists
get_matching_files = tf.gfile.Glob
is_directory = tf.gfile.IsDirectory
list_directory = tf.gfile.ListDirectory
recursive_create_dir = tf.gfile.MakeDirs
rename = tf.gfile.Rename
stat = tf.gfile.Stat
walk = tf.gfile.Walk


def read_file_to_string(filename: Any, binary_mode: bool = False) -> str | bytes:
    """The whole of a file: text, or bytes."""
    with tf.gfile.GFile(filename, "rb" if binary_mode else "r") as file:
        found: str | bytes = file.read()
        return found


def write_string_to_file(filename: Any, file_content: str | bytes) -> None:
    """Write a file anew."""
    with tf.gfile.GFile(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)
