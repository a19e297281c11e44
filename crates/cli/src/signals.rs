//! What do SIGINT (Ctrl-C) and SIGTERM do to an update?
//!
//! The first one stops it: batches in flight end, nothing else begins. The second one ends the process; a batch that is
//! lost with it runs again with the next update, as after a kill.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use crate::{
    failure::{Failure, STOPPED},
    show::say_err,
};

/// Watches for signals as long as the process lives.
pub(crate) struct Signals {
    /// The number of the signal that stopped the update; 0 for none.
    pub(crate) received: Arc<AtomicU8>,
}

impl Signals {
    /// Sets `stop` at the first signal, ends the process at the second.
    pub(crate) fn watch(stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let received = Arc::new(AtomicU8::new(0));
        let mut next =
            Next::new().map_err(|e| Failure::wrong(format!("error: signals can't be watched: {e}")))?;
        let told = Arc::clone(&received);
        tokio::spawn(async move {
            let signal = next.signal().await;
            told.store(signal, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            say_err("stopping: batches in flight end first; a second signal ends the process at once");
            let signal = next.signal().await;
            std::process::exit(i32::from(STOPPED + signal));
        });
        Ok(Self { received })
    }
}

const SIGINT: u8 = 2;

#[cfg(unix)]
struct Next {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Next {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The number of the next signal.
    async fn signal(&mut self) -> u8 {
        const SIGTERM: u8 = 15;
        tokio::select! {
            _ = self.interrupt.recv() => SIGINT,
            _ = self.terminate.recv() => SIGTERM,
        }
    }
}

#[cfg(not(unix))]
struct Next;

#[cfg(not(unix))]
impl Next {
    #[expect(clippy::unnecessary_wraps, reason = "it is as on Unix, where it can fail")]
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn signal(&mut self) -> u8 {
        if tokio::signal::ctrl_c().await.is_err() {
            // There is nothing to wait for.
            std::future::pending::<()>().await;
        }
        SIGINT
    }
}
