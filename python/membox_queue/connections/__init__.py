"""The caller's own connection: one driver, and a few lines for each library that it supports."""
