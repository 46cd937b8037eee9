"""`python -m membox_queue`: the command line."""

from membox_queue.cli import app

if __name__ == "__main__":
    app(prog_name="membox-queue")
