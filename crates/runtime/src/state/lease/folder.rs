//! A lease on a local folder: a file lock, which the operating system frees with its process.

use std::{fs::File, path::Path};

use crate::{
    error::{Error, ErrorKind, Result},
    state::ENGINE_FOLDER,
};

/// Locks a storage folder.
///
/// # Errors
/// `Busy` when another process holds the lock.
pub(super) fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(ENGINE_FOLDER).join("lock");
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
