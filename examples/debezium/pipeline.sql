-- A feed of Debezium from PostgreSQL, as a sink writes it to files: a snapshot of the table, changes, and a file that brings a change
-- late and another one again. Columns and types come from the schema in the records.

-- What the table holds now.
CREATE STREAMING TABLE customers;

CREATE FLOW customers AS AUTO CDC INTO customers
FROM STREAM read_files('feed/*.json', format => 'json', envelope => 'debezium')
KEYS (id)
APPLY AS DELETE WHEN _op = 'd'
APPLY AS TRUNCATE WHEN _op = 't'
SEQUENCE BY _position
COLUMNS TO UPDATE _columns
COLUMNS * EXCEPT (_op, _ts_ms, _position, _source, _columns, _rescued_data)
STORED AS SCD TYPE 1;

-- What it held when, by the time of the database.
CREATE STREAMING TABLE customers_history;

CREATE FLOW customers_history AS AUTO CDC INTO customers_history
FROM STREAM read_files('feed/*.json', format => 'json', envelope => 'debezium')
KEYS (id)
APPLY AS DELETE WHEN _op = 'd'
SEQUENCE BY STRUCT(_source.ts_ms, _position)
COLUMNS TO UPDATE _columns
COLUMNS * EXCEPT (_op, _ts_ms, _position, _source, _columns, _rescued_data)
STORED AS SCD TYPE 2;
