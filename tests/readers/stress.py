"""Four writers at once on each table: two flows, a compactor and a foreign deleter; in the end no row is lost or doubled.

Usage: stress.py SECONDS [FORMAT/MODE ..]. To find out who is to blame, STRESS_WITHOUT=compactor,maintain leaves writers out."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import feed
import lake as lakes
import ledger as ledgers
import matrix
import rows
import writers

# So many cold accounts may be under way before the feed waits for the flows.
AHEAD = 600


def start(lake, pipeline, log):
    """The flows, going on until they are stopped."""
    command = lake.command("run", pipeline, "--set", f"strandline.writeMode={lake.mode}", "--continuous")
    command += ["--trigger-interval", "1s", "--json"]
    return subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT)


def feed_files(folder, ledger, deleters, flows, until):
    """Hands over files to both sides until a moment, or until the flows end; how many."""
    files = 0
    while time.monotonic() < until and flows.poll() is None:
        for side in ("east", "west"):
            files += 1
            feed.write(folder / side / f"{files:06}.json", ledger.file(60))
        while ledger.cold - min(deleter.seen for deleter in deleters) > AHEAD and flows.poll() is None:
            if time.monotonic() > until or any(deleter.broken for deleter in deleters):
                break
            time.sleep(0.2)
        time.sleep(0.2)
    return files


def stop(threads):
    for thread in threads:
        thread.stopping.set()
    for thread in threads:
        if thread.ident:
            thread.join()


def compare(verdicts, lake, ledger, gone):
    """The rows of both tables beside those that the ledger says."""
    found = {
        "accounts": ("id, name, at", ledger.now(gone["accounts"])),
        "accounts_history": ("id, name, __START_AT, __END_AT", ledger.then(gone["accounts_history"])),
    }
    for name, (columns, want) in found.items():
        have = rows.collections.Counter()
        for line in lake.query(f"SELECT {columns} FROM {name}"):
            row = json.loads(line)
            have[tuple(padded(row.get(column)) for column in columns.split(", "))] += 1
        print(f"  {name}: {have.total()} rows, {want.total()} by the ledger: ", end="")
        verdicts.judge(have == want, "the same", "OTHER ROWS")
        for word, some in (("lost", want - have), ("too many", have - want)):
            for row in list(some.elements())[:5]:
                print(f"    {word}: {row}")
            if some:
                print(f"    {word}: {some.total()} in all")


def padded(value):
    """Moments with six digits, as the ledger writes them."""
    if isinstance(value, str) and value.endswith("Z"):
        head, _, fraction = value[:-1].partition(".")
        return f"{head}.{fraction.ljust(6, '0')}Z"
    return value


def conflicts(lake):
    """How often a commit of the flows found that another one was first."""
    most = {}
    for line in lake.query("SELECT update_id, flow_name, details FROM events() WHERE event_type = 'flow_progress'"):
        event = json.loads(line)
        metrics = json.loads(event["details"])["flow_progress"].get("metrics", {})
        flow = event["update_id"], event["flow_name"]
        most[flow] = max(most.get(flow, 0), metrics.get("num_conflicts", 0))
    return sum(most.values())


def stress(verdicts, folder, form, mode, seconds):
    lake = lakes.Lake(folder / "lake", form, mode)
    pipeline = folder / "pipeline" / "pipeline.sql"
    pipeline.parent.mkdir()
    shutil.copy(lakes.ROOT / "tests/readers/stress/pipeline.sql", pipeline)
    ledger = ledgers.Ledger(11)
    for side in ("east", "west"):
        feed.write(pipeline.parent / side / "000000.json", ledger.file(200))
    lake.run(pipeline)
    tables = [table for table in lake.tables() if table.name.startswith("accounts")]
    deleters = [writers.Deleter(table) for table in tables]
    others = [writers.Compactor(table) for table in tables]
    others += [writers.Onlooker(next(table for table in tables if table.name == "accounts")), writers.Maintainer(lake)]
    left_out = [word for word in os.environ.get("STRESS_WITHOUT", "").split(",") if word]
    others = [thread for thread in others if not any(word in thread.name for word in left_out)]
    log = folder / "flows.log"
    flows = start(lake, pipeline, log)
    try:
        for thread in [*([] if "deleter" in left_out else deleters), *others]:
            thread.start()
        files = feed_files(pipeline.parent, ledger, deleters, flows, time.monotonic() + seconds)
        stop([*deleters, *others])
    finally:
        alive = flows.poll() is None
        if alive:
            flows.send_signal(signal.SIGINT)
        flows.wait()
    try:
        lake.run(pipeline)
    except lakes.Failed as failure:
        verdicts.judge(False, "", f"FAILED: {failure}\n{log.read_text()[-3000:]}")
    print(f"  {files} files, {ledger.made} events")
    print("  the flows went on to the end: ", end="")
    verdicts.judge(alive and flows.returncode == 0, "yes", f"NO, {flows.returncode}:\n{log.read_text()[-3000:]}")
    print(f"  flows: {conflicts(lake)} conflicts met")
    for thread in [*deleters, *others]:
        print(f"  {thread.name}: {dict(thread.counts)}: ", end="")
        verdicts.judge(thread.broken is None and thread.counts.total() > 0, "went on to the end", f"BROKE: {thread.broken!r}")
    if seconds >= 60 and "deleter" not in left_out:
        print("  deletes came through: ", end="")
        verdicts.judge(all(deleter.gone for deleter in deleters), "yes", "NO: that proves little")
    compare(verdicts, lake, ledger, {deleter.table.name: deleter.gone for deleter in deleters})


def main():
    verdicts = matrix.Verdicts()
    for form, mode in matrix.chosen(sys.argv[2:]):
        print(f"{form}, {mode}")
        with tempfile.TemporaryDirectory(prefix="strandline-stress-") as folder:
            stress(verdicts, pathlib.Path(folder), form, mode, float(sys.argv[1]))
    verdicts.end()


if __name__ == "__main__":
    main()
