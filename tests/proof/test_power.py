"""Power cuts: on a disk that is played, in every way the model allows, and on real file systems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from proof import loop
from proof.disk import build, run

if TYPE_CHECKING:
    from pathlib import Path

LONG = pytest.mark.proof


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("disk"))


def cut(disk: Path, scenario: str, **options: Any) -> dict[str, Any]:
    report: dict[str, Any] = run(disk, "power", scenario, json.dumps(options), timeout=20_000)
    print(scenario, options, {name: value for name, value in report.items() if name != "wrong"})
    return report


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"length": 2, "step": 9, "most": 3}, id="short"),
        pytest.param({"length": 3, "most": 5}, id="long", marks=LONG),
    ],
)
def test_what_was_acknowledged_survives_a_power_cut_after_any_verbs(disk: Path, options: dict[str, Any]) -> None:
    report = cut(disk, "sequences", **options)
    assert report["wrong"] == []
    assert report["states"] > 10 * report["programs"]


@pytest.mark.timeout(20_000)
def test_a_power_cut_while_a_file_is_made_leaves_none_or_a_sound_one(disk: Path) -> None:
    assert cut(disk, "creation", most=4)["wrong"] == []


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"each": 40, "cuts": 6, "most": 2}, id="short"),
        pytest.param({"each": 100, "rounds": 4, "cuts": 40, "most": 4}, id="long", marks=LONG),
    ],
)
def test_shared_commits_and_a_log_that_starts_anew_survive_a_power_cut(disk: Path, options: dict[str, Any]) -> None:
    report = cut(disk, "threads", **options)
    assert report["wrong"] == []
    assert report["restarts"] > 0, "the log was never folded"


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"verbs": ["enqueue", "fold"], "most": 2}, id="short"),
        pytest.param({"verbs": ["enqueue"], "most": 2, "reader": True}, id="short-beside-a-reader"),
        pytest.param({"most": 6}, id="long", marks=LONG),
        pytest.param({"most": 6, "reader": True}, id="long-beside-a-reader", marks=LONG),
    ],
)
def test_what_is_acknowledged_after_a_failed_sync_survives_a_power_cut(disk: Path, options: dict[str, Any]) -> None:
    report = cut(disk, "failed_syncs", **options)
    assert report["wrong"] == []
    assert report["programs"] > 0


@pytest.mark.timeout(20_000)
@LONG
def test_commits_larger_than_the_cache_survive_a_power_cut_wholly_or_not_at_all(disk: Path) -> None:
    assert cut(disk, "spills", cuts=40, most=1)["wrong"] == []


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("step", [pytest.param(24, id="short"), pytest.param(1, id="long", marks=LONG)])
def test_without_waiting_for_the_disk_a_power_cut_loses_the_end_and_damages_nothing(disk: Path, step: int) -> None:
    report = cut(disk, "sequences", length=2, step=step, most=3, durability="normal", demands="normal")
    assert report["wrong"] == []
    assert report["lossy"] > 0


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("harm", [{"without_syncs": True}, {"durability": "normal"}])
def test_the_cuts_would_show_a_sync_that_is_missing(disk: Path, harm: dict[str, Any]) -> None:
    report = cut(disk, "sequences", length=1, step=3, most=2, **harm)
    assert any("acknowledged is lost" in complaint for complaint in report["wrong"])


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize(
    ("kind", "count"),
    [pytest.param("ext4", 6, id="ext4-short")]
    + [pytest.param(kind, 1000, id=kind, marks=LONG) for kind in ("ext4", "xfs", "btrfs")],
)
def test_a_real_file_system_keeps_what_was_acknowledged(kind: str, count: int) -> None:
    loop.need(kind)
    result = loop.cut_often(kind, "full", count, seed=1)
    print(kind, result)
    assert result.wrong == []
    assert (result.lost, result.undone) == (0, 0)
    assert result.cuts == count
    assert result.acknowledged > 0


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=LONG) for kind in ("ext4", "xfs", "btrfs")])
def test_a_real_file_system_shows_what_is_lost_without_syncs(kind: str) -> None:
    loop.need(kind)
    result = loop.cut_often(kind, "normal", 100, seed=2)
    print(kind, result)
    assert result.wrong == []
    assert result.lost > 0, "the method does not show a loss that must be there"
