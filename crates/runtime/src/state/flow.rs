//! Where does a flow stand? Its plans, what of them is done, and whether it is complete.
//!
//! A plan says which input a batch takes, and is written before the batch is read: after a crash the batch runs again
//! with the same input, or is found in the target. The progress of the source is the fold of all plans; every so often a
//! plan carries that fold, so that older plans can go.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use object_store::ObjectStore;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Register, decoded, engine_path};
use crate::{
    error::{Error, ErrorKind, Result, store_error},
    sources::Source,
};

/// A plan this many after the last one that carried the progress carries it again.
const PROGRESS_EVERY: u64 = 64;
/// A progress of more bytes is carried more seldom: what all plans together hold must not grow with its square.
const PROGRESS_BYTES: u64 = 4 << 20;

/// Whether plan `number` carries the progress before it.
fn carries(number: u64, progress: &Value) -> Result<bool> {
    if number % PROGRESS_EVERY != 1 {
        return Ok(false);
    }
    let size = u64::try_from(serde_json::to_vec(progress)?.len()).unwrap_or(u64::MAX);
    Ok((number / PROGRESS_EVERY).is_multiple_of(1 + size / PROGRESS_BYTES))
}

/// What batch n takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The input, in the source's own terms.
    pub slice: Value,
    /// The source's progress before this batch, in some of the plans: every so often, and where the plan before it was
    /// given up and must not be folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Value>,
    /// The plan before this one was given up: a file of it was taken away before anything of it was committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up_previous: bool,
    /// When the plan was made. Deletes of the batch are as old as this.
    pub planned_at: String,
    /// For a target with monotonic system time: the greatest system sequence that it had seen by then, as text that
    /// [`strandline_table_formats::parquet::from_text`] reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_floor: Option<String>,
}

/// How a plan came about.
#[derive(Debug, Clone)]
pub struct Made {
    /// When.
    pub at: String,
    /// It takes the place of the plan before it, of which nothing was committed.
    pub gives_up_previous: bool,
    /// See [`Plan::system_floor`].
    pub system_floor: Option<String>,
}

/// A batch that is planned, and perhaps done.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedBatch {
    /// Its number.
    pub number: u64,
    /// Its plan.
    pub plan: Plan,
}

#[derive(Serialize, Deserialize)]
struct Done {
    done_at: String,
}

#[derive(Serialize, Deserialize)]
struct InferredSchema {
    schema: Schema,
}

#[derive(Serialize, Deserialize)]
struct FixedInput {
    input: Value,
}

#[derive(Serialize, Deserialize)]
struct Begun {
    begun_at: String,
}

/// The registers of one incarnation of a flow.
#[derive(Debug, Clone)]
pub struct FlowState {
    incarnation: u64,
    plans: Register,
    done: Register,
    input: Register,
    complete: Register,
    schema: Register,
}

impl FlowState {
    /// Incarnation `incarnation` of the flow `flow`.
    pub fn new(store: &Arc<dyn ObjectStore>, flow: &str, incarnation: u64) -> Self {
        let number = incarnation.to_string();
        let register = |name: &str| {
            Register::new(Arc::clone(store), engine_path(&["flows", flow, number.as_str(), name]))
        };
        Self {
            incarnation,
            plans: register("plan"),
            done: register("done"),
            input: register("input"),
            complete: register("complete"),
            schema: register("schema"),
        }
    }

    /// The newest incarnation of the flow: 0, until a full refresh or a reset of its checkpoint begins another one.
    ///
    /// # Errors
    /// The store's.
    pub async fn current(store: &Arc<dyn ObjectStore>, flow: &str) -> Result<Self> {
        let newest = incarnations(store, flow).numbers().await?.pop();
        Ok(Self::new(store, flow, newest.unwrap_or(0)))
    }

    /// Begins an incarnation, in which nothing has been planned, inferred or completed. To begin it again does no harm.
    ///
    /// # Errors
    /// The store's.
    pub async fn begin(
        store: &Arc<dyn ObjectStore>,
        flow: &str,
        incarnation: u64,
        begun_at: String,
    ) -> Result<()> {
        incarnations(store, flow).create(incarnation, &Begun { begun_at }).await.map(drop)
    }

    /// Which incarnation this is. A batch number is used once within one, so that a stamp of an older one is never taken
    /// for that of a new batch.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Names of the flows that have state in `store`, sorted.
    ///
    /// # Errors
    /// The store's.
    pub async fn all(store: &Arc<dyn ObjectStore>) -> Result<Vec<String>> {
        let root = engine_path(&["flows"]);
        let listed = store.list_with_delimiter(Some(&root)).await.map_err(|e| store_error(e, &root))?;
        let names = listed.common_prefixes.iter().filter_map(|path| path.filename().map(decoded));
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    /// The columns of the source as they were inferred, and widened since; if they were.
    ///
    /// # Errors
    /// The store's.
    pub async fn inferred_schema(&self) -> Result<Option<SchemaRef>> {
        Ok(self.schema.newest::<InferredSchema>().await?.map(|(_, inferred)| Arc::new(inferred.schema)))
    }

    /// Records that the source has further columns.
    ///
    /// # Errors
    /// The store's; `Busy` when another process recorded columns meanwhile.
    pub async fn widen_schema(&self, schema: &SchemaRef) -> Result<()> {
        let number = self.schema.numbers().await?.last().map_or(1, |last| last + 1);
        let record = InferredSchema { schema: schema.as_ref().clone() };
        // As for plans: what is there may be ours.
        if self.schema.create(number, &record).await?
            || self
                .schema
                .read::<InferredSchema>(number)
                .await?
                .is_some_and(|there| there.schema == record.schema)
        {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Busy, "another process recorded columns of the source")
            .with("record", number))
    }

