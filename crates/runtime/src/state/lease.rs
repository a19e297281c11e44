//! Who may write a pipeline's storage? One process at a time.
//!
//! In a local folder the lease is an OS file lock: a killed process frees it at once, and nothing has to expire. Each
//! lease has an epoch, raised in a register before anything is written; targets refuse commits of a lower one, so that a
//! process that lost its lock (a copied folder, a network file system) can't commit behind the new owner's back.

use std::{fs::File, path::Path as FsPath, sync::Arc};

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use super::{Register, engine_path};
use crate::error::{Error, ErrorKind, Result};

/// The right to write a pipeline's storage, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    /// Greater than that of every lease before.
    pub epoch: u64,
    /// Held open: the OS frees the lock with it.
    _lock: Option<File>,
}

#[derive(Serialize, Deserialize)]
struct EpochRecord {
    started_at: String,
}

impl Lease {
    /// Takes the lease. `folder` is the storage folder where it is local; then a second process is refused at once.
    ///
    /// # Errors
    /// `Busy` when another process holds it.
    pub async fn acquire(
        store: Arc<dyn ObjectStore>,
        folder: Option<&FsPath>,
        started_at: String,
    ) -> Result<Self> {
        let lock = folder.map(lock).transpose()?;
        let register = Register::new(store, engine_path(&["epoch"]));
        loop {
            let epoch = register.numbers().await?.pop().unwrap_or(0) + 1;
            if register.create(epoch, &EpochRecord { started_at: started_at.clone() }).await? {
                register.prune_below(epoch.saturating_sub(1)).await?;
                return Ok(Self { epoch, _lock: lock });
            }
        }
    }
}

fn lock(folder: &FsPath) -> Result<File> {
    let path = folder.join(super::ENGINE_FOLDER).join("lock");
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Unavailable, "the storage folder can't be locked")
            .with("file", path.display())
            .because(error)
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::Busy,
            "another process is running this pipeline",
        )
        .with("lock", path.display())
        .help("wait for it to end; the lock is freed with its process, nothing has to be removed by hand")),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}
