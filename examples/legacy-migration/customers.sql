-- Customers as they were, from the first day of the old system on.
CREATE OR REFRESH STREAMING TABLE customers;

-- What the old system knew: versions with their ends. Taken once.
CREATE FLOW legacy AS AUTO CDC ONCE INTO customers
FROM read_files('legacy', format => 'json',
  schema => 'id STRING, name STRING, plan STRING, valid_from TIMESTAMP, valid_to TIMESTAMP')
KEYS (id)
SEQUENCE BY valid_from
COLUMNS * EXCEPT (valid_from, valid_to)
STORED AS SCD TYPE 2
VALID TO valid_to;

-- What the new system tells since.
CREATE FLOW live DEPENDS ON (legacy) AS AUTO CDC INTO customers
FROM STREAM read_files('changes', format => 'json',
  schema => 'id STRING, name STRING, plan STRING, op STRING, changed_at TIMESTAMP')
KEYS (id)
APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 2;
