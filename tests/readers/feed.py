"""Makes change files for the pipeline of foreign/: accounts that change, and accounts that are left alone after the first half."""

import datetime
import decimal
import json
import random
import shutil

import lake as lakes

UTC = datetime.timezone.utc
START = datetime.datetime(2026, 1, 1, tzinfo=UTC)
# Accounts below this one change in every file, those from it on only in the files of the first half.
RESTING = 150
ACCOUNTS = 200


def event(key, number, op, at):
    """A change as the feed's files have it."""
    return {"id": key, "name": f"n{number}", "balance": str(decimal.Decimal(number) / 100), "op": op, "at": at}


def instant(hours):
    """The moment so many hours after the feed's beginning, as the feed writes it."""
    return (START + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def write(path, events):
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    beside.rename(path)


def halves(seed=7, files=3, events=400):
    """The files of the first half and of the second, as lists of events; late ones and deletes among them."""
    chance = random.Random(seed)
    made = []
    for number in range(2 * files):
        keys = ACCOUNTS if number < files else RESTING
        made.append([])
        for row in range(events):
            late = chance.randrange(72) if chance.random() < 0.1 else 0
            at = instant(24 * number + 24 * row / events - late)
            op = "D" if chance.random() < 0.1 else "U"
            made[-1].append(event(chance.randrange(keys), 1000 * number + row, op, at))
    return made[:files], made[files:]


def pipeline(folder):
    """A copy of the pipeline in a folder, with no changes yet."""
    folder.mkdir(parents=True)
    shutil.copy(lakes.ROOT / "tests/readers/foreign/pipeline.sql", folder / "pipeline.sql")
    return folder / "pipeline.sql"
