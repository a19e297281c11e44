"""Makes the folder orders: a partitioned Delta table with a change feed, as another writer leaves it.

Needs the packages deltalake (1.6) and pyarrow. The files are small and stay as they are: tests name their rows.
"""

import pathlib
import shutil

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

PATH = pathlib.Path(__file__).parent / "orders"


def rows(*rows):
    ids, regions, amounts = zip(*rows)
    columns = {"id": pa.array(ids, pa.int64()), "region": pa.array(regions), "amount": pa.array(amounts, pa.int64())}
    return pa.table(columns)


shutil.rmtree(PATH, ignore_errors=True)
feed = {"delta.enableChangeDataFeed": "true"}
write_deltalake(PATH, rows((1, "north", 10), (2, "south", 20)), partition_by=["region"], configuration=feed)
write_deltalake(PATH, rows((3, "north", 30), (4, "south", 40)), mode="append")
changes = rows((1, "north", 11), (5, "west", 50))
merge = DeltaTable(PATH).merge(changes, "s.id = t.id", source_alias="s", target_alias="t")
merge.when_matched_update_all().when_not_matched_insert_all().execute()
DeltaTable(PATH).optimize.compact()
DeltaTable(PATH).delete("id = 4")
write_deltalake(PATH, rows((6, "south", 60)), mode="append")
