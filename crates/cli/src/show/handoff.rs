//! How do seeds and live feeds meet, for people?

use indicatif::HumanCount;
use strandline_runtime::{HandoffReport, HandoffSample};

use super::table;

/// How seeds and live feeds meet.
pub(crate) fn handoff(reports: &[HandoffReport]) -> String {
    let parts = reports.iter().map(|report| {
        let mut lines = vec![
            format!(
                "{}: seed {}, live {}",
                report.target,
                report.seed_flows.join(", "),
                report.live_flows.join(", ")
            ),
            format!("    seeded keys          {}", HumanCount(report.seeded_keys)),
            format!("    live keys            {}", HumanCount(report.live_keys)),
            format!("    keys of both         {}", HumanCount(report.keys_of_both)),
            format!(
                "    keys that overlap    {}; live changes not after the last seeded one: {}",
                HumanCount(report.offending_keys),
                HumanCount(report.offending_changes)
            ),
        ];
        if report.unusable_rows > 0 {
            let rows = HumanCount(report.unusable_rows);
            lines.push(format!("    rows without key or sequence {rows}: an update will refuse them"));
        }
        if !report.samples.is_empty() {
            let rows: Vec<Vec<String>> = report.samples.iter().map(sample).collect();
            let header = ["key", "last seeded", "first live", "changes"];
            lines.push(format!("\n{}", table(&header, &rows, 1)));
        }
        lines.join("\n")
    });
    parts.collect::<Vec<_>>().join("\n\n")
}

fn sample(sample: &HandoffSample) -> Vec<String> {
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let key = sample.key.iter().map(|(name, value)| format!("{name} = {}", plain(value)));
    vec![
        key.collect::<Vec<_>>().join(", "),
        plain(&sample.last_seeded),
        plain(&sample.first_live),
        sample.changes.to_string(),
    ]
}
