"""Comparison of queue libraries on SQLite; `benches/compare.py` runs it."""
