-- A source that tells no changes: every night it exports the whole table. Two targets are made of the same exports.

CREATE TEMPORARY VIEW exported AS
SELECT * FROM read_files('exports', format => 'json',
  schema => 'exported_on DATE, id BIGINT, name STRING, plan STRING');

-- What customers were, a row a version.
CREATE OR REFRESH STREAMING TABLE customers_history;

CREATE FLOW history AS AUTO CDC INTO customers_history
FROM SNAPSHOT (
  SELECT id, name, plan FROM exported
  WHERE exported_on = (SELECT day FROM current_snapshot_version())
)
WITH VERSION (
  -- The oldest export that was not taken yet; no row when there is none.
  SELECT min(exported_on) AS day FROM exported
  WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version()) OR exported_on > (SELECT day FROM last_snapshot_version())
  HAVING min(exported_on) IS NOT NULL
)
KEYS (id) STORED AS SCD TYPE 2;

-- What customers are: the same flow into SCD type 1, of the newest export only.
CREATE OR REFRESH STREAMING TABLE customers;

CREATE FLOW now AS AUTO CDC INTO customers
FROM SNAPSHOT (
  SELECT id, name, plan FROM exported
  WHERE exported_on = (SELECT day FROM current_snapshot_version())
)
WITH VERSION (
  SELECT max(exported_on) AS day FROM exported
  WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version()) OR exported_on > (SELECT day FROM last_snapshot_version())
  HAVING max(exported_on) IS NOT NULL
)
KEYS (id);
