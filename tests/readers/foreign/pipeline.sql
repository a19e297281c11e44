-- Accounts: what is, and what was. Other writers change the tables between the batches of these flows.
CREATE TEMPORARY VIEW changes AS SELECT * FROM STREAM read_files('changes/*.json', format => 'json', maxFilesPerTrigger => 1,
  schema => 'id BIGINT, name STRING, balance DECIMAL(12, 2), op STRING, at TIMESTAMP');

CREATE STREAMING TABLE accounts COMMENT 'as they are';
CREATE FLOW accounts AS AUTO CDC INTO accounts FROM STREAM(changes) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op);

CREATE STREAMING TABLE accounts_history COMMENT 'as they were';
CREATE FLOW accounts_history AS AUTO CDC INTO accounts_history FROM STREAM(changes) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) STORED AS SCD TYPE 2;
