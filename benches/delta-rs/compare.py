"""Applies the same changes with `strandline run` and with a delta-rs MERGE, in turn; prints CPU seconds and checks that the rows are equal.

compare.py STRANDLINE FOLDER [ROUNDS]

For strandline the whole process counts, start included; for delta-rs only the MERGE with its de-duplication in DuckDB, imports and
the load of the base left out.
"""

import glob
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

COLUMNS = "customer_id, name, email, city, balance, tier, seq, ts"

PIPELINE = """
CREATE STREAMING TABLE customers;
CREATE FLOW customers AS AUTO CDC INTO customers
FROM STREAM read_files('in/*.parquet', format => 'parquet', schema => 'customer_id BIGINT, name STRING, email STRING,
  city STRING, balance DECIMAL(18, 2), tier INT, op STRING, seq BIGINT, ts TIMESTAMP')
KEYS (customer_id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS SCD TYPE 1;
"""

MERGE = """
import os, resource, sys, json
import duckdb
from deltalake import DeltaTable, WriterProperties
table, files = sys.argv[1], json.loads(sys.argv[2])
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
before = cpu()
con = duckdb.connect(); con.execute("SET TimeZone='UTC'; SET threads=2")
latest = con.sql(f"SELECT * FROM read_parquet({files!r}) QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY seq DESC) = 1")
values = {c: f"s.{c}" for c in "customer_id name email city balance tier seq ts".split()}
(DeltaTable(table).merge(latest.to_arrow_table(), "t.customer_id = s.customer_id", source_alias="s", target_alias="t",
                         writer_properties=WriterProperties(compression="ZSTD"))
 .when_matched_delete("s.op = 'D' AND s.seq > t.seq").when_matched_update(values, "s.seq > t.seq")
 .when_not_matched_insert(values, "s.op <> 'D'").execute())
print(cpu() - before)
"""


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def strandline(binary, base, changes, work):
    (work / "in").mkdir()
    (work / "p.sql").write_text(PIPELINE)
    run = [binary, "run", str(work / "p.sql"), "--storage", str(work / "lake")]
    os.link(base, work / "in" / "0-base.parquet")
    subprocess.run(run, check=True, capture_output=True)
    for change in changes:
        os.link(change, work / "in" / ("1-" + os.path.basename(change)))
    before = children()
    subprocess.run(run, check=True, capture_output=True)
    return children() - before, str(work / "lake" / "tables" / "customers")


def delta_rs(base, changes, work):
    import pyarrow.parquet as pq
    from deltalake import WriterProperties, write_deltalake

    table = str(work / "t")
    write_deltalake(table, pq.read_table(base), writer_properties=WriterProperties(compression="ZSTD"))
    call = [sys.executable, "-c", MERGE, table, json.dumps(changes)]
    return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout), table


def checksum(table):
    import duckdb
    from deltalake import DeltaTable

    rows = DeltaTable(table).to_pyarrow_table().select([c.strip() for c in COLUMNS.split(",")])
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    con.register("rows", rows)
    return con.execute(
        f"SELECT count(*), sum(hash(row({COLUMNS.replace('ts', 'epoch_us(ts)')}))::HUGEINT) FROM rows"
    ).fetchone()


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    base, changes = str(folder / "base.parquet"), sorted(glob.glob(str(folder / "changes" / "*.parquet")))
    ours, theirs = [], []
    for n in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as a, tempfile.TemporaryDirectory(dir=folder) as b:
            cpu, ours_at = strandline(binary, base, changes, pathlib.Path(a))
            ours.append(cpu)
            cpu, theirs_at = delta_rs(base, changes, pathlib.Path(b))
            theirs.append(cpu)
            if n == 0:
                mine, other = checksum(ours_at), checksum(theirs_at)
                print("rows", mine[0], other[0], "equal" if mine == other else "DIFFERENT", flush=True)
                assert mine == other
        print(f"round {n + 1}: strandline {ours[-1]:.2f} CPU s, delta-rs {theirs[-1]:.2f} CPU s", flush=True)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"median: strandline {a:.2f} CPU s, delta-rs {b:.2f} CPU s, ratio {a / b:.2f}")


main()
