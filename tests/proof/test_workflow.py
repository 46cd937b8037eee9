"""Stages, children, steps and gathers happen once, whoever is killed when."""

from __future__ import annotations

import pytest

from proof.nursery import run

ORDERS = [pytest.param(25, id="short"), pytest.param(250, id="long", marks=pytest.mark.proof)]


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.timeout(1800)
def test_every_order_goes_its_whole_way_once(tmp_path, seed, orders):
    said = run("workflow", tmp_path / "memory.db", orders, seed, timeout=1800)
    print({name: value for name, value in said.items() if name != "stderr"})
    assert said["crashed"] == 0, said["stderr"]
    assert said["kills"] > 0
    assert said["items"] == {"merge": orders, "pages": 3 * orders, "notes": 3 * orders, "late": 2 * orders}
    assert said["results"] == {"[0,1,2,0,10]": orders}
    assert said["effects"] == {"charge": orders, "page": 3 * orders, "plain": orders}
    # A step that commits by itself is done at least once; those in the transaction of their record exactly once.
    assert set(said["doubled"]) <= {"plain"}
    assert (said["open_edges"], said["awaited"], said["wrong_counts"]) == (0, 0, 0)
