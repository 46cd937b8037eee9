"""The command line, as people and pipes meet it."""
