"""Typed content: what checks and converts the content of a queue that has a type.

Nothing is imported here: a queue without a type does not load the codecs.
"""
