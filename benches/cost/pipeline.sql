-- A large base, then small batches of changes.
CREATE STREAMING TABLE customers TBLPROPERTIES ('strandline.writeMode' = '${mode}');
CREATE FLOW customers AS AUTO CDC INTO customers
FROM STREAM read_files('changes/*.csv', format => 'csv', header => true,
  schema => 'id BIGINT, seq BIGINT, name STRING, city STRING, balance BIGINT, note STRING', maxFilesPerTrigger => 1)
KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 1;
