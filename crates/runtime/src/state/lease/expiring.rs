//! A lease on a store that other machines reach: a record that expires unless it is renewed.
//!
//! Records are numbered and created once. The owner creates the next number every third of the lease's duration, each with
//! a later time of expiry. Whoever wants the lease creates the number after a record that says it was given back, or that
//! has expired by the taker's own clock; of several takers one succeeds. The owner finds the number taken at its next renewal,
//! and stops.
//!
//! Clocks of machines need not agree for the tables to be right: a lease that is taken too early has a higher epoch, and
//! the tables refuse the commits of the lower one. If they are apart by more than the duration, owners are disturbed for
//! nothing, or a dead one is waited for longer.
//!
//! Old numbers are removed, so a process that slept between reading and creating might create a number that existed before.
//! It finds that a newer one exists, and takes that for the answer.

use std::{sync::Arc, time::Duration};

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};
use tokio::{sync::oneshot, task::JoinHandle, time};
use uuid::Uuid;

use super::raise_epoch;
use crate::{
    clock::{Clock, rfc3339},
    error::{Error, ErrorKind, Result},
    state::{Register, engine_path},
};

/// How many renewals fit into the duration of a lease.
const RENEWALS: u32 = 3;
/// How many attempts at a renewal that fails fit in between.
const ATTEMPTS: u32 = 10;
/// How long the end of a run waits for the lease to be given back, at most.
const GIVING_BACK: Duration = Duration::from_secs(10);

/// What each record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LeaseRecord {
    /// Who holds the lease: unique for each time that one is taken.
    owner: String,
    /// Where the owner runs, for people.
    process: String,
    epoch: u64,
    taken_at: String,
    renewed_at: String,
    /// The same in milliseconds since 1970: when somebody else may take the lease.
    expires_at: u64,
    /// It was given back.
    released: bool,
}

impl LeaseRecord {
    fn expiry(&self) -> Duration {
        Duration::from_millis(self.expires_at)
    }

    /// The refusal of somebody who wants the lease at `now`.
    fn busy(&self, now: Duration) -> Error {
        let left = self.expiry().saturating_sub(now);
        let at = rfc3339(self.expiry());
        // Rounded up: after that time it is free.
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        Error::new(ErrorKind::Busy, "another process is running this pipeline")
            .with("process", &self.process)
            .with("since", &self.taken_at)
            .with("lease renewed", &self.renewed_at)
            .help(format!(
                "wait for it to end; if it died, its lease expires at {at}, in {seconds} seconds: run again then"
            ))
    }
}

/// A lease that a task renews.
#[derive(Debug)]
pub(super) struct Expiring {
    lost: oneshot::Receiver<Error>,
    // The task gives the lease back when this goes.
    held: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Expiring {
    /// Takes the lease, and begins to renew it; with its epoch.
    ///
    /// # Errors
    /// `Busy` when another process holds it; else the store's.
    pub(super) async fn acquire(
        store: &Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        duration: Duration,
    ) -> Result<(u64, Self)> {
        let keeper = Keeper::acquire(store, clock, duration).await?;
        let epoch = keeper.record.epoch;
        let (tell, lost) = oneshot::channel();
        let (held, given_back) = oneshot::channel();
        let task = tokio::spawn(async move { keeper.keep(tell, given_back).await });
        Ok((epoch, Self { lost, held, task }))
    }

    /// Waits until the lease is lost.
    pub(super) async fn lost(&mut self) -> Error {
        match (&mut self.lost).await {
            Ok(error) => error,
            // It tells before it ends, and it does not end before the lease is given back.
            Err(_) => Error::new(ErrorKind::Internal, "the lease of the storage is not renewed any more"),
        }
    }

    /// Gives the lease back, and waits until that is on record.
    pub(super) async fn release(self) {
        drop(self.held);
        if time::timeout(GIVING_BACK, self.task).await.is_err() {
            tracing::warn!("the lease was not given back: it will expire");
        }
    }
}

/// What the task knows that renews a lease.
struct Keeper {
    register: Register,
    clock: Arc<dyn Clock>,
    duration: Duration,
    /// The newest record, and its number.
    number: u64,
    record: LeaseRecord,
}

impl Keeper {
    /// Takes the lease.
    async fn acquire(
        store: &Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        duration: Duration,
    ) -> Result<Self> {
        let register = Register::new(Arc::clone(store), engine_path(&["lease"]));
        let owner = Uuid::new_v4().to_string();
        loop {
            let newest = register.newest::<LeaseRecord>().await?;
            let now = clock.now();
            if let Some((_, held)) = &newest
                && !held.released
                && held.expiry() > now
            {
                return Err(held.busy(now));
            }
            // After the newest record was read: whoever made that had raised its own before.
            let epoch = raise_epoch(store, rfc3339(now)).await?;
            let now = clock.now();
            let record = LeaseRecord {
                owner: owner.clone(),
                process: this_process(),
                epoch,
                taken_at: rfc3339(now),
                renewed_at: rfc3339(now),
                expires_at: milliseconds(now + duration),
                released: false,
            };
            let (register, clock) = (register.clone(), Arc::clone(&clock));
            let number = newest.map_or(1, |(number, _)| number + 1);
            let mut keeper = Self { register, clock, duration, number, record };
            if keeper.create_this().await? {
                return Ok(keeper);
            }
        }
    }

