#!/usr/bin/env python3
"""Writes changes/*.json: what a customer database might send over 24 hours, as change files.

The files are committed; this is how they were made. Same output at every run (no dependency, fixed seed).

They hold what makes change feeds hard:
  late       some changes arrive one to four files after their time
  duplicate  some are delivered twice, in the same file or a later one
  delete     some customers leave, some come back
  early      a delete may arrive before the insert that it follows
"""

import json
import pathlib
import random

FIRST = "Ada Bo Cleo Dag Eva Finn Greta Hugo Ida Jon Kaja Lars Mina Nils Ola Pia Rolf Siri Tor Una".split()
LAST = "Aas Berg Dahl Eide Foss Gran Holm Iversen Juul Krog Lien Moe Nes Opdal Ruud Sand Tveit Ulvik Vik Wold".split()
CITY = "Oslo Bergen Trondheim Stavanger Rome Turin Lima Cusco Kyoto Osaka".split()
PLAN = ["free", "pro", "team"]
FILES, CUSTOMERS = 24, 400


def at(second, n):
    return f"2026-03-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{n % 1000:03d}Z"


def main():
    rng = random.Random(20260301)
    current, events = {}, []
    for n in range(3200):
        second = n * FILES * 3600 // 3200
        key = rng.randint(1, CUSTOMERS)
        row = current.get(key)
        if row is None:
            # Who comes back is the same person.
            name = f"{FIRST[key * 7 % 20]} {LAST[key * 11 // 20 % 20]}"
            row = {"name": name, "email": f"{name.lower().replace(' ', '.')}{key}@example.com",
                   "city": rng.choice(CITY), "plan": "free"}
            op = "INSERT"
        elif rng.random() < 0.06:
            op = "DELETE"
        else:
            op, row = "UPDATE", dict(row)
            what = rng.random()
            if what < 0.4:
                row["plan"] = rng.choice(PLAN)
            elif what < 0.7:
                row["city"] = rng.choice(CITY)
            else:
                row["email"] = row["email"].split("@")[0] + rng.choice(["@example.com", "@example.org", "@example.net"])
        event = {"customer_id": key, **row, "op": op, "changed_at": at(second, n)}
        if op == "DELETE":
            event.update(name=None, email=None, city=None, plan=None)
            current.pop(key)
        else:
            current[key] = row
        arrives = second // 3600
        if rng.random() < 0.08:
            arrives = min(FILES - 1, arrives + rng.randint(1, 4))
        events.append((arrives, rng.random(), event))
        if rng.random() < 0.03:
            events.append((min(FILES - 1, arrives + rng.randint(0, 2)), rng.random(), event))
    events.sort(key=lambda e: e[:2])
    folder = pathlib.Path(__file__).parent / "changes"
    for hour in range(FILES):
        lines = [json.dumps(e) for arrives, _, e in events if arrives == hour]
        (folder / f"2026-03-01T{hour:02d}.json").write_text("\n".join(lines) + "\n")


main()
