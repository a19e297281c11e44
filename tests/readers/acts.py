"""What other programs do to tables: maintenance, and changes of rows by deltalake and PyIceberg."""

import dataclasses
import datetime
import decimal
import typing

import deltalake
import pyarrow as pa
import readers

# Keys that no event touches after the middle of the feed, and one that no event touches at all.
RESTING = [151, 160, 177, 198]
STRANGE = 5000


@dataclasses.dataclass(frozen=True)
class Act:
    """do: what is done to a table. removes, adds: the keys whose rows go, and that have one row more."""

    name: str
    do: typing.Callable
    removes: frozenset = frozenset()
    adds: frozenset = frozenset()


def day(number):
    """Midnight of a day of January 2026, or beyond it."""
    return datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(days=number - 1)


def by_hand(key, start, end=None):
    """The rows that a user writes into both tables for one version."""
    row = {"id": key, "name": "by hand", "balance": decimal.Decimal("1.50")}
    return {"accounts": {**row, "at": start}, "accounts_history": {**row, "__START_AT": start, "__END_AT": end}}


def append(table, written):
    """Appends rows to a table of either format."""
    if table.lake.form == "delta":
        schema = pa.schema(opened(table).schema().to_arrow())
        deltalake.write_deltalake(table.path, pa.Table.from_pylist(written, schema=schema), mode="append")
    else:
        there = readers.iceberg_table(table)
        there.append(pa.Table.from_pylist(written, schema=there.schema().as_arrow()))


def delete(table, condition):
    """Deletes the rows of a table of either format for which a condition of SQL is true."""
    if table.lake.form == "delta":
        opened(table).delete(condition)
    else:
        readers.iceberg_table(table).delete(condition)


def strange(table):
    append(table, [by_hand(STRANGE, day(2))[table.name]])


def delete_resting(table):
    delete(table, f"id IN ({', '.join(map(str, RESTING))})")


# Delta


def opened(table):
    return deltalake.DeltaTable(table.path)


def delta_vacuum(table):
    opened(table).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def delta_compact_and_vacuum(table):
    opened(table).optimize.compact()
    delta_vacuum(table)


def delta_checkpoint(table):
    opened(table).create_checkpoint()
    opened(table).cleanup_metadata()


# Iceberg


def iceberg_rewrite(table):
    """Compaction as PyIceberg can do it: all rows overwritten by themselves."""
    there = readers.iceberg_table(table)
    there.overwrite(there.scan().to_arrow())


def iceberg_expire(table):
    there = readers.iceberg_table(table)
    there.maintenance.expire_snapshots().older_than(datetime.datetime.now(datetime.timezone.utc)).commit()


def iceberg_property(table):
    with readers.iceberg_table(table).transaction() as change:
        change.set_properties({"owner": "somebody else"})


ACTS = {
    "delta": [
        Act("deltalake compacts", lambda table: opened(table).optimize.compact()),
        Act("deltalake sorts in Z-order", lambda table: opened(table).optimize.z_order(["id"])),
        Act("deltalake vacuums", delta_vacuum),
        Act("deltalake compacts and vacuums", delta_compact_and_vacuum),
        Act("deltalake writes a checkpoint", delta_checkpoint),
        Act("deltalake deletes keys at rest", delete_resting, removes=frozenset(RESTING)),
        Act("deltalake appends a row", strange, adds=frozenset([STRANGE])),
    ],
    "iceberg": [
        Act("PyIceberg rewrites all rows", iceberg_rewrite),
        Act("PyIceberg expires snapshots", iceberg_expire),
        Act("PyIceberg sets a property", iceberg_property),
        Act("PyIceberg deletes keys at rest", delete_resting, removes=frozenset(RESTING)),
        Act("PyIceberg appends a row", strange, adds=frozenset([STRANGE])),
    ],
}
