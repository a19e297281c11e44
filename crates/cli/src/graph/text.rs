//! The pipeline for a terminal: datasets in the order of the text, with the flows that write them.

use std::fmt::Write as _;

use super::model::{Drawn, DrawnFlow, End};

pub(super) fn draw(drawn: &Drawn) -> String {
    let mut text = String::new();
    for (place, node) in drawn.datasets.iter().enumerate() {
        let standing = if node.standing.is_empty() { String::new() } else { format!(", {}", node.standing) };
        let _ = writeln!(text, "{}  {}{standing}", node.name, node.kind);
        reads(&mut text, "   ", drawn, &node.reads);
        let writers = drawn.writers(place);
        for (n, flow) in writers.iter().enumerate() {
            let is_last = n + 1 == writers.len();
            let (branch, below) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
            let _ = writeln!(text, "{branch} {} ({})", flow.name, flow.kind);
            flow_lines(&mut text, &format!("{below}   "), drawn, flow);
        }
        text.push('\n');
    }
    text
}

fn flow_lines(text: &mut String, indent: &str, drawn: &Drawn, flow: &DrawnFlow) {
    reads(text, indent, drawn, &flow.reads);
    let after: Vec<&str> = flow
        .after
        .iter()
        .filter_map(|place| drawn.flows.get(*place))
        .map(|flow| flow.name.as_str())
        .collect();
    if !after.is_empty() {
        let _ = writeln!(text, "{indent}after {}", after.join(", "));
    }
    if !flow.standing.is_empty() {
        let _ = writeln!(text, "{indent}{}", flow.standing);
    }
}

fn reads(text: &mut String, indent: &str, drawn: &Drawn, ends: &[End]) {
    for end in ends {
        let _ = writeln!(text, "{indent}from {}", drawn.name(*end));
    }
}
