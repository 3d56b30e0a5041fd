"""Stages of datasets: what each gives, as a Python iterator over tuples of arrays. They know no graph and no session."""
