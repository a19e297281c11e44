"""A folder that strandline fills: running pipelines into it, asking it, and finding its tables for others."""

import os
import pathlib
import sqlite3
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("STRANDLINE", str(ROOT / "target/debug/strandline"))


class Failed(Exception):
    """A command of ours that did not end well, with what it said."""


class Table:
    """A table as another program finds it.

    name: as in SQL. path: a Delta table's folder, or an Iceberg table's newest metadata file."""

    def __init__(self, lake, name, path):
        self.lake, self.name, self.path = lake, name, path


class Lake:
    """A storage folder in one table format, written in one way."""

    def __init__(self, storage, form, mode):
        self.storage, self.form, self.mode = pathlib.Path(storage), form, mode

    def __str__(self):
        return f"{self.form}, {self.mode}"

    def command(self, verb, *arguments):
        return [BINARY, verb, "--storage", str(self.storage), "--format", self.form, *map(str, arguments)]

    def ask(self, verb, *arguments):
        """What a command prints."""
        command = self.command(verb, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, pipeline, *arguments):
        """Runs a pipeline's file once."""
        return self.ask("run", pipeline, "--set", f"strandline.writeMode={self.mode}", *arguments)

    def query(self, sql):
        """The rows of a query, each a line of JSON."""
        return self.ask("query", sql, "--output", "json").splitlines()

    @property
    def database(self):
        return self.storage / "catalog.db"

    @property
    def warehouse(self):
        return self.storage / "warehouse"

    def catalog(self):
        """The name under which the Iceberg catalog's tables are listed in its database."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            names = [name for (name,) in database.execute("SELECT DISTINCT catalog_name FROM iceberg_tables")]
        assert len(names) == 1, f"catalogs in {self.database}: {names}"
        return names[0]

    def tables(self):
        """Every table that the pipelines of this lake filled, by name."""
        if self.form == "delta":
            folders = sorted(path for path in (self.storage / "tables").iterdir() if path.is_dir())
            return [Table(self, path.name, str(path)) for path in folders]
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            sql = "SELECT table_name, metadata_location FROM iceberg_tables WHERE table_namespace = 'default' ORDER BY 1"
            found = database.execute(sql).fetchall()
        return [Table(self, name, location.removeprefix("file://")) for name, location in found]


def pipelines():
    """Examples that run without a server and without code of their own, and a pipeline of ours with every type."""
    found = [path for path in sorted((ROOT / "examples").glob("*/pipeline.*")) if path.suffix in (".sql", ".yml")]
    alone = [path for path in found if "foreachBatch" not in path.read_text()]
    return [*alone, ROOT / "tests/readers/wide/pipeline.sql"]
