"""Functions of arrays: shapes, indices, rows of variables, choices and orders; what moves and repeats elements."""
