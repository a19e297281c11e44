"""What Spark does to tables between two batches: maintenance, and changes of rows. Usage: foreign_of_spark.py [FORMAT/MODE ..]"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import acts
import foreign
import matrix
import session

STRANGE_ROW = "5000L, 'by hand', CAST(1.5 AS DECIMAL(12, 2)), TIMESTAMP '2026-01-02 00:00:00 UTC'"


def statements(spark, *texts):
    """An act of SQL statements; {t} is the table as SQL knows it, {catalog} its catalog and {name} its full name."""

    def do(table):
        beside = session.beside(spark, table.lake)
        catalog = table.lake.catalog() if table.lake.form == "iceberg" else ""
        for text in texts:
            # The catalog's own name first: it may be that of the namespace too.
            beside.sql(text.format(t=session.identifier(table), catalog=catalog, name=f"{catalog}.default.{table.name}"))

    return do


def strange(spark):
    def do(table):
        end = "" if table.name == "accounts" else ", CAST(NULL AS TIMESTAMP)"
        statements(spark, f"INSERT INTO {{t}} VALUES ({STRANGE_ROW}{end})")(table)

    return do


def every(spark):
    """The acts, by format."""
    resting = ", ".join(map(str, acts.RESTING))
    delete = f"DELETE FROM {{t}} WHERE id IN ({resting})"
    touch = f"UPDATE {{t}} SET name = name WHERE id IN ({resting})"
    mode_of = "ALTER TABLE {{t}} SET TBLPROPERTIES ('write.{}.mode' = '{}')"
    expire = "CALL {catalog}.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 1)"
    both = {"removes": frozenset(acts.RESTING)}
    masked = [mode_of.format(kind, "merge-on-read") for kind in ("delete", "update", "merge")]
    return {
        "delta": [
            acts.Act("Spark: OPTIMIZE", statements(spark, "OPTIMIZE {t}")),
            acts.Act("Spark: OPTIMIZE .. ZORDER BY, VACUUM", statements(spark, "OPTIMIZE {t} ZORDER BY (id)", "VACUUM {t} RETAIN 0 HOURS")),
            acts.Act("Spark: UPDATE that changes nothing", statements(spark, touch)),
            acts.Act("Spark: DELETE", statements(spark, delete), **both),
            acts.Act("Spark: INSERT", strange(spark), adds=frozenset([acts.STRANGE])),
            acts.Act(
                "Spark: DELETE with deletion vectors, REORG .. APPLY (PURGE)",
                statements(
                    spark,
                    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
                    delete,
                    "REORG TABLE {t} APPLY (PURGE)",
                ),
                **both,
            ),
            acts.Act(
                "Spark: DELETE with deletion vectors",
                statements(spark, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')", delete),
                **both,
            ),
        ],
        "iceberg": [
            acts.Act(
                "Spark: rewrite_data_files",
                statements(spark, "CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"),
            ),
            acts.Act(
                "Spark: rewrite_data_files sorted, expire_snapshots",
                statements(
                    spark,
                    "CALL {catalog}.system.rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => 'name DESC')",
                    expire,
                ),
            ),
            acts.Act(
                "Spark: rewrite_position_delete_files, rewrite_manifests",
                statements(
                    spark,
                    "CALL {catalog}.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))",
                    "CALL {catalog}.system.rewrite_manifests('{name}')",
                ),
            ),
            acts.Act("Spark: UPDATE that changes nothing", statements(spark, touch)),
            acts.Act("Spark: DELETE", statements(spark, delete), **both),
            acts.Act("Spark: DELETE and UPDATE in merge-on-read", statements(spark, *masked, touch, delete), **both),
            acts.Act("Spark: INSERT", strange(spark), adds=frozenset([acts.STRANGE])),
        ],
    }


def main():
    verdicts = matrix.Verdicts()
    with tempfile.TemporaryDirectory(prefix="strandline-spark-") as scratch:
        spark = session.start(scratch)
        for form, mode in matrix.chosen(sys.argv[1:]):
            foreign.check(verdicts, form, mode, every(spark))
        spark.stop()
    verdicts.end()


main()
