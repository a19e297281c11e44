"""Other writers between two batches: compaction, expiry, deletes and appends by deltalake and PyIceberg, and what users do to rows.

Usage: foreign.py [FORMAT/MODE ..]. Each act is done to the tables of a lake in the middle of a feed; after the feed's end its rows
must be those of a lake that nobody disturbed, but for what the act itself did."""

import json
import pathlib
import sys
import tempfile

import acts
import feed
import matrix
import stories
import users

def without(rows, keys):
    return [row for row in rows if json.loads(row)["id"] not in keys]


def undisturbed(folder, form, mode):
    """The rows of both tables in the middle and at the end, and the keys that rest after the middle."""
    story = stories.Story(folder, form, mode)
    middle = {name: story.rows(name) for name in stories.TABLES}
    story.feed(feed.halves()[1])
    return middle, {name: story.rows(name) for name in stories.TABLES}


def disturbed(verdicts, folder, act, expected, form, mode):
    """One act upon both tables between the halves of the feed."""
    middle, end = expected
    story = stories.Story(folder, form, mode)
    for name in stories.TABLES:
        act.do(story.table(name))
    for when, rows in (("at once", middle), ("after the next batches", end)):
        if when != "at once":
            story.feed(feed.halves()[1])
        for name in stories.TABLES:
            print(f"  {act.name}, {name}, {when}: ", end="")
            have = without(story.rows(name), act.adds)
            verdicts.judge(have == without(rows[name], act.removes), "the same rows", "OTHER ROWS")
    for name in stories.TABLES:
        added = [row for row in story.rows(name) if json.loads(row)["id"] in act.adds]
        if act.adds:
            print(f"  {act.name}, {name}: ", end="")
            verdicts.judge(len(added) == len(act.adds), "added rows are there", f"ADDED ROWS: {added}")


def check(verdicts, form, mode, every):
    with tempfile.TemporaryDirectory(prefix="strandline-foreign-") as folder:
        folder = pathlib.Path(folder)
        expected = undisturbed(folder / "undisturbed", form, mode)
        for number, act in enumerate(every[form]):
            print(f"{act.name} ({form}, {mode})")
            try:
                disturbed(verdicts, folder / str(number), act, expected, form, mode)
            except Exception as failure:  # ours or the other program's: the next act may go well
                verdicts.judge(False, "", f"FAILED: {str(failure)[:2000]}")


def main():
    verdicts = matrix.Verdicts()
    for form, mode in matrix.chosen(sys.argv[1:]):
        check(verdicts, form, mode, acts.ACTS)
        users.check(verdicts, form, mode)
    verdicts.end()


if __name__ == "__main__":
    main()
