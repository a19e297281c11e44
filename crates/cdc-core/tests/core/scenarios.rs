//! Does the core do what the scenario files say?

mod subject;

use strandline_testkit::scenario::{self, Scenario};

use subject::Core;

/// Arrivals that a scenario is tried in, besides its own.
const SEEDS: u64 = if cfg!(slow) { 100 } else { 8 };

/// What goes wrong in a scenario, in its own arrival and, where it may come in any, in others.
pub(crate) fn outcomes(scenario: &Scenario) -> Vec<String> {
    let arrivals = if scenario.permute { SEEDS } else { 0 };
    let own = scenario::run(scenario, &mut Core::default());
    let others =
        (0..arrivals).map(|seed| scenario::run_permuted(scenario, seed, &mut Core::declared(scenario)));
    std::iter::once(own).chain(others).filter_map(Result::err).map(|failure| failure.to_string()).collect()
}

/// Runs a folder; gives the number of scenarios that hold.
fn run(folder: &str) -> usize {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    let failures: Vec<String> = scenarios.iter().flat_map(outcomes).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    scenarios.len()
}

#[test]
fn the_worked_tables() {
    assert!(run("worked") >= 57);
}

#[test]
fn the_cases_that_agree_with_spark() {
    assert!(run("spark") >= 85);
}

#[test]
fn the_reported_cases() {
    assert!(run("reports") >= 100);
}
