"""Apache Spark in one local thread, with Delta Lake and Iceberg. `READERS_JARS` is the folder of their jars."""

import glob
import os

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.jars": ",".join(sorted(glob.glob(os.path.join(os.environ["READERS_JARS"], "*.jar")))),
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A file that vacuum or expiry may take is young here.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def start(scratch):
    """Spark, whose own files go into the folder `scratch`."""
    builder = SparkSession.builder.master("local[1]").config("spark.sql.warehouse.dir", f"{scratch}/spark-warehouse")
    for name, value in {**SETTINGS, "spark.local.dir": f"{scratch}/spark-local"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def beside(spark, lake):
    """A session of the same Spark that knows the Iceberg catalog of a lake by the name that its tables are listed under."""
    session = spark.newSession()
    if lake.form == "iceberg":
        prefix = f"spark.sql.catalog.{lake.catalog()}"
        session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        session.conf.set(f"{prefix}.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
        # Other writers may hold the database for a moment.
        session.conf.set(f"{prefix}.uri", f"jdbc:sqlite:{lake.database}?busy_timeout=10000")
        session.conf.set(f"{prefix}.warehouse", f"file://{lake.warehouse}")
    return session


def identifier(table):
    """What a table is called in the SQL of such a session."""
    if table.lake.form == "delta":
        return f"delta.`{table.path}`"
    return f"{table.lake.catalog()}.default.`{table.name}`"
