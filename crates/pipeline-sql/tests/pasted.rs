//! Do the shapes of published examples parse, with nothing changed but paths and names? (A-35)
//!
//! The statements are our own; what they have in common with the documentation of Lakeflow and of Spark Declarative
//! Pipelines is which clauses they use, in which order and spelling.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use strandline_cdc_core::spec::StoredAs;
use strandline_pipeline_sql::{
    DatasetDefinition, FlowDefinition, FlowKind, InputKind, OnViolation, OptionValue, PipelineDefinition,
    SourceFile, SqlExpr, Support, parse_pipeline_with,
};

/// What the text defines; printing it changes nothing, and its flows go together.
fn paste(text: &str) -> PipelineDefinition {
    let read = |text: &str| {
        parse_pipeline_with(&[SourceFile::new("pasted.sql", text)], &Support::everything())
            .unwrap_or_else(|errors| panic!("{}", errors[0].render(text)))
    };
    let definition = read(text);
    assert_eq!(read(&definition.to_sql()), definition, "{}", definition.to_sql());
    if let Err(errors) = definition.graph() {
        panic!("{errors:?}");
    }
    definition
}

fn flow<'a>(definition: &'a PipelineDefinition, name: &str) -> &'a FlowDefinition {
    definition.flows.iter().find(|flow| flow.name == name).unwrap_or_else(|| panic!("no flow {name}"))
}

fn shape(flow: &FlowDefinition) -> StoredAs {
    let FlowKind::AutoCdc(cdc) = &flow.kind else { panic!("{flow:?}") };
    cdc.options.stored_as
}

#[test]
fn a_35_default_flows_and_flows_of_their_own() {
    let pipeline = paste(
        r#"-- a table with its default flow
        CREATE OR REFRESH STREAMING TABLE visits_bronze
        AS SELECT * FROM STREAM read_files("/data/visits/*", format => "csv");

        -- the same, with the flow apart
        CREATE OR REFRESH STREAMING TABLE visits_silver;
        CREATE FLOW visits_silver
        AS INSERT INTO visits_silver BY NAME
        SELECT * FROM STREAM(visits_bronze);

        -- several regions into one table, rather than one query with UNION
        CREATE OR REFRESH STREAMING TABLE visits;
        CREATE FLOW
          visits_north
        AS INSERT INTO
          visits BY NAME
        SELECT * FROM STREAM(visits_silver) WHERE region = "north";
        CREATE FLOW
          visits_south
        AS INSERT INTO
          visits BY NAME
        SELECT * FROM STREAM read_files("/data/south", format => "csv", header => "true");"#,
    );
    let names: Vec<_> = pipeline.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["visits_bronze", "visits_silver", "visits_north", "visits_south"]);
    assert!(pipeline.flows.iter().all(|flow| flow.query().is_some_and(|query| query.streaming)));
}

#[test]
fn a_35_flows_from_two_topics_without_the_word_stream() {
    let pipeline = paste(
        "CREATE OR REFRESH STREAMING TABLE readings;
         CREATE FLOW
           meters
         AS INSERT INTO
           readings BY NAME
         SELECT * FROM
           read_kafka(bootstrapServers => 'broker:9092', subscribe => 'meters');
         CREATE FLOW pumps AS INSERT INTO readings BY NAME
         SELECT * FROM STREAM read_kafka(bootstrapServers => 'broker:9092', subscribe => 'pumps',
           startingOffsets => 'earliest', `kafka.security.protocol` => 'SASL_SSL');
         CREATE FLOW archive AS INSERT INTO ONCE readings BY NAME
         SELECT * FROM read_kafka(bootstrapServers => 'broker:9092', subscribe => 'old')",
    );
    let streams: Vec<_> =
        pipeline.flows.iter().map(|flow| flow.query().unwrap().inputs[0].streaming).collect();
    assert_eq!(streams, [true, true, false], "a ONCE flow reads what is there");
    let InputKind::ReadKafka(pumps) = &pipeline.flows[1].query().unwrap().inputs[0].kind else {
        panic!("no topic")
    };
    assert_eq!(pumps.options["kafka.security.protocol"], OptionValue::Text("SASL_SSL".into()));
}

#[test]
fn a_35_a_flow_and_a_backfill_that_leave_out_by_name() {
    let pipeline = paste(
        "CREATE OR REFRESH STREAMING TABLE members;
         CREATE VIEW former AS SELECT * FROM delta.`/lake/former`;
         -- goes on
         CREATE FLOW members_live AS
         INSERT INTO members
         SELECT * FROM stream(delta.`/lake/members`);
         -- runs once
         CREATE FLOW members_former AS
         INSERT INTO ONCE members
         SELECT * FROM former;",
    );
    assert!(!flow(&pipeline, "members_live").once && flow(&pipeline, "members_former").once);
}

