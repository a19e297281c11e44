"""Every event that was fed, and what the tables should hold in the end: as simply as can be."""

import collections
import datetime
import random

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
# Accounts that events touch again and again; those from here on have one event each, and may be deleted by others.
HOT = 400
COLD = 1_000_000


class Ledger:
    """Makes events and remembers them. No two events of an account have the same moment, none the same name."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.events = collections.defaultdict(dict)  # by account, by moment: the event
        self.made = 0
        self.cold = COLD

    def moment(self):
        """A moment of its own: a microsecond for each event, sometimes a late one."""
        late = self.chance.randrange(20_000) if self.chance.random() < 0.1 else 0
        return max(0, self.made * 10 - late * 10) + self.chance.randrange(10)

    def event(self, account):
        self.made += 1
        at = self.moment()
        while at in self.events[account]:
            at += 1
        op = "D" if account < COLD and self.chance.random() < 0.15 else "U"
        made = {"id": account, "name": f"n{self.made}", "op": op, "at": text(at)}
        self.events[account][at] = made
        return made

    def file(self, rows):
        """The events of one file: hot accounts, and some cold ones."""
        made = [self.event(self.chance.randrange(HOT)) for _ in range(rows)]
        for _ in range(max(1, rows // 10)):
            made.append(self.event(self.cold))
            self.cold += 1
        self.chance.shuffle(made)
        return made

    def now(self, gone):
        """The rows of the table of what is, without the accounts that are gone: (id, name, at)."""
        rows = collections.Counter()
        for account, events in self.events.items():
            last = events[max(events)]
            if last["op"] == "U" and account not in gone:
                rows[account, last["name"], last["at"]] += 1
        return rows

    def then(self, gone):
        """The rows of the table of what was: (id, name, start, end)."""
        rows = collections.Counter()
        for account, events in self.events.items():
            moments = sorted(events)
            for moment, after in zip(moments, [*moments[1:], None]):
                event = events[moment]
                if event["op"] == "U" and account not in gone:
                    rows[account, event["name"], event["at"], after and text(after)] += 1
        return rows


def text(micros):
    """A moment as the feed has it."""
    return (START + datetime.timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
