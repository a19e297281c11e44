//! What do the settings of a pipeline (`SET key = value`) mean here?
//!
//! Settings of the engine that are not known, a misspelt one for example, are refused. Others are the user's own: `${key}`
//! stands for them in the pipeline's text.

use std::{num::NonZeroUsize, time::Duration};

use strandline_flow_graph::{Mode, Settings as SchedulerSettings, UpdateAttempts};
use strandline_pipeline_sql::PipelineDefinition;

use crate::{
    error::{Error, ErrorKind, Result},
    properties::{TRIGGER_INTERVAL, WRITE_MODE},
    state,
};

/// How often a flow is tried again after a retryable error: 2 unless set; without limit in continuous mode.
const FLOW_RETRIES: &str = "pipelines.maxFlowRetryAttempts";
/// How often a failed update is tried again: 5 unless set; without limit in continuous mode.
pub(crate) const UPDATE_RETRIES: &str = "pipelines.numUpdateRetryAttempts";
/// How many flows run at once: 16 unless set.
const CONCURRENT_FLOWS: &str = "spark.sql.pipelines.execution.maxConcurrentFlows";
/// The wait before the first retry, which doubles with each further one: 5 seconds unless set.
const SHORTEST_WAIT: &str = "spark.sql.pipelines.execution.watchdog.minRetryTime";
/// The longest wait before a retry: 1 hour unless set.
const LONGEST_WAIT: &str = "spark.sql.pipelines.execution.watchdog.maxRetryTime";
/// For how long the lease on a storage that other machines reach holds unless it is renewed: 1 minute unless set.
const LEASE_DURATION: &str = "strandline.leaseDuration";
/// Accepted as in published examples, without effect.
const WITHOUT_EFFECT: [&str; 1] = ["pipelines.channel"];

/// Settings of the engine begin so.
const OWN: [&str; 3] = ["pipelines.", "spark.sql.pipelines.", "strandline."];

const KNOWN: [&str; 8] = [
    FLOW_RETRIES,
    UPDATE_RETRIES,
    TRIGGER_INTERVAL,
    CONCURRENT_FLOWS,
    SHORTEST_WAIT,
    LONGEST_WAIT,
    WRITE_MODE,
    LEASE_DURATION,
];
/// A lease is renewed three times while it lasts.
const SHORTEST_LEASE: Duration = Duration::from_secs(3);

/// The settings of a pipeline, understood.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) scheduler: SchedulerSettings,
    pub(crate) attempts: UpdateAttempts,
    /// How long flows of a continuous pipeline wait before they look for more.
    pub(crate) trigger_interval: Duration,
    /// For how long a lease that expires holds.
    pub(crate) lease_duration: Duration,
}

impl Settings {
    pub(crate) fn new(definition: &PipelineDefinition, mode: Mode) -> Result<Self> {
        let mut scheduler = SchedulerSettings::default();
        let mut attempts = UpdateAttempts::new(mode);
        let mut trigger_interval = Duration::from_secs(5);
        let mut lease_duration = state::LEASE_DURATION;
        let (mut shortest, mut longest) = (Duration::from_secs(5), Duration::from_hours(1));
        for (name, value) in &definition.settings {
            let refused =
                |why: &str| Error::new(ErrorKind::Definition, why).with("setting", name).with("value", value);
            let count =
                || value.trim().parse::<u32>().map_err(|_| refused("the setting must be a whole number"));
            let span =
                || interval(value).ok_or_else(|| refused("the setting must be a span of time: 5 seconds"));
            match name.as_str() {
                FLOW_RETRIES => scheduler = scheduler.with_max_flow_retry_attempts(count()?),
                UPDATE_RETRIES => attempts = attempts.with_retries(Some(count()?)),
                TRIGGER_INTERVAL => trigger_interval = span()?,
                CONCURRENT_FLOWS => {
                    let permits = usize::try_from(count()?).ok().and_then(NonZeroUsize::new);
                    scheduler = scheduler.with_permits(
                        permits.ok_or_else(|| refused("at least one flow must be able to run"))?,
                    );
                }
                SHORTEST_WAIT => shortest = span()?,
                LONGEST_WAIT => longest = span()?,
                // What it means is the tables' matter.
                WRITE_MODE => {}
                LEASE_DURATION => {
                    lease_duration = span()?;
                    if lease_duration < SHORTEST_LEASE {
                        return Err(refused("a lease holds for 3 seconds at least"));
                    }
                }
                known if WITHOUT_EFFECT.contains(&known) => {}
                engine if OWN.iter().any(|own| engine.starts_with(own)) => {
                    return Err(Error::new(ErrorKind::Unsupported, "the setting is not known")
                        .with("setting", name)
                        .with("value", value)
                        .help(format!("known are {}", KNOWN.join(", "))));
                }
                _ => {}
            }
        }
        let scheduler = scheduler.with_backoff(shortest, longest);
        Ok(Self {
            scheduler,
            attempts: attempts.with_backoff(shortest, longest),
            trigger_interval,
            lease_duration,
        })
    }
}

/// A span of time as Spark writes it: `5 seconds`, `1 minute`, `500 ms`, `5s`.
pub(crate) fn interval(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let milliseconds: u64 = match unit.trim().to_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "second" | "seconds" => 1000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_as_spark_writes_them() {
        for (text, milliseconds) in
            [("5 seconds", 5000), ("1 minute", 60_000), ("500ms", 500), (" 2h ", 7_200_000), ("0 s", 0)]
        {
            assert_eq!(interval(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in
            ["", "5", "seconds", "-5 s", "5 fortnights", "99999999999999999999 s", "18446744073709551615 d"]
        {
            assert_eq!(interval(text), None, "{text}");
        }
    }

    #[test]
    fn settings_of_the_engine_must_be_known_and_others_are_the_users_own() {
        let with = |name: &str, value: &str| PipelineDefinition {
            settings: [(name.to_owned(), value.to_owned())].into(),
            ..PipelineDefinition::default()
        };
        assert!(Settings::new(&with("my.folder", "x"), Mode::Triggered).is_ok());
        let settings = Settings::new(&with(CONCURRENT_FLOWS, "3"), Mode::Triggered).unwrap();
        assert_eq!(settings.scheduler.permits(), 3);
        for (name, value) in [
            (CONCURRENT_FLOWS, "0"),
            (FLOW_RETRIES, "-1"),
            (UPDATE_RETRIES, "many"),
            (SHORTEST_WAIT, "soon"),
            ("pipelines.maxFlowRetries", "2"),
            (LEASE_DURATION, "1 second"),
            (LEASE_DURATION, "forever"),
        ] {
            let error = Settings::new(&with(name, value), Mode::Triggered).unwrap_err().full_text();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
