"""`python -m membox_queue`: the command line; `process`, as which workers are spawned, without typer and rich."""

import sys

from membox_queue.cli import main, process

if __name__ == "__main__":
    if sys.argv[1:2] == ["process"]:
        sys.exit(process.main(sys.argv[2:], "python -m membox_queue process"))
    main()
