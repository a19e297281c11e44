SET k = 'it''s'; SET n = 5;
CREATE SINK s USING json OPTIONS ('path' = '/out/${k}', 'x' 'y') COMMENT "${n}";
CREATE MATERIALIZED VIEW m (CONSTRAINT c EXPECT (n > ${n}) ON VIOLATION DROP ROW)
  AS SELECT k, count(*) AS n FROM delta.`/t` JOIN json.`/in` USING (k) GROUP BY k;
CREATE FLOW u DEPENDS ON f AS UPDATE INTO s BY NAME SELECT '\${k}' AS a FROM STREAM(t) WITH (readChangeFeed, 'startingVersion' = 5) c;
CREATE FLOW f AS AUTO CDC INTO t
  FROM SNAPSHOT (SELECT * FROM x WHERE d = (SELECT d FROM current_snapshot_version()))
  WITH VERSION (SELECT min(d) AS d FROM x WHERE d > (SELECT d FROM last_snapshot_version() l)) KEYS (k);
AUTO CDC INTO v FROM SNAPSHOT CALLBACK KEYS (k)
-- COMMAND ----------
CREATE STREAMING TABLE t FLOW INSERT BY NAME SELECT * FROM read_kafka(subscribe => 'a', schema => 'b INT')
