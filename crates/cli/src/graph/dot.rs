//! The pipeline as a Graphviz digraph: order edges are dashed.

use std::fmt::Write as _;

use super::model::{Drawn, End, Shape};

pub(super) fn draw(drawn: &Drawn) -> String {
    let mut text = "digraph pipeline {\n  rankdir=LR;\n".to_owned();
    for (place, source) in drawn.sources.iter().enumerate() {
        let _ = writeln!(text, "  source{place} [shape=note, label=\"{}\"];", label(&[source]));
    }
    for (place, node) in drawn.datasets.iter().enumerate() {
        let shape = match node.shape {
            Shape::Table => "cylinder",
            Shape::View => "box",
            Shape::Sink => "house",
        };
        let label = label(&[&node.name, node.kind, &node.standing]);
        let _ = writeln!(text, "  dataset{place} [shape={shape}, label=\"{label}\"];");
    }
    for (place, flow) in drawn.flows.iter().enumerate() {
        let label = label(&[&flow.name, &flow.kind, &flow.standing]);
        let _ = writeln!(text, "  flow{place} [shape=box, style=rounded, label=\"{label}\"];");
    }
    for (place, node) in drawn.datasets.iter().enumerate() {
        for end in &node.reads {
            let _ = writeln!(text, "  {} -> dataset{place};", id(*end));
        }
    }
    for (place, flow) in drawn.flows.iter().enumerate() {
        for end in &flow.reads {
            let _ = writeln!(text, "  {} -> flow{place};", id(*end));
        }
        if let Some(target) = flow.writes {
            let _ = writeln!(text, "  flow{place} -> dataset{target};");
        }
        for earlier in &flow.after {
            let _ = writeln!(text, "  flow{earlier} -> flow{place} [style=dashed, label=\"before\"];");
        }
    }
    text.push_str("}\n");
    text
}

fn id(end: End) -> String {
    match end {
        End::Source(place) => format!("source{place}"),
        End::Dataset(place) => format!("dataset{place}"),
    }
}

/// Lines of a label, as text within quotes.
fn label(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if !text.is_empty() {
            text.push_str("\\n");
        }
        for c in line.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
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
        assert_eq!(super::label(&["a\"]; b", "", "c\\d"]), "a\\\"]; b\\nc\\\\d");
    }
}
