"""How many rows of a table are masked: held by a data file, and marked as deleted beside it?"""

import deltalake
import pyarrow as pa
import readers


def of_delta(table):
    """The rows that deletion vectors of live files mark."""
    vectors = pa.table(deltalake.DeltaTable(table.path).deletion_vectors()).to_pylist()
    return sum(vector["selection_vector"].count(False) for vector in vectors)


def of_iceberg(table):
    """The rows that delete files of the newest snapshot mark."""
    snapshot = readers.iceberg_table(table).current_snapshot()
    return int(snapshot.summary.get("total-position-deletes", 0)) if snapshot and snapshot.summary else 0


def count(table):
    return {"delta": of_delta, "iceberg": of_iceberg}[table.lake.form](table)
