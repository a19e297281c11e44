# Commands for people who work on Strandline. `just` lists them.

default:
    @just --list

# The main job on the shipped example.
example storage="/tmp/strandline-example":
    cargo run -- run examples/customers/pipeline.sql --storage {{storage}}
    cargo run -- query --storage {{storage}} "SELECT * FROM customers_history WHERE customer_id = 7 ORDER BY __START_AT"

# All tests.
test:
    cargo test --workspace --all-features

# The Kafka source against a broker of its own; needs java 17 and mvn.
kafka:
    tests/kafka/run

# Iceberg tables in a catalog that is a real server; needs a JDK 17 and mvn.
rest-catalog:
    tests/rest-catalog/run

# Other readers and writers beside us: Python's in both formats, Spark with java 17 and mvn, and ten minutes of four writers at once.
readers:
    tests/readers/run
    tests/nightly/foreign

readers-spark:
    tests/nightly/readers-spark

stress seconds="600":
    tests/nightly/stress {{seconds}}

# What a change must pass.
ci:
    .ci/run

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

# Events per second of the core, time to plan a pipeline.
bench:
    cargo bench -p strandline-cdc-core -p strandline-flow-graph

# Licences, banned crates and sources; advisories where their database can be reached.
deny:
    cargo deny check bans licenses sources

# Inputs that nobody thought of, for some seconds each: one target of fuzz/fuzz_targets, or all.
fuzz target="all" seconds="60":
    fuzz/run {{target}} {{seconds}}

# Rewrite nothing, but say which mutants of the algebra no test notices. What is examined stands in .cargo/mutants.toml.
mutants:
    cargo mutants --jobs 1
