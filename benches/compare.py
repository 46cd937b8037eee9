"""The queue beside the libraries a user would pick instead: throughput, contention, waiting.

pip install '.[bench]'
python benches/compare.py [--quick] [--only put,wake] [--library honker] [--json FILE] [--plot FILE.png]
"""

import sys

from compare.command import main

# Measured processes are spawned and import this file again; only the first one measures.
if __name__ == "__main__":
    sys.exit(main())
