-- Customers as they are. The feed of changes began late in February: it does not tell of those who never changed since.
CREATE OR REFRESH STREAMING TABLE customers;

CREATE FLOW live DEPENDS ON (backfill) AS AUTO CDC INTO customers
FROM STREAM read_files('changes', format => 'json',
  schema => 'id BIGINT, name STRING, plan STRING, op STRING, changed_at TIMESTAMP')
KEYS (id)
APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 1;

-- One export of the whole table, from the first of March. It is placed among the changes by the time at which it was taken.
CREATE TEMPORARY VIEW exported AS
SELECT * FROM read_files('exports', format => 'json',
  schema => 'taken_at TIMESTAMP, id BIGINT, name STRING, plan STRING');

CREATE FLOW backfill AS AUTO CDC ONCE INTO customers
FROM SNAPSHOT (
  SELECT id, name, plan FROM exported
  WHERE taken_at = (SELECT taken_at FROM current_snapshot_version())
)
WITH VERSION (
  SELECT min(taken_at) AS taken_at FROM exported
  WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version()) OR taken_at > (SELECT taken_at FROM last_snapshot_version())
  HAVING min(taken_at) IS NOT NULL
)
KEYS (id)
STORED AS SCD TYPE 1;
