"""Run the blocks of a document, read as JSON, one after another: PATH."""

import json
import sys

path, namespace = sys.argv[1], {"__name__": "__main__"}
sys.path.insert(0, "")
for line, text in json.load(sys.stdin):
    exec(compile("\n" * line + text, path, "exec"), namespace)
