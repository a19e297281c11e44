-- Customers of a small shop: change files become one table of what is, and one of what was.

-- The change files, six a batch.
CREATE TEMPORARY VIEW changes AS SELECT * FROM STREAM read_files(
  'changes/*.json',
  format => 'json',
  schema => 'customer_id BIGINT, name STRING, email STRING, city STRING, plan STRING, op STRING, changed_at TIMESTAMP',
  maxFilesPerTrigger => 6
);

-- Bronze: every change as it arrived, late and repeated ones included.
CREATE OR REFRESH STREAMING TABLE customer_changes
COMMENT 'Every change event, as delivered'
AS SELECT * FROM STREAM(changes);

-- What is: one row a customer (SCD type 1).
CREATE OR REFRESH STREAMING TABLE customers
COMMENT 'Customers as they are now';

CREATE FLOW customers_now AS AUTO CDC INTO customers
FROM STREAM(changes)
KEYS (customer_id)
APPLY AS DELETE WHEN op = 'DELETE'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op)
STORED AS SCD TYPE 1;

-- What was: one row a version (SCD type 2). A new e-mail address opens no version, it is corrected in place.
CREATE OR REFRESH STREAMING TABLE customers_history
COMMENT 'Customers as they were, from __START_AT until before __END_AT';

CREATE FLOW customers_then AS AUTO CDC INTO customers_history
FROM STREAM(changes)
KEYS (customer_id)
APPLY AS DELETE WHEN op = 'DELETE'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 2
TRACK HISTORY ON * EXCEPT (email);
