"""The readers: each gives the rows of a table as an Arrow table, or says why it can't."""

import glob
import sys

import deltalake
import duckdb
import polars
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog


class Refused(Exception):
    """The reader says itself that it doesn't read this: no wrong rows, but none."""


def deltalake_sql(table):
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.path)).execute("SELECT * FROM t")
    return pa.table(rows.read_all() if hasattr(rows, "read_all") else rows)


def deltalake_arrow(table):
    """Also behind `to_pandas`."""
    try:
        return deltalake.DeltaTable(table.path).to_pyarrow_table()
    except deltalake.exceptions.DeltaProtocolError as error:
        if "deletionVectors" not in str(error):
            raise
        raise Refused("it reads no tables with deletion vectors") from error


def polars_delta(table):
    return polars.scan_delta(table.path).collect().to_arrow()


def duck(sql):
    connection = duckdb.connect()
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    for name in ("avro", "delta", "iceberg"):
        (extension,) = glob.glob(f"{packages}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    rows = connection.sql(sql).arrow()
    return rows.read_all() if hasattr(rows, "read_all") else rows


def duckdb_delta(table):
    return duck(f"SELECT * FROM delta_scan('{table.path}')")


def duckdb_iceberg(table):
    return duck(f"SELECT * FROM iceberg_scan('{table.path}')")


def iceberg_table(table):
    """As a PyIceberg table; also for its writers."""
    lake = table.lake
    catalog = SqlCatalog(lake.catalog(), uri=f"sqlite:///{lake.database}", warehouse=f"file://{lake.warehouse}")
    return catalog.load_table(f"default.{table.name}")


def pyiceberg_arrow(table):
    return iceberg_table(table).scan().to_arrow()


def polars_iceberg(table):
    return polars.scan_iceberg(iceberg_table(table)).collect().to_arrow()


READERS = {
    "delta": {
        "deltalake SQL": deltalake_sql,
        "deltalake Arrow": deltalake_arrow,
        "polars": polars_delta,
        "duckdb": duckdb_delta,
    },
    "iceberg": {"pyiceberg": pyiceberg_arrow, "polars": polars_iceberg, "duckdb": duckdb_iceberg},
}