#[test]
fn a_35_yearly_backfills_beside_a_stream_of_files() {
    let pipeline = paste(
        r#"CREATE OR REFRESH STREAMING TABLE signups;

        CREATE FLOW
          signups_incremental
        AS INSERT INTO
          signups BY NAME
        SELECT * FROM STREAM read_files(
          "/data/signups/*/*/*",
          format => "json",
          inferColumnTypes => true,
          maxFilesPerTrigger => 100,
          schemaEvolutionMode => "addNewColumns",
          modifiedAfter => "2024-12-31T23:59:59.999+00:00"
        )
        WHERE year(at) >= '2025';

        CREATE FLOW
          signups_2024
        AS INSERT INTO ONCE
          signups BY NAME
        SELECT * FROM read_files("/data/signups/year=2024/*/*", format => "json", inferColumnTypes => true);

        CREATE FLOW signups_2023 AS INSERT ONCE INTO signups BY NAME
        SELECT * FROM read_files("/data/signups/year=2023/*/*", format => "json", inferColumnTypes => true);"#,
    );
    let InputKind::ReadFiles(files) = &pipeline.flows[0].query().unwrap().inputs[0].kind else {
        panic!("no files")
    };
    assert_eq!(files.option("maxFilesPerTrigger").and_then(OptionValue::as_integer), Some(100));
    assert_eq!(
        files.option("modifiedAfter").map(ToString::to_string).as_deref(),
        Some("2024-12-31T23:59:59.999+00:00")
    );
    assert!(flow(&pipeline, "signups_2024").once && flow(&pipeline, "signups_2023").once);
}

#[test]
fn a_35_changes_in_every_shape_with_the_published_layout() {
    let pipeline = paste(
        r#"CREATE OR REFRESH STREAMING TABLE changes AS SELECT * FROM STREAM read_files("/cdc", format => "json");

        CREATE OR REFRESH STREAMING TABLE pets_now;
        CREATE FLOW pets_now_flow AS AUTO CDC INTO
          pets_now
        FROM
          stream(changes)
        KEYS
          (petId)
        APPLY AS DELETE WHEN
          operation = "DELETE"
        APPLY AS TRUNCATE WHEN
          operation = "TRUNCATE"
        SEQUENCE BY
          sequenceNum
        COLUMNS * EXCEPT
          (operation, sequenceNum)
        STORED AS
          SCD TYPE 1;

        CREATE OR REFRESH STREAMING TABLE pets_history;
        CREATE FLOW pets_history_flow
        AS AUTO CDC INTO
          pets_history
        FROM stream(changes)
        KEYS (petId)
        APPLY AS DELETE WHEN
        operation = "DELETE"
        SEQUENCE BY sequenceNum
        COLUMNS * EXCEPT (operation, sequenceNum)
        STORED AS SCD TYPE 2
        TRACK HISTORY ON * EXCEPT (owner);

        CREATE OR REFRESH STREAMING TABLE pets_known TBLPROPERTIES ('pipelines.channel' = 'PREVIEW')
        FLOW AUTO CDC
        FROM STREAM changes
        KEYS (petId)
        SEQUENCE BY validFrom
        SYSTEM SEQUENCE BY receivedAt
        STORED AS BITEMPORAL;"#,
    );
    assert_eq!(shape(flow(&pipeline, "pets_now_flow")), StoredAs::Scd1);
    assert_eq!(shape(flow(&pipeline, "pets_history_flow")), StoredAs::Scd2);
    assert_eq!(shape(flow(&pipeline, "pets_known")), StoredAs::Bitemporal);
    let FlowKind::AutoCdc(cdc) = &flow(&pipeline, "pets_now_flow").kind else { panic!("no changes") };
    assert_eq!(cdc.apply_as_delete.as_ref().map(SqlExpr::sql), Some("operation = 'DELETE'"));
}

