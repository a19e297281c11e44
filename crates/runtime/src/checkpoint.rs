//! How does a flow begin where another pipeline's stopped?

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Result},
    flow_run::open_source,
    project::Project,
    state::FlowState,
};

/// How far a flow has taken its source: what it took is not taken again by a flow that begins from here.
///
/// A value of the source's own, good for a flow that reads the same folder, table or topics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checkpoint(pub(crate) serde_json::Value);

impl Project {
    /// Lets the flow begin from `checkpoint`, as long as it has none of its own.
    #[must_use]
    pub fn import_checkpoint(mut self, flow: &str, checkpoint: Checkpoint) -> Self {
        self.imported.insert(flow.to_owned(), checkpoint.0);
        self
    }

    /// How far the flow has taken its source; `None` for a flow that has taken nothing. Batches that are planned and not
    /// done are left out.
    ///
    /// # Errors
    /// Those of the definition and of the source; `Definition` for a flow that is not defined, or has no source that is
    /// taken batch by batch.
    pub async fn checkpoint(&self, flow: &str) -> Result<Option<Checkpoint>, Vec<Error>> {
        let (_, mut analysis) = self.analyse().await?;
        let unknown = || Error::new(ErrorKind::Definition, "there is no such flow").with("flow", flow);
        let analysis =
            analysis.flows.remove(flow).ok_or_else(|| vec![unknown()])?.map_err(|error| vec![error])?;
        let told = async {
            let source = open_source(self.storage().format.as_ref(), &analysis).await?;
            let state = FlowState::current(&self.storage().store, flow).await?;
            let Some((newest, progress)) = state.newest(source.as_ref()).await? else { return Ok(None) };
            let (done, _) = state.last_done().await?;
            let is_done = done >= newest.number;
            let taken = if is_done { source.advance(progress, &newest.plan.slice)? } else { progress };
            Ok(Some(Checkpoint(taken)))
        };
        told.await.map_err(|error: Error| vec![error.with("flow", flow)])
    }
}
