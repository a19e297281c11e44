-- Two feeds of the same accounts into each table: both flows of a table write it at the same time as others do.
CREATE TEMPORARY VIEW east AS SELECT * FROM STREAM read_files('east/*.json', format => 'json', maxFilesPerTrigger => 4,
  schema => 'id BIGINT, name STRING, op STRING, at TIMESTAMP');
CREATE TEMPORARY VIEW west AS SELECT * FROM STREAM read_files('west/*.json', format => 'json', maxFilesPerTrigger => 4,
  schema => 'id BIGINT, name STRING, op STRING, at TIMESTAMP');

CREATE STREAMING TABLE accounts COMMENT 'as they are';
CREATE FLOW east_now AS AUTO CDC INTO accounts FROM STREAM(east) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op);
CREATE FLOW west_now AS AUTO CDC INTO accounts FROM STREAM(west) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op);

CREATE STREAMING TABLE accounts_history COMMENT 'as they were';
CREATE FLOW east_then AS AUTO CDC INTO accounts_history FROM STREAM(east) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) STORED AS SCD TYPE 2;
CREATE FLOW west_then AS AUTO CDC INTO accounts_history FROM STREAM(west) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) STORED AS SCD TYPE 2;
