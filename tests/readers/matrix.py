"""Runs the examples in each format and write mode, and reads every table with every reader. Usage: matrix.py [FORMAT/MODE ..] [PIPELINE ..]"""

import os
import sys
import tempfile

os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")

import lake as lakes
import masks
import readers
import rows


class Verdicts:
    """What was compared, and how it went."""

    def __init__(self):
        self.passed = self.failed = 0

    def compare(self, table, lines, name, read):
        """Compares what a reader gives with the lines of our query."""
        try:
            there = read(table)
        except readers.Refused as refusal:
            print(f"  {table.name}: {name} refuses: {refusal}")
            return
        left, right = rows.ours(lines, there.schema), rows.theirs(there)
        print(f"  {table.name}: {right.total()} rows by {name}, {left.total()} by strandline: ", end="")
        self.judge(left == right, "agree", "DIFFER")
        for line in rows.difference(left, right):
            print(line)

    def judge(self, right, yes, no):
        self.passed += right
        self.failed += not right
        print(yes if right else no)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


def chosen(arguments):
    """The formats and write modes that are asked for, all without arguments."""
    every = [(form, mode) for form in ("delta", "iceberg") for mode in ("copy_on_write", "merge_on_read")]
    return [tuple(choice.split("/")) for choice in arguments if "/" in choice] or every


def filled(form, mode, folder):
    """The lakes that the pipelines fill in one format and write mode, one after the other, each in a folder of its own.

    Arguments without a slash are names of pipelines: only those."""
    wanted = [choice for choice in sys.argv[1:] if "/" not in choice]
    for pipeline in lakes.pipelines():
        if wanted and pipeline.parent.name not in wanted:
            continue
        lake = lakes.Lake(f"{folder}/{form}-{mode}-{pipeline.parent.name}", form, mode)
        lake.run(pipeline)
        assert lake.tables(), f"{pipeline} made no table"
        print(f"{pipeline.parent.name} ({lake})")
        yield lake


def check(verdicts, form, mode, chosen_readers):
    """Every table of every pipeline in one format and write mode, with every reader."""
    masked = 0
    with tempfile.TemporaryDirectory(prefix="strandline-readers-") as folder:
        for lake in filled(form, mode, folder):
            for table in lake.tables():
                masked += masks.count(table)
                lines = lake.query(f'SELECT * FROM "{table.name}"')
                for name, read in chosen_readers[form].items():
                    verdicts.compare(table, lines, name, read)
    print(f"{form}, {mode}: {masked} masked rows in all tables: ", end="")
    verdicts.judge((masked > 0) == (mode == "merge_on_read"), "as it should be", "WRONG, merge-on-read masks, and only that")


def main():
    verdicts = Verdicts()
    for form, mode in chosen(sys.argv[1:]):
        check(verdicts, form, mode, readers.READERS)
    verdicts.end()


if __name__ == "__main__":
    main()
