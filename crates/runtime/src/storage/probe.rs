//! Does the store keep what everything here rests on: that an object is created once?
//!
//! Plans, done marks and the commits of tables are objects that one writer may create and no other. A store that takes a
//! second one for the same name would lose rows in silence: some servers with the protocol of S3 pass over
//! `If-None-Match`. So before a run writes anything, it creates a small object that exists already. The object stays: from
//! the second run on the question costs one request.

use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, path::Path};

use super::unreachable;
use crate::{
    error::{Error, ErrorKind, Result},
    state::engine_path,
};

const TEXT: &str =
    "An object that is created once: before each run the store must refuse to create it again.\n";

/// Refuses a store that creates an object that exists.
///
/// # Errors
/// `Unsupported` for such a store; else the store's.
pub(super) async fn create_only(store: &Arc<dyn ObjectStore>, url: Option<&str>) -> Result<()> {
    let path = engine_path(&["created-once"]);
    let refused = |why: &str| {
        Error::new(ErrorKind::Unsupported, why)
            .with("storage", url.unwrap_or("in memory"))
            .help("a storage needs conditional puts: for servers with the protocol of S3, `If-None-Match` when an object is put")
    };
    // Whoever is first here creates it; it is refused to the second attempt at the latest.
    for _ in 0..2 {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match store.put_opts(&path, TEXT.into(), options).await {
            Ok(_) => {}
            Err(object_store::Error::AlreadyExists { .. }) => return Ok(()),
            Err(
                error @ (object_store::Error::NotSupported { .. }
                | object_store::Error::NotImplemented { .. }),
            ) => {
                return Err(
                    refused("the store can't create an object only where there is none").because(error)
                );
            }
            Err(error) => return Err(unreachable(error, url)),
        }
    }
    drop_object(store, &path).await;
    Err(refused("the store created an object twice: two writers would not notice each other"))
}

/// A store that is refused is left as it was found, as far as it lets us.
async fn drop_object(store: &Arc<dyn ObjectStore>, path: &Path) {
    if let Err(error) = store.delete(path).await {
        tracing::warn!(%path, %error, "the object of a probe stays");
    }
}
