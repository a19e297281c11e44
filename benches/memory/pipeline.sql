-- Change files of 100,000 events each into one table, a file a batch.
CREATE STREAMING TABLE customers;
CREATE FLOW customers AS AUTO CDC INTO customers
FROM STREAM read_files('events/*.json', format => 'json',
  schema => 'id BIGINT, seq BIGINT, op STRING, name STRING, plan BIGINT, balance BIGINT', maxFilesPerTrigger => 1)
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;
