"""Wrote changes/: 6 files of 150 changes to 120 keys, with NULLs, late rows, deletes and texts that need care."""

import datetime
import json
import pathlib
import random

chance = random.Random(5)
here = pathlib.Path(__file__).parent / "changes"
words = ["", "plain", "with space", "quote \"'", "naïve", "日本", "a\nb", "%41", "🙂", "_", "null"]
start = datetime.datetime(2026, 1, 1)


def maybe(value):
    return None if chance.random() < 0.15 else value


for number in range(6):
    lines = []
    for row in range(150):
        moved = start + datetime.timedelta(days=chance.randrange(60), microseconds=chance.randrange(86_400_000_000))
        known = start + datetime.timedelta(hours=number * 200 + row)
        lines.append(
            {
                "id": chance.randrange(60),
                "kind": chance.choice(["a", "b/ü"]),
                "op": "D" if chance.random() < 0.12 else "U",
                "seq": number * 150 + row - (300 if chance.random() < 0.1 else 0),
                "known": known.isoformat() + "Z",
                "flag": maybe(chance.random() < 0.5),
                "small": maybe(chance.randrange(-(2**31), 2**31)),
                "single": maybe(chance.randrange(-1000, 1000) / 8),
                "double": maybe(chance.uniform(-1e12, 1e12)),
                "price": maybe(str(chance.randrange(-(10**18), 10**18) / 10**4)),
                "day": moved.date().isoformat(),
                "at": maybe(moved.isoformat() + "Z"),
                "wall": maybe(moved.isoformat()),
                "raw": maybe(chance.choice(words)),
                "tags": maybe([maybe(chance.choice(words)) for _ in range(chance.randrange(4))]),
                "place": maybe({"city": maybe(chance.choice(words)), "at": maybe({"lat": 1.5, "lon": maybe(2.25)})}),
                "counts": maybe({word: maybe(chance.randrange(9)) for word in chance.sample(words[1:], 2)}),
            }
        )
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (here / f"{number}.json").write_text(text, encoding="utf-8")
