"""Items that kill their workers: each ends as failed after exactly its allowance, and holds nothing else up."""

import pytest
from membox_queue import NewItem

from proof.nursery import run
from proof.poison import DEATHS


def cases():
    """Every death by every verb. A loop tries for some seconds to record what it has no memory for."""
    for how in DEATHS:
        for verb in ("drain", "with"):
            short, long = ((1, 1), (4, 3)) if how == "memory" else ((2, 2), (20, 5))
            yield pytest.param(how, verb, *short, id=f"{how}-{verb}-short")
            yield pytest.param(how, verb, *long, id=f"{how}-{verb}-long", marks=pytest.mark.proof)


@pytest.mark.parametrize(("how", "verb", "poisons", "allowed"), list(cases()))
@pytest.mark.timeout(1800)
def test_an_item_that_kills_its_workers_fails_after_exactly_its_allowance(path, queue, how, verb, poisons, allowed):
    for number in range(poisons):
        queue.enqueue_many(
            [
                NewItem("poison", max_retries=allowed, group=f"g{number}", priority=number % 2),
                NewItem("behind it", group=f"g{number}"),
                NewItem("beside it"),
            ]
        )
    said = run("poison", path, how, verb)
    items = queue.items(limit=10_000)
    poisoned = [item for item in items if item.content == "poison"]
    assert {(item.status, item.retries, item.attempt) for item in poisoned} == {("failed", allowed, allowed)}
    assert {(item.status, item.retries, item.attempt) for item in items if item not in poisoned} == {("done", 0, 1)}
    if how != "memory":
        assert said["deaths"] == poisons * allowed
        assert all("vanished" in item.error for item in poisoned)
    assert all("vanished" in item.error or "MemoryError" in item.error for item in poisoned)
    print(f"{how}, {verb}: {poisons * allowed} attempts, {said['deaths']} deaths")
