"""Matrices: products, decompositions, solutions, diagonals, sums of products by letters."""
