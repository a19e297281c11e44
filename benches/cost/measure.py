#!/usr/bin/env python3
"""What does a small batch cost on a large base? measure.py BINARY WORK [ROWS] [CHANGES] [FORMAT]

Makes a base of ROWS rows (10 million), then applies CHANGES (10,000) changes of neighbouring keys, and as many of scattered
ones. Fails when the first reads 5 % of the bytes of a full read or more, or the second writes 3 times the bytes of its own
rows or more. Bytes are what the program counts: read of data files, written to them.
"""

import json
import pathlib
import subprocess
import sys

HEADER = "id,seq,name,city,balance,note\n"
CITIES = ["Oslo", "Cusco", "Turin", "Bergen", "Lima", "Kyoto", "Porto"]


def line(key, seq):
    mixed = (key * 2654435761 + seq * 40503) & 0xFFFFFFFF
    return f"{key},{seq},customer {mixed % 1000003},{CITIES[mixed % 7]},{mixed % 1000000},note {mixed:x} of {seq}\n"


def changes(work, number, keys, seq):
    folder = work / "changes"
    folder.mkdir(exist_ok=True)
    draft = work / "draft"
    with draft.open("w") as out:
        out.write(HEADER)
        out.writelines(line(key, seq) for key in keys)
    draft.rename(folder / f"{number:04d}.csv")


def update(binary, work, form, mode="merge_on_read"):
    (work / "pipeline.sql").write_text(pathlib.Path("pipeline.sql").read_text())
    command = [binary, "run", f"{work}/pipeline.sql", "--storage", f"{work}/lake", "--set", f"mode={mode}", "--json"]
    command += ["--format", form]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(ran.stdout)["flows"][0]


def main():
    binary, work = sys.argv[1], pathlib.Path(sys.argv[2])
    given = [int(n) for n in sys.argv[3:5]]
    rows, count = given + [10_000_000, 10_000][len(given):]
    form = sys.argv[5] if len(sys.argv) > 5 else "delta"
    file_rows = 1_000_000
    for number, first in enumerate(range(0, rows, file_rows)):
        changes(work, number, range(first, min(first + file_rows, rows)), 1)
    base = update(binary, work, form)
    full = base["bytes_written"]
    print(f"base of {rows:,} rows: {full:,} bytes in data files, {base['elapsed']:.0f} s")

    first = rows // 3
    changes(work, 9001, range(first, first + count), 2)
    near = update(binary, work, form)
    share = 100 * near["bytes_read"] / full
    print(f"{count:,} changes of neighbouring keys: {near['bytes_read']:,} bytes of {near['files_read']} files read, "
          f"{share:.2f} % of a full read; {near['bytes_written']:,} written, {near['elapsed']:.2f} s")

    step = rows // count
    scattered = [n * step + step // 2 for n in range(count)]
    changes(work, 9002, scattered, 3)
    far = update(binary, work, form)
    alone = work / "alone"
    alone.mkdir()
    changes(alone, 0, scattered, 3)
    own = update(binary, alone, form)["bytes_written"]
    times = far["bytes_written"] / own
    print(f"{count:,} changes of scattered keys: {far['bytes_written']:,} bytes written, {times:.2f} times those of their own "
          f"rows; {far['bytes_read']:,} bytes of {far['files_read']} files read, {far['elapsed']:.2f} s")
    assert near["upserted"] == count and far["upserted"] == count, "every key is there"
    sys.exit(0 if share < 5 and times < 3 else 1)


main()
