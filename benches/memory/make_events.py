#!/usr/bin/env python3
"""Writes change files for the memory check: make_events.py FOLDER [EVENTS] [KEYS] [BATCH].

One JSON Lines file a batch; keys at random, one event in 20 a delete, one in 10 late by up to a batch.
"""

import pathlib
import random
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    events, keys, batch = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((2, 10_000_000), (3, 200_000), (4, 100_000)))
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    for number in range(events // batch):
        lines = []
        for n in range(number * batch, (number + 1) * batch):
            seq = max(1, n - rng.randrange(batch)) if rng.random() < 0.1 else n + 1
            op = "D" if rng.random() < 0.05 else "U"
            lines.append(f'{{"id":{rng.randrange(keys)},"seq":{seq},"op":"{op}","name":"customer {n % 977}","plan":{n % 3},"balance":{n % 100000}}}\n')
        (folder / f"{number:05d}.json").write_text("".join(lines))


main()
