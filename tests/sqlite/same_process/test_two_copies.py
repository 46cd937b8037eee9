"""The queue beside another copy of SQLite in the same process, with the cure and, to show what it is for, without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sqlite.same_process.running import run

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_CURE = ("--off", "locks", "--off", "commit-check")
COPIES = ("sqlite3", "apsw")


def rounds(short: int, long: int) -> list[object]:
    return [pytest.param(short, id="short"), pytest.param(long, id="long", marks=pytest.mark.proof)]


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("count", rounds(1_500, 55_000))
@pytest.mark.timeout(900)
def test_both_write_at_once_and_nothing_is_lost(tmp_path: Path, copy: str, count: int) -> None:
    left = run("scenarios", "storm", tmp_path / "app.db", "--copy", copy, "--rounds", str(count))
    assert left.said == {"items": count, "notes": count, "errors": []}
    assert left.is_whole, left


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("count", rounds(300, 20_000))
@pytest.mark.timeout(900)
def test_a_close_between_enqueues_loses_nothing_when_the_process_is_killed(
    tmp_path: Path, copy: str, count: int
) -> None:
    left = run("scenarios", "closing", tmp_path / "app.db", "--copy", copy, "--rounds", str(count))
    assert left.is_whole, left


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("count", rounds(40, 1_000))
@pytest.mark.timeout(900)
def test_an_open_transaction_of_the_user_survives_queues_that_come_and_go(
    tmp_path: Path, copy: str, count: int
) -> None:
    left = run("scenarios", "transaction", tmp_path / "app.db", "--copy", copy, "--rounds", str(count))
    assert left.is_whole, left
    assert left.said["intruders"] == 0
    assert left.said["unnamed"] == 0, "QueueBusyError must say that this process itself is in the way"


@pytest.mark.parametrize("count", rounds(100, 2_000))
@pytest.mark.timeout(900)
def test_plain_opens_and_closes_of_the_files_do_no_harm(tmp_path: Path, count: int) -> None:
    left = run("scenarios", "touching", tmp_path / "app.db", "--rounds", str(count))
    assert left.is_whole, left


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("count", rounds(100, 8_000))
@pytest.mark.timeout(900)
def test_a_handler_may_write_to_its_own_tables_while_heartbeats_run(tmp_path: Path, copy: str, count: int) -> None:
    left = run("scenarios", "drain", tmp_path / "app.db", "--copy", copy, "--rounds", str(count))
    assert left.is_whole, left
    assert (left.said["done"], left.said["lost"]) == (count, 0)


@pytest.mark.parametrize("count", rounds(150, 3_000))
@pytest.mark.timeout(900)
def test_many_queues_leave_no_pile_of_descriptors(tmp_path: Path, count: int) -> None:
    left = run("scenarios", "pile", tmp_path / "app.db", "--rounds", str(count))
    assert left.said["after"] <= left.said["before"] + 4, left


@pytest.mark.parametrize("scenario", ["storm", "closing", "touching", "transaction", "drain"])
def test_without_the_cure_each_of_them_does_harm(tmp_path: Path, scenario: str) -> None:
    left = run("scenarios", scenario, tmp_path / "app.db", "--rounds", "400", *WITHOUT_CURE)
    assert not left.is_whole or left.said.get("intruders") or left.said.get("errors"), left


def test_the_commit_check_alone_refuses_to_acknowledge_into_a_removed_log(tmp_path: Path) -> None:
    left = run("scenarios", "closing", tmp_path / "app.db", "--rounds", "400", "--off", "locks")
    assert "StorageError" in left.stderr
    assert "not acknowledged" in left.stderr


def test_measures_cannot_be_switched_off_once_a_queue_was_opened(tmp_path: Path) -> None:
    from membox_queue import Queue, _native

    with Queue(tmp_path / "app.db"), pytest.raises(ValueError, match="opened in this process"):
        _native.switch_off("locks")