    async fn keep(mut self, tell: oneshot::Sender<Error>, mut given_back: oneshot::Receiver<()>) {
        let mut wait = self.duration / RENEWALS;
        loop {
            tokio::select! {
                _ = &mut given_back => break,
                () = time::sleep(wait) => {}
            }
            match self.renew().await {
                Ok(true) => wait = self.duration / RENEWALS,
                Ok(false) => {
                    drop(tell.send(self.taken_over().await));
                    return;
                }
                Err(error) if self.clock.now() >= self.record.expiry() => {
                    let lost = Error::new(
                        ErrorKind::Busy,
                        "the lease of the storage expired and could not be renewed",
                    )
                    .help("run again: what was planned and not committed runs again, nothing is lost");
                    drop(tell.send(lost.because(error.full_text())));
                    return;
                }
                Err(error) => {
                    tracing::warn!(error = %error.full_text(), "the lease could not be renewed yet");
                    wait = self.duration / (RENEWALS * ATTEMPTS);
                }
            }
        }
        if let Err(error) = self.give_back().await {
            tracing::warn!(error = %error.full_text(), "the lease was not given back: it will expire");
        }
    }

    /// Says that the lease is free. Where somebody else has it, nothing is to be said.
    async fn give_back(&self) -> Result<()> {
        let record = LeaseRecord { released: true, ..self.record.clone() };
        self.register.create(self.number + 1, &record).await.map(drop)
    }

    /// Renews the lease for another `duration`; `false` when somebody else has it.
    async fn renew(&mut self) -> Result<bool> {
        let now = self.clock.now();
        let before = (self.number, self.record.clone());
        self.number += 1;
        self.record.renewed_at = rfc3339(now);
        self.record.expires_at = milliseconds(now + self.duration);
        // An answer that takes longer than the lease lasts is none.
        let left = before.1.expiry().saturating_sub(now).max(self.duration / RENEWALS);
        let renewed = match time::timeout(left, self.create_this()).await {
            Ok(renewed) => renewed,
            Err(_) => Err(Error::new(ErrorKind::Unavailable, "the store did not answer")),
        };
        if renewed.is_err() {
            // Whether it landed is found out by the next attempt, which creates the same number.
            (self.number, self.record) = before;
        }
        renewed
    }

    /// Creates the record; `false` when somebody else was faster, or is further.
    async fn create_this(&mut self) -> Result<bool> {
        if !self.register.create(self.number, &self.record).await? {
            // An attempt that seemed to fail may have landed.
            match self.register.read::<LeaseRecord>(self.number).await? {
                Some(ours) if ours.owner == self.record.owner => self.record = ours,
                _ => return Ok(false),
            }
        }
        let numbers = self.register.numbers().await?;
        if numbers.last() != Some(&self.number) {
            return Ok(false);
        }
        if numbers.len() > 2 {
            self.register.prune_below(self.number.saturating_sub(1)).await?;
        }
        Ok(true)
    }

    async fn taken_over(&self) -> Error {
        let lost = Error::new(ErrorKind::Busy, "another process took over the lease of the storage");
        let lost = match self.register.newest::<LeaseRecord>().await {
            Ok(Some((_, newest))) => lost.with("process", newest.process).with("since", newest.taken_at),
            _ => lost,
        };
        lost.help("this one had not renewed it in time: the machine slept, or the store did not answer; what it had committed stays")
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How people find this process.
fn this_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => std::process::id().to_string(),
        host => format!("{} on {host}", std::process::id()),
    }
}

#[cfg(test)]
mod tests;
