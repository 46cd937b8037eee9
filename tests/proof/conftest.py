"""What the proofs share: a seed that is told."""

import os
import random

import pytest


@pytest.fixture
def seed():
    """Printed, and taken from PROOF_SEED to repeat a run."""
    seed = int(os.environ.get("PROOF_SEED") or random.SystemRandom().randrange(10**6))
    print(f"PROOF_SEED={seed}")
    return seed