#[test]
fn a_35_a_first_load_and_the_changes_behind_it() {
    let pipeline = paste(
        "CREATE OR REFRESH STREAMING TABLE accounts;
         CREATE OR REFRESH STREAMING TABLE accounts_feed AS
         SELECT * FROM STREAM read_files('/feed', format => 'json', schema => 'id BIGINT, op STRING, lsn BIGINT');
         CREATE VIEW accounts_dump AS SELECT *, 0L AS lsn FROM parquet.`/dump`;
         CREATE FLOW accounts_first AS AUTO CDC ONCE INTO accounts
         FROM accounts_dump KEYS (id) SEQUENCE BY lsn COLUMNS * EXCEPT (lsn) STORED AS SCD TYPE 1;
         CREATE FLOW accounts_live DEPENDS ON accounts_first AS AUTO CDC INTO accounts
         FROM (SELECT *, CAST(lsn AS BIGINT) AS seq FROM STREAM(accounts_feed)) KEYS (id)
         APPLY AS DELETE WHEN op = 'd' SEQUENCE BY struct(lsn, seq) COLUMNS * EXCEPT (op, lsn, seq) STORED AS SCD TYPE 1;",
    );
    assert!(flow(&pipeline, "accounts_first").once);
    assert_eq!(flow(&pipeline, "accounts_live").depends_on, ["accounts_first"]);
}

#[test]
fn a_35_snapshots_with_the_published_version_queries() {
    let pipeline = paste(
        "CREATE OR REFRESH STREAMING TABLE parcels;
         CREATE FLOW parcels_cdc
         AS AUTO CDC INTO parcels
         FROM SNAPSHOT (
           SELECT *
           FROM read_files('/exports/parcels/', format => 'json')
           WHERE _metadata.file_path = (SELECT version.path FROM current_snapshot_version())
         )
         WITH VERSION (
           SELECT struct(modification_time, path) AS version
           FROM list_files('/exports/parcels/')
           WHERE (
             NOT EXISTS (SELECT 1 FROM last_snapshot_version())
             OR struct(modification_time, path) > (SELECT version FROM last_snapshot_version())
           )
           ORDER BY modification_time, path
           LIMIT 1
         )
         KEYS (parcel_id);",
    );
    let FlowKind::Snapshot(snapshot) = &pipeline.flows[0].kind else { panic!("no snapshot") };
    let version = snapshot.version().unwrap();
    assert_eq!(version.inputs.len(), 2, "each call is an input of its own: {}", version.sql);
    assert!(version.inputs.iter().all(|input| input.kind == InputKind::LastSnapshotVersion));
    assert!(version.sql.contains("AS last_snapshot_version"), "{}", version.sql);
}

#[test]
fn a_35_materialized_views_with_parameters() {
    let pipeline = paste(
        "SET startDate='2025-01-02';
         CREATE OR REFRESH STREAMING TABLE trips AS SELECT * FROM STREAM read_files('/trips', format => 'json');
         CREATE OR REFRESH MATERIALIZED VIEW recent AS SELECT * FROM trips WHERE date > ${startDate};
         CREATE OR REFRESH MATERIALIZED VIEW per_day
         (day DATE, trips BIGINT COMMENT 'how many')
         USING DELTA
         COMMENT 'Trips per day' TBLPROPERTIES ('quality' = 'gold')
         AS SELECT date AS day, count(*) AS trips FROM recent GROUP BY date ORDER BY trips DESC LIMIT 10;
         CREATE OR REFRESH PRIVATE MATERIALIZED VIEW helper AS
         SELECT d.day, sum(d.trips) OVER (ORDER BY d.day) AS total FROM per_day d;",
    );
    assert_eq!(
        flow(&pipeline, "recent").query().unwrap().text,
        "SELECT * FROM trips WHERE date > '2025-01-02'"
    );
    let views =
        pipeline.datasets.iter().filter(|dataset| matches!(dataset, DatasetDefinition::MaterializedView(_)));
    assert_eq!(views.count(), 3);
}

#[test]
fn a_35_g_28_expectations_that_keep_drop_fail_and_quarantine() {
    let pipeline = paste(
        r#"CREATE OR REFRESH STREAMING TABLE riders(
          CONSTRAINT valid_age EXPECT (age BETWEEN 0 AND 120)
        ) AS SELECT * FROM STREAM read_files("/riders", format => "json");
        CREATE OR REFRESH STREAMING TABLE riders_clean(
          CONSTRAINT valid_id EXPECT (id IS NOT NULL and name IS NOT NULL) ON VIOLATION DROP ROW,
          CONSTRAINT valid_count EXPECT (rides > 0) ON VIOLATION FAIL UPDATE
        )
        COMMENT "clean" TBLPROPERTIES ("quality" = "silver")
        AS SELECT *, is_valid(x) AS flag FROM STREAM(riders);
        CREATE TEMPORARY VIEW judged AS SELECT *, NOT (id IS NOT NULL AND age < 120) AS is_quarantined FROM STREAM riders;
        CREATE OR REFRESH STREAMING TABLE quarantine (
          id BIGINT,
          CONSTRAINT bad EXPECT (is_quarantined) ON VIOLATION DROP ROW
        ) AS SELECT * FROM STREAM judged WHERE is_quarantined = TRUE;"#,
    );
    let actions: Vec<_> = pipeline
        .datasets
        .iter()
        .filter_map(DatasetDefinition::table)
        .flat_map(|table| &table.expectations)
        .map(|expectation| expectation.on_violation)
        .collect();
    assert_eq!(
        actions,
        [OnViolation::Keep, OnViolation::DropRow, OnViolation::FailUpdate, OnViolation::DropRow]
    );
}

