//! What does a pipeline look like? Sources, datasets and flows, data edges and order edges, and where they stand.

mod dot;
mod mermaid;
mod model;
mod text;

use strandline_runtime::{Mode, Status};

use crate::{
    args::{Drawing, GraphArgs},
    failure::{Failure, WRONG},
    load, place,
    show::say,
};

/// Draws the pipeline. Its sources are not looked at.
pub(crate) async fn graph(args: &GraphArgs) -> Result<(), Failure> {
    let text = load::text(&args.files, None)?;
    let mode = if text.continuous { Mode::Continuous } else { Mode::Triggered };
    let project =
        strandline_runtime::Project::new(&text.name, text.definition, &text.folders, place::nowhere());
    if let Err(errors) = project.definition().graph_for(mode) {
        let errors: Vec<String> = errors.iter().map(|error| format!("error: {error}")).collect();
        return Err(Failure { text: errors.join("\n"), code: WRONG });
    }
    let storage = match &text.storage {
        Some(place) => place.existing(None).await?,
        None => None,
    };
    let status = match storage {
        Some(storage) => Some(strandline_runtime::status(&storage).await?),
        None => None,
    };
    let drawn = model::Drawn::of(project.definition(), status.as_ref().unwrap_or(&NOTHING));
    say(match args.format {
        Drawing::Text => text::draw(&drawn),
        Drawing::Mermaid => mermaid::draw(&drawn),
        Drawing::Dot => dot::draw(&drawn),
    }
    .trim_end());
    Ok(())
}

/// Where a pipeline stands that has not run.
static NOTHING: Status = Status { last_update: None, flows: Vec::new(), tables: Vec::new() };
