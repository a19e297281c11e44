"""What users do to the rows of a target: rows that keep its rules are honoured, versions that overlap are found out (T-17, T-18, A-27)."""

import json
import pathlib
import tempfile

import acts
import feed
import lake as lakes
import stories

CLOSED, OPEN, GONE, TWICE = 6000, 6001, 6002, 6003


def versions(story, key):
    """The versions of a key: name, start and end as days of January 2026, the end None where it is open."""
    sql = f"SELECT name, __START_AT, __END_AT FROM accounts_history WHERE id = {key} ORDER BY __START_AT"
    found = [json.loads(line) for line in story.lake.query(sql)]
    return [(row["name"], number(row["__START_AT"]), number(row.get("__END_AT"))) for row in found]


def current(story, key):
    """The row of a key in the table of what is: name and day of its sequence."""
    found = [json.loads(line) for line in story.lake.query(f"SELECT name, at FROM accounts WHERE id = {key}")]
    return [(row["name"], number(row["at"])) for row in found]


def number(text):
    return text and next(day for day in range(1, 90) if text.startswith(acts.day(day).date().isoformat()))


def event(key, name, day):
    """A change of a key at midnight of a day."""
    return {**feed.event(key, 0, "U", feed.instant(24 * (day - 1))), "name": name}


def honoured(verdicts, folder, form, mode):
    """Rows that users wrote count as changes at their start, and deleted ones as if they had never come."""
    story = stories.Story(folder, form, mode)
    story.feed([[event(GONE, "first", 10)]])
    for name in stories.TABLES:
        written = [acts.by_hand(CLOSED, acts.day(10), acts.day(30)), acts.by_hand(OPEN, acts.day(10))]
        acts.append(story.table(name), [rows[name] for rows in written])
        acts.delete(story.table(name), f"id = {GONE}")
    story.feed([[event(CLOSED, "later", 20), event(OPEN, "later", 20), event(GONE, "older", 5)]])
    story.feed([[event(OPEN, "older", 5)]])
    for what, have, want in [
        ("t17: a version with an end is split", versions(story, CLOSED), [("by hand", 10, 20), ("later", 20, 30)]),
        ("t17: an open version is closed", versions(story, OPEN), [("older", 5, 10), ("by hand", 10, 20), ("later", 20, None)]),
        ("t17: a newer event wins over a row by hand", current(story, OPEN), [("later", 20)]),
        ("a27: a version that was deleted never came", versions(story, GONE), [("older", 5, None)]),
        ("a27: a row that was deleted never came", current(story, GONE), [("older", 5)]),
    ]:
        print(f"  {what}: ", end="")
        verdicts.judge(have == want, "yes", f"NO: {have}, not {want}")


def found_out(verdicts, folder, form, mode):
    """Versions that overlap are found by a batch with an event of their key that falls among them; mended, the flow goes on."""
    for what, first_end, day in [("two open versions", None, 41), ("an event within the overlap", acts.day(20), 17)]:
        story = stories.Story(folder / str(day), form, mode)
        both = [acts.by_hand(TWICE, acts.day(10), first_end), acts.by_hand(TWICE, acts.day(15))]
        acts.append(story.table("accounts_history"), [rows["accounts_history"] for rows in both])
        story.feed([[event(1, "another", 40)]])
        before = story.rows("accounts_history")
        try:
            story.feed([[event(TWICE, "next", day)]])
            said = "nothing"
        except lakes.Failed as failure:
            said = str(failure)
        print(f"  t18: {what}: found out: ", end="")
        verdicts.judge("overlap" in said and str(TWICE) in said, "yes", f"NO: {said}")
        print(f"  t18: {what}: nothing is written: ", end="")
        verdicts.judge(story.rows("accounts_history") == before, "yes", "NO")
        acts.delete(story.table("accounts_history"), f"id = {TWICE}")
        acts.append(story.table("accounts_history"), [acts.by_hand(TWICE, acts.day(15))["accounts_history"]])
        story.feed([])
        print(f"  t18: {what}: mended, the flow goes on: ", end="")
        have = versions(story, TWICE)
        verdicts.judge(have == [("by hand", 15, day), ("next", day, None)], "yes", f"NO: {have}")


def check(verdicts, form, mode):
    for story in (honoured, found_out):
        print(f"{story.__doc__} ({form}, {mode})")
        with tempfile.TemporaryDirectory(prefix="strandline-users-") as folder:
            try:
                story(verdicts, pathlib.Path(folder), form, mode)
            except lakes.Failed as failure:
                verdicts.judge(False, "", f"FAILED: {failure}")
