"""Effects in the transaction of the end happen once, whoever is killed when; apart from it, some happen twice."""

from __future__ import annotations

import pytest

from proof.nursery import run

ITEMS = [pytest.param(120, id="short"), pytest.param(1_200, id="long", marks=pytest.mark.proof)]


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.timeout(1800)
def test_an_effect_and_a_follow_up_in_the_transaction_of_the_end_happen_once(tmp_path, seed, items):
    said = run("own_transaction", tmp_path / "memory.db", items, seed, "together", timeout=1800)
    assert said["crashed"] == 0, said["stderr"]
    assert said["kills"] > 0
    print(said)
    assert (said["done"], said["effects"], said["follow_ups"]) == (items, items, items)
    assert (said["doubled"], said["doubled_follow_ups"]) == (0, 0)


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.timeout(1800)
def test_the_control_that_commits_them_before_the_end_doubles_some(tmp_path, seed, items):
    said = run("own_transaction", tmp_path / "memory.db", items, seed, "apart", timeout=1800)
    assert said["crashed"] == 0, said["stderr"]
    print(said)
    assert (said["done"], said["effects"]) == (items, items)
    assert said["doubled"] > 0
