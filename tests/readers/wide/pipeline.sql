-- Every type that both formats hold, in every shape of table: read by the lanes that compare readers, in several batches.
CREATE TEMPORARY VIEW changes AS SELECT * FROM STREAM read_files('changes/*.json', format => 'json', maxFilesPerTrigger => 1,
  schema => 'id BIGINT, kind STRING, op STRING, seq INT, known TIMESTAMP, flag BOOLEAN, small INT, single FLOAT, double DOUBLE,
    price DECIMAL(20, 4), day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, raw STRING, tags ARRAY<STRING>,
    place STRUCT<city: STRING, at: STRUCT<lat: DOUBLE, lon: DOUBLE>>, counts MAP<STRING, BIGINT>');

CREATE STREAMING TABLE bronze AS SELECT *, CAST(raw AS BINARY) AS bytes FROM STREAM(changes);

CREATE STREAMING TABLE now COMMENT 'SCD type 1, key of two columns';
CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(changes) KEYS (id, kind)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op);

CREATE STREAMING TABLE history COMMENT 'SCD type 2';
CREATE FLOW history AS AUTO CDC INTO history FROM STREAM(changes) KEYS (id, kind)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY STRUCT(day, seq) COLUMNS * EXCEPT (op, known) STORED AS SCD TYPE 2;

CREATE STREAMING TABLE beliefs COMMENT 'Bitemporal';
CREATE FLOW beliefs AS AUTO CDC INTO beliefs FROM STREAM(changes) KEYS (id, kind)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY day SYSTEM SEQUENCE BY known COLUMNS (id, kind, price, tags, place) STORED AS BITEMPORAL;

CREATE MATERIALIZED VIEW totals AS SELECT kind, count(*) AS rows, sum(price) AS total, max(at) AS newest FROM now GROUP BY kind;