    /// Records inferred columns, unless some are recorded: they do not change with the files that happen to lie there.
    ///
    /// # Errors
    /// The store's.
    pub async fn record_schema(&self, schema: &SchemaRef) -> Result<()> {
        if !self.schema.numbers().await?.is_empty() {
            return Ok(());
        }
        self.schema.create(1, &InferredSchema { schema: schema.as_ref().clone() }).await.map(drop)
    }

    /// When the flow completed, if it is a ONCE flow that did.
    ///
    /// # Errors
    /// The store's.
    pub async fn completed_at(&self) -> Result<Option<String>> {
        Ok(self.complete.read::<Done>(1).await?.map(|done| done.done_at))
    }

    /// Records that a ONCE flow took all of its input.
    ///
    /// # Errors
    /// The store's.
    pub async fn complete(&self, at: String) -> Result<()> {
        self.complete.create(1, &Done { done_at: at }).await.map(drop)
    }

    /// The input that a ONCE flow fixed before its first batch; `now` is fixed where there is none yet.
    ///
    /// # Errors
    /// The store's.
    pub async fn fixed_input(&self, now: Value) -> Result<Value> {
        if let Some(fixed) = self.input.read::<FixedInput>(1).await? {
            return Ok(fixed.input);
        }
        self.input.create(1, &FixedInput { input: now.clone() }).await?;
        Ok(now)
    }

    /// The newest plan, and the source's progress before it. A flow that never planned has neither.
    ///
    /// # Errors
    /// The store's; `State` when a plan that is needed is missing.
    pub async fn newest(&self, source: &dyn Source) -> Result<Option<(PlannedBatch, Value)>> {
        let numbers = self.plans.numbers().await?;
        let Some(&newest) = numbers.last() else { return Ok(None) };
        let mut plans = Vec::new();
        for &number in numbers.iter().rev() {
            let plan: Plan = self.plans.read(number).await?.ok_or_else(|| {
                Error::new(ErrorKind::State, "a plan vanished while it was read").with("plan", number)
            })?;
            let carries = plan.progress.is_some();
            plans.push(PlannedBatch { number, plan });
            if carries {
                break;
            }
        }
        plans.reverse();
        let mut progress = plans.first().and_then(|first| first.plan.progress.clone()).ok_or_else(|| {
            Error::new(ErrorKind::State, "the plans of a flow don't tell where it stands")
                .with("newest plan", newest)
        })?;
        let mut expected = plans.first().map_or(newest, |first| first.number);
        let mut last = None;
        for batch in plans {
            if batch.number != expected {
                return Err(
                    Error::new(ErrorKind::State, "a plan of a flow is missing").with("plan", expected)
                );
            }
            expected = batch.number + 1;
            if let Some(PlannedBatch { plan, .. }) = last.replace(batch) {
                progress = source.advance(progress, &plan.slice)?;
            }
        }
        Ok(last.map(|batch| (batch, progress)))
    }

    /// Writes plan `number`. `progress` is the source's before it.
    ///
    /// # Errors
    /// `Busy` when the plan exists: another process runs this flow.
    pub async fn plan(
        &self,
        number: u64,
        slice: Value,
        progress: &Value,
        made: Made,
    ) -> Result<PlannedBatch> {
        let carries = made.gives_up_previous || carries(number, progress)?;
        let plan = Plan {
            slice,
            progress: carries.then(|| progress.clone()),
            gives_up_previous: made.gives_up_previous,
            planned_at: made.at,
            system_floor: made.system_floor,
        };
        // A store that wrote the plan, and answered with a passing error, says at the second attempt that it exists.
        if !self.plans.create(number, &plan).await?
            && self.plans.read::<Plan>(number).await?.as_ref() != Some(&plan)
        {
            return Err(
                Error::new(ErrorKind::Busy, "another process planned this batch").with("batch", number)
            );
        }
        if carries {
            self.plans.prune_below(number).await?;
        }
        Ok(PlannedBatch { number, plan })
    }

    /// Records that batch `number` is in the target.
    ///
    /// # Errors
    /// The store's.
    pub async fn done(&self, number: u64, at: String) -> Result<()> {
        self.done.create(number, &Done { done_at: at }).await?;
        if number.is_multiple_of(PROGRESS_EVERY) {
            self.done.prune_below(number).await?;
        }
        Ok(())
    }

    /// The newest batch that is recorded as done, 0 for none, and when that was.
    ///
    /// # Errors
    /// The store's.
    pub async fn last_done(&self) -> Result<(u64, Option<String>)> {
        let newest = self.done.newest::<Done>().await?;
        Ok(newest.map_or((0, None), |(number, done)| (number, Some(done.done_at))))
    }
}

fn incarnations(store: &Arc<dyn ObjectStore>, flow: &str) -> Register {
    Register::new(Arc::clone(store), engine_path(&["flows", flow, "incarnation"]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_large_progress_is_carried_seldom() {
        let small = serde_json::json!({"offset": 7});
        let large = serde_json::json!({"taken": "x".repeat(9 << 20)});
        let carried = |progress: &serde_json::Value| {
            (1..=1000).filter(|&number| super::carries(number, progress).unwrap()).collect::<Vec<u64>>()
        };
        assert_eq!(carried(&small)[..3], [1, 65, 129]);
        assert_eq!(carried(&large)[..3], [1, 193, 385]);
    }

    #[test]
    fn names_come_back_from_paths() {
        for name in ["plain", "fl#1%", "Täb le", "100%25"] {
            let path = super::engine_path(&["flows", name]);
            assert_eq!(super::decoded(path.filename().unwrap()), name);
        }
    }
}
