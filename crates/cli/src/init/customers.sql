-- What arrives: every change, as it came.
CREATE OR REFRESH STREAMING TABLE customer_changes AS
SELECT * FROM STREAM read_files('${changes}', format => 'json',
  schema => 'id BIGINT, name STRING, city STRING, op STRING, changed_at TIMESTAMP');

-- Customers as they are.
CREATE OR REFRESH STREAMING TABLE customers;

CREATE FLOW customers_now AS AUTO CDC INTO customers
FROM STREAM(customer_changes)
KEYS (id)
APPLY AS DELETE WHEN op = 'DELETE'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 1;

-- Customers as they were: a row a version.
CREATE OR REFRESH STREAMING TABLE customers_history;

CREATE FLOW customers_then AS AUTO CDC INTO customers_history
FROM STREAM(customer_changes)
KEYS (id)
APPLY AS DELETE WHEN op = 'DELETE'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (op, changed_at)
STORED AS SCD TYPE 2;
