//! Who may write a pipeline's storage? One process at a time.
//!
//! In a local folder the lease is an OS file lock: a killed process frees it at once, and nothing has to expire. In a store
//! that other machines reach it is a record that expires unless it is renewed ([`expiring`]). Each lease has an epoch, raised
//! in a register before anything is written; targets refuse commits of a lower one, so that a process that lost its lease (a
//! copied folder, a network file system, a machine that slept) can't commit behind the new owner's back.

mod expiring;
mod folder;

use std::{fs::File, sync::Arc, time::Duration};

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use super::{Register, engine_path};
use crate::{
    clock::{Clock, rfc3339},
    error::{Error, Result},
    storage::Storage,
};
use expiring::Expiring;

/// For how long a lease on a shared store holds unless it is renewed: what a pipeline waits at most after a machine died.
pub const LEASE_DURATION: Duration = Duration::from_mins(1);

/// The right to write a pipeline's storage, until it is given back or dropped.
#[derive(Debug)]
pub struct Lease {
    /// Greater than that of every lease before.
    pub epoch: u64,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// Held open: the OS frees the lock with it.
    Folder {
        _lock: File,
    },
    Shared(Expiring),
    /// Nobody else can reach the store.
    Alone,
}

#[derive(Serialize, Deserialize)]
struct EpochRecord {
    started_at: String,
}

impl Lease {
    /// Takes the lease. A second process is refused at once; on a store that other machines reach, until the lease is given
    /// back, or was not renewed for `duration`.
    ///
    /// # Errors
    /// `Busy` when another process holds it.
    pub async fn acquire(storage: &Storage, clock: Arc<dyn Clock>, duration: Duration) -> Result<Self> {
        let store = &storage.store;
        if storage.is_shared() {
            let (epoch, expiring) = Expiring::acquire(store, clock, duration).await?;
            return Ok(Self { epoch, held: Held::Shared(expiring) });
        }
        let held = match storage.folder.as_deref() {
            Some(folder) => Held::Folder { _lock: folder::lock(folder)? },
            None => Held::Alone,
        };
        Ok(Self { epoch: raise_epoch(store, rfc3339(clock.now())).await?, held })
    }

    /// Waits until the lease is lost, and says how. That a lock or a store of one's own is lost is not noticed.
    pub async fn lost(&mut self) -> Error {
        match &mut self.held {
            Held::Shared(expiring) => expiring.lost().await,
            Held::Folder { .. } | Held::Alone => std::future::pending().await,
        }
    }

    /// Gives the lease back. One that is dropped is given back soon after, if the program goes on.
    pub async fn release(self) {
        if let Held::Shared(expiring) = self.held {
            expiring.release().await;
        }
    }
}

/// A number greater than that of every lease before, on record.
async fn raise_epoch(store: &Arc<dyn ObjectStore>, started_at: String) -> Result<u64> {
    let register = Register::new(Arc::clone(store), engine_path(&["epoch"]));
    let record = EpochRecord { started_at };
    loop {
        let epoch = register.numbers().await?.pop().unwrap_or(0) + 1;
        if register.create(epoch, &record).await? {
            register.prune_below(epoch.saturating_sub(1)).await?;
            return Ok(epoch);
        }
    }
}