#[test]
fn a_35_streaming_tables_with_read_options_and_flows_inside() {
    let pipeline = paste(
        "CREATE OR REFRESH STREAMING TABLE posts AS SELECT * FROM STREAM delta.`/lake/posts` WITH (SKIPCHANGECOMMITS);
         CREATE OR REFRESH STREAMING TABLE likes
         AS SELECT a.*, p.title FROM STREAM(delta.`/lake/likes`) WITH (SKIPCHANGECOMMITS=TRUE, STARTINGVERSION=3) a
         LEFT JOIN posts p ON a.post = p.id;
         CREATE OR REFRESH STREAMING TABLE shares FLOW INSERT BY NAME SELECT * FROM STREAM posts;
         CREATE OR REFRESH STREAMING TABLE old_shares FLOW INSERT ONCE BY NAME SELECT * FROM posts;
         CREATE OR REFRESH STREAMING TABLE once; CREATE FLOW o AS INSERT INTO once BY NAME SELECT * FROM STREAM posts;",
    );
    let options = &flow(&pipeline, "likes").query().unwrap().inputs[0].options;
    assert_eq!(options["startingversion"], OptionValue::Integer(3));
    assert!(flow(&pipeline, "old_shares").once && !flow(&pipeline, "shares").once);
    assert_eq!((flow(&pipeline, "o").target.as_str(), flow(&pipeline, "o").once), ("once", false));
}

/// A notebook that is kept as a file, in the words of the first releases.
#[test]
fn a_35_a_notebook_of_live_tables() {
    let pipeline = paste(
        r#"-- notebook source
-- TITLE 1,bronze
CREATE INCREMENTAL LIVE TABLE orders_raw
COMMENT "as they come"
TBLPROPERTIES ("quality" = "bronze")
AS SELECT * FROM cloud_files("/orders/", "json", map("cloudFiles.inferColumnTypes", "true"))

-- COMMAND ----------

-- DBTITLE 1,prices
CREATE LIVE TABLE prices
AS SELECT * FROM json.`/prices/2025.json`

-- COMMAND ----------

CREATE TEMPORARY STREAMING LIVE VIEW priced AS
SELECT CAST(o.id AS INT) AS id, json_value:after.NAME::string AS name FROM STREAM(LIVE.orders_raw) o
LEFT JOIN live.prices p ON o.sku = p.sku

-- COMMAND ----------

CREATE OR REFRESH STREAMING LIVE TABLE orders(
  CONSTRAINT valid_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW
);
APPLY CHANGES INTO live.orders
FROM stream(live.priced)
  KEYS (id)
  APPLY AS DELETE WHEN active = 0
  SEQUENCE BY update_dt
;"#,
    );
    let kinds: Vec<_> = pipeline.datasets.iter().map(|dataset| dataset.name().to_owned()).collect();
    assert_eq!(kinds, ["orders_raw", "prices", "priced", "orders"]);
    assert!(matches!(pipeline.datasets[1], DatasetDefinition::MaterializedView(_)));
    assert_eq!(flow(&pipeline, "orders").query().unwrap().dataset_names(), ["priced"]);
}

/// As Spark's own guide spells them: no OR REFRESH, settings without quotes.
#[test]
fn a_35_open_spark() {
    let pipeline = paste(
        "SET spark.sql.shuffle.partitions = 8;
         CREATE STREAMING TABLE orders USING parquet COMMENT 'c' TBLPROPERTIES ('a' = 'b') AS
           SELECT * FROM STREAM read_files('/orders');
         CREATE MATERIALIZED VIEW by_day AS SELECT day, count(*) AS n FROM orders GROUP BY day;
         CREATE TEMPORARY VIEW today AS SELECT * FROM by_day WHERE day = current_date();
         CREATE STREAMING TABLE IF NOT EXISTS merged;
         CREATE FLOW west COMMENT 'of the west' AS INSERT INTO merged BY NAME SELECT * FROM STREAM(orders);
         CREATE FLOW east AS INSERT INTO merged BY NAME SELECT * FROM STREAM orders;",
    );
    assert_eq!(pipeline.settings["spark.sql.shuffle.partitions"], "8");
    assert_eq!(pipeline.flows.len(), 4);
}
