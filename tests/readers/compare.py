"""Reads every table of a storage with deltalake and compares it, row for row, with `strandline query`.

Usage: compare.py STRANDLINE_BINARY STORAGE
"""

import datetime
import decimal
import json
import pathlib
import subprocess
import sys

from deltalake import DeltaTable


def plain(value):
    """A value as both sides can be compared: instants as text, numbers as they are."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    if isinstance(value, (datetime.date, decimal.Decimal)):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def same_text(value):
    """The JSON of `strandline query` writes instants in RFC 3339."""
    if isinstance(value, str):
        try:
            return plain(datetime.datetime.fromisoformat(value.replace("Z", "+00:00")))
        except ValueError:
            return value
    if isinstance(value, dict):
        return {name: same_text(inner) for name, inner in value.items()}
    return value


def rows_of(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def main():
    binary, storage = sys.argv[1], pathlib.Path(sys.argv[2])
    tables = sorted(path.name for path in (storage / "tables").iterdir() if path.is_dir())
    assert tables, f"no tables in {storage}"
    wrong = 0
    for name in tables:
        theirs = DeltaTable(str(storage / "tables" / name)).to_pyarrow_table().to_pylist()
        theirs = rows_of({c: plain(v) for c, v in row.items()} for row in theirs)
        command = [binary, "query", "--storage", str(storage), f'SELECT * FROM "{name}"', "--output", "json"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours = rows_of({c: same_text(v) for c, v in json.loads(line).items()} for line in output.splitlines())
        verdict = "agree" if ours == theirs else "DIFFER"
        wrong += ours != theirs
        print(f"{name}: {len(theirs)} rows by deltalake, {len(ours)} by strandline: {verdict}")
        for row in list(set(ours) ^ set(theirs))[:5]:
            print("   ", row)
    sys.exit(1 if wrong else 0)


main()
