"""Writers beside ours, each in a thread of its own: they take what they see, and count how they fare."""

import collections
import contextlib
import random
import threading

import acts
import deltalake
import ledger
import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg.exceptions
import readers
import sqlalchemy.exc

# What a writer gets that another one was before.
CONFLICTS = (
    deltalake.exceptions.CommitFailedError,
    pyiceberg.exceptions.CommitFailedException,
    pyiceberg.exceptions.ValidationException,
    sqlalchemy.exc.OperationalError,
)


# deltalake 1.6.6 does not notice that a compaction, its own or another's, took away the files that it is about to remove: it
# removes them once more, and adds their rows again. On Delta those that compact or delete from outside take turns, therefore;
# the flows take no turn with anybody.
TURN = threading.Lock()


class Writer(threading.Thread):
    """Does something again and again until it is told to stop. A surprise ends it, and is kept in `broken`."""

    def __init__(self, name, pause):
        super().__init__(name=name, daemon=True)
        self.pause, self.counts, self.broken = pause, collections.Counter(), None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.wait(self.pause):
                self.once()
        except Exception as error:  # whatever it is, the lane reports it at its end
            self.broken = error

    def once(self):
        raise NotImplementedError

    def attempt(self, what, do):
        """True if it was done, False if another writer was first."""
        try:
            with turn(self.table.lake):
                do()
        except CONFLICTS:
            self.counts[f"{what}: conflict"] += 1
            return False
        except deltalake.exceptions.DeltaError as error:
            # A file that was compacted away between the look and the read.
            if "not found" not in str(error).lower() and "No such file" not in str(error):
                raise
            self.counts[f"{what}: file gone"] += 1
            return False
        self.counts[what] += 1
        return True


def turn(lake):
    return TURN if lake.form == "delta" else contextlib.nullcontext()


def cold_accounts(table):
    """The cold accounts that a table shows."""
    if table.lake.form == "delta":
        sql = f"SELECT id FROM t WHERE id >= {ledger.COLD}"
        rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.path)).execute(sql)
        found = pa.table(rows.read_all() if hasattr(rows, "read_all") else rows)
    else:
        scan = readers.iceberg_table(table).scan(row_filter=f"id >= {ledger.COLD}", selected_fields=("id",))
        found = scan.to_arrow()
    return found["id"].to_pylist()


class Deleter(Writer):
    """Deletes cold accounts that a table shows: their only event is in there already."""

    def __init__(self, table):
        super().__init__(f"deleter of {table.name}", 0.5)
        self.table, self.gone, self.seen = table, set(), ledger.COLD
        self.chance = random.Random(table.name)

    def once(self):
        try:
            shown = cold_accounts(self.table)
        except (deltalake.exceptions.DeltaError, FileNotFoundError):
            self.counts["look: file gone"] += 1
            return
        self.seen = max([self.seen, *shown])
        chosen = [account for account in shown if self.chance.random() < 0.2][:50]
        if chosen:
            condition = f"id IN ({', '.join(map(str, chosen))})"
            # PyIceberg finds a conflict with every commit that added rows: some tries are needed.
            if any(self.attempt("delete", lambda: acts.delete(self.table, condition)) for _ in range(5)):
                self.gone.update(chosen)


class Compactor(Writer):
    """Compacts a table as its format's Python library can."""

    def __init__(self, table):
        super().__init__(f"compactor of {table.name}", 2.0)
        self.table = table

    def once(self):
        if self.table.lake.form == "delta":
            if self.counts.total() % 3 == 2:
                self.attempt("z-order", lambda: acts.opened(self.table).optimize.z_order(["id"]))
            else:
                self.attempt("compact", lambda: acts.opened(self.table).optimize.compact())
        else:
            self.attempt("rewrite", lambda: acts.iceberg_rewrite(self.table))


class Maintainer(Writer):
    """Runs `strandline maintain` again and again."""

    def __init__(self, lake):
        super().__init__("strandline maintain", 1.0)
        self.lake = lake

    def once(self):
        with turn(self.lake):
            self.lake.ask("maintain")
        self.counts["maintain"] += 1


class Onlooker(Writer):
    """Reads what is, as others do: in every version an account has one row at most."""

    def __init__(self, table):
        super().__init__(f"onlooker of {table.name}", 1.0)
        self.table = table

    def once(self):
        read = readers.deltalake_sql if self.table.lake.form == "delta" else readers.pyiceberg_arrow
        try:
            ids = read(self.table)["id"]
        except (deltalake.exceptions.DeltaError, FileNotFoundError):
            self.counts["look: file gone"] += 1
            return
        assert pc.count_distinct(ids).as_py() == len(ids), f"{self.table.name} shows an account twice"
        self.counts["look"] += 1
