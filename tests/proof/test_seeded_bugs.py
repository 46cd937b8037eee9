"""The list of seeded bugs fits the sources: each can still be built, and names tests that exist."""

import pytest

from proof.seeded_bugs import BUGS, ROOT, main

BY_NAME = {bug.name: bug for bug in BUGS}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_seeded_bug_fits_exactly_one_place(name):
    bug = BY_NAME[name]
    assert (ROOT / bug.file).read_text(encoding="utf-8").count(bug.right) == 1
    assert bug.right != bug.wrong
    assert bug.tests
    assert all((ROOT / tests).exists() for tests in bug.tests)


def test_no_two_bugs_have_one_name():
    assert len(BY_NAME) == len(BUGS)


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_every_seeded_bug_is_caught():
    assert main([]) == 0
