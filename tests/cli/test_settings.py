"""configure: the settings in the file, shown and stored as people type them."""

import json

import pytest
from membox_queue import Rate, Retry


def told(call, *arguments):
    rows = call("configure", *arguments).out.splitlines()
    return dict(row.split(maxsplit=1) for row in rows[1:])


def test_what_holds_is_shown_in_words_that_can_be_typed(call, queue):
    assert told(call)["lease"] == "1m"
    assert set(told(call)) == set(queue.options) - {"durability", "busy_timeout", "worker"}
    queue.configure(
        lease=90.5, retry=Retry(max=2, base=0, kind="linear"), rate=Rate(9, per=7200), keep_for=86400 * 7, keep_last=0
    )
    held, shown = queue.options, {name: value for name, value in told(call).items() if value != "-"}
    assert (shown["lease"], shown["rate"], shown["keep_for"], shown["keep_last"]) == ("90.5s", "9/2h", "1w", "0")
    queue.configure(lease=None, retry=None, rate=None, keep_for=None, keep_last=None)
    assert told(call, *(f"{name}={value}" for name, value in shown.items())) | shown == told(call)
    assert queue.options == held


def test_settings_are_stored_for_those_who_run_and_forgotten(run, call, queue):
    assert run("configure", "lease=5m", "retry=max=4, base=2s", "keep-content=no", "group_limit=3").code == 0
    assert (queue.options["lease"], queue.options["retry"]) == (300, Retry(max=4, base=2))
    assert (queue.options["keep_content"], queue.options["group_limit"]) == (False, 3)
    seen = json.loads(call("configure", "retry=", "group-limit=", "rate=60/1m", "--json").out)
    assert (seen["retry"], seen["group_limit"], seen["rate"]) == (None, 1, {"count": 60, "per": 60.0})
    assert queue.options["retry"] is None


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("lease", "'lease' is not a setting; write NAME=VALUE with one of lease, max_retries"),
        ("leese=5", "'leese=5' is not a setting"),
        ("lease=soon", "lease cannot be 'soon'; write it like lease=30s"),
        ("lease=0", "lease must be"),
        ("max-pending=1.5", "max_pending cannot be '1.5'; write it like max_pending=5"),
        ("rate=60", "rate cannot be '60'; write it like rate=60/1m"),
        ("rate=0/1m", "rate cannot be '0/1m'"),
        ("retry=5", "retry cannot be '5'; write it like retry='max=5 base=30s'"),
        ("retry=most=5", "retry cannot be 'most=5'"),
        ("keep_content=maybe", "keep_content cannot be 'maybe'; write it like keep_content=no"),
    ],
)
def test_what_is_no_setting_is_told_and_nothing_is_stored(call, queue, setting, says):
    before = queue.options
    ended = call("configure", "max_retries=9", setting)
    assert (ended.code, says in ended.err) == (1, True), ended.err
    assert queue.options == before


def test_commands_that_only_read_store_no_settings(call, queue, sql):
    queue.enqueue("x")
    for command in (["status"], ["list"], ["show", "1"], ["doctor"], ["configure"]):
        assert call(*command).code == 0, command
    assert sql(queue.path, "SELECT key FROM membox_queue_meta WHERE key LIKE '%settings:%'") == []
