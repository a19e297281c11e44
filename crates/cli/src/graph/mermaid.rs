//! The pipeline as a Mermaid flowchart: order edges are dotted.

use std::fmt::Write as _;

use super::model::{Drawn, End, Shape};

pub(super) fn draw(drawn: &Drawn) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (place, source) in drawn.sources.iter().enumerate() {
        let _ = writeln!(text, "  source{place}[/\"{}\"/]", label(&[source]));
    }
    for (place, node) in drawn.datasets.iter().enumerate() {
        let label = label(&[&node.name, node.kind, &node.standing]);
        let (open, close) = match node.shape {
            Shape::Table => ("[(", ")]"),
            Shape::View => ("[", "]"),
            Shape::Sink => ("[\\", "\\]"),
        };
        let _ = writeln!(text, "  dataset{place}{open}\"{label}\"{close}");
    }
    for (place, flow) in drawn.flows.iter().enumerate() {
        let label = label(&[&flow.name, &flow.kind, &flow.standing]);
        let _ = writeln!(text, "  flow{place}([\"{label}\"])");
    }
    for (place, node) in drawn.datasets.iter().enumerate() {
        for end in &node.reads {
            let _ = writeln!(text, "  {} --> dataset{place}", id(*end));
        }
    }
    for (place, flow) in drawn.flows.iter().enumerate() {
        for end in &flow.reads {
            let _ = writeln!(text, "  {} --> flow{place}", id(*end));
        }
        if let Some(target) = flow.writes {
            let _ = writeln!(text, "  flow{place} --> dataset{target}");
        }
        for earlier in &flow.after {
            let _ = writeln!(text, "  flow{earlier} -. before .-> flow{place}");
        }
    }
    text
}

fn id(end: End) -> String {
    match end {
        End::Source(place) => format!("source{place}"),
        End::Dataset(place) => format!("dataset{place}"),
    }
}

/// Lines of a label. Characters that mean something to Mermaid or HTML are written as entities.
fn label(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if !text.is_empty() {
            text.push_str("<br/>");
        }
        for c in line.chars() {
            match c {
                '"' | '<' | '>' | '&' | '#' | '`' | '\\' => {
                    let _ = write!(text, "#{};", u32::from(c));
                }
                c if c.is_control() => text.push(' '),
                c => text.push(c),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_cannot_break_out_of_their_label() {
        assert_eq!(super::label(&["a\"]; b", "", "<c>"]), "a#34;]; b<br/>#60;c#62;");
    }
}
