"""Quantised values and ranges that are learnt."""
