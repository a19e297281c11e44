//! Who holds a lease that expires, under clocks that tests set and stores that fail.

use std::sync::Mutex;

use object_store::memory::InMemory;
use strandline_testkit::{
    fault::{Fault, FaultStore, Rule},
    random::Random,
};

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

/// A clock that stands until a test moves it.
#[derive(Debug, Default)]
struct SetClock(Mutex<Duration>);

impl SetClock {
    fn pass(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

impl Clock for SetClock {
    fn now(&self) -> Duration {
        Duration::from_secs(1_700_000_000) + *self.0.lock().unwrap()
    }
}

fn store() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

async fn take(store: &Arc<dyn ObjectStore>, clock: &Arc<SetClock>) -> Result<Keeper> {
    Keeper::acquire(store, Arc::clone(clock) as Arc<dyn Clock>, MINUTE).await
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test]
async fn r27_a_second_owner_is_refused_until_the_lease_expires_and_told_when_that_is() {
    let (store, clock) = (store(), Arc::new(SetClock::default()));
    let mut first = take(&store, &clock).await.unwrap();
    clock.pass(seconds(40));
    assert!(first.renew().await.unwrap());
    clock.pass(seconds(59));
    let refused = take(&store, &clock).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    let help = refused.help_text().unwrap();
    assert!(help.contains("in 1 seconds") && help.contains("2023-11-14T22:15:00.000Z"), "{help}");
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");

    clock.pass(seconds(1));
    let second = take(&store, &clock).await.unwrap();
    assert!(second.record.epoch > first.record.epoch);
    assert!(!first.renew().await.unwrap(), "the old owner finds out at its next renewal");
    assert!(first.taken_over().await.to_string().contains("took over"));
}

#[tokio::test]
async fn r27_a_lease_that_is_given_back_is_free_at_once() {
    let (store, clock) = (store(), Arc::new(SetClock::default()));
    for epoch in 1..=3 {
        let lease = take(&store, &clock).await.unwrap();
        assert_eq!(lease.record.epoch, epoch);
        lease.give_back().await.unwrap();
    }
}

#[tokio::test]
async fn r27_of_many_takers_one_succeeds() {
    let store: Arc<dyn ObjectStore> = Arc::new(Yielding(InMemory::new()));
    let clock = Arc::new(SetClock::default());
    for round in 0..20 {
        let takers = (0..8).map(|_| take(&store, &clock));
        let taken: Vec<_> =
            futures::future::join_all(takers).await.into_iter().filter_map(Result::ok).collect();
        assert_eq!(taken.len(), 1, "round {round}");
        clock.pass(MINUTE);
    }
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_is_found() {
    let faulty = FaultStore::new(InMemory::new());
    let faults = faulty.faults();
    let (store, clock): (Arc<dyn ObjectStore>, _) = (Arc::new(faulty), Arc::new(SetClock::default()));
    let mut lease = take(&store, &clock).await.unwrap();
    clock.pass(seconds(20));
    faults.add(Rule::nth(1, Fault::After).on("lease/"));
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    clock.pass(seconds(2));
    assert!(lease.renew().await.unwrap(), "what landed is ours");
    clock.pass(seconds(20));
    assert!(lease.renew().await.unwrap());
    // The same of the record by which a lease is taken.
    lease.give_back().await.unwrap();
    faults.add(Rule::nth(1, Fault::Before).of("put").on("lease/"));
    assert!(take(&store, &clock).await.is_err());
    assert!(take(&store, &clock).await.is_ok());
}

#[tokio::test]
async fn r27_a_lease_that_cannot_be_renewed_is_lost_when_it_expires_and_no_sooner() {
    let faulty = FaultStore::new(InMemory::new());
    let faults = faulty.faults();
    let (store, clock): (Arc<dyn ObjectStore>, _) = (Arc::new(faulty), Arc::new(SetClock::default()));
    // Renewals are a matter of real time here; expiry is one of the clock that is set.
    let short = Duration::from_millis(90);
    let (_, mut lease) =
        Expiring::acquire(&store, Arc::clone(&clock) as Arc<dyn Clock>, short).await.unwrap();
    faults.die();
    assert!(time::timeout(short * 3, lease.lost()).await.is_err(), "it has not expired yet");
    clock.pass(short);
    let lost = time::timeout(seconds(20), lease.lost()).await.unwrap();
    assert_eq!(lost.kind(), ErrorKind::Busy);
    assert!(lost.to_string().contains("could not be renewed"), "{lost}");
}

#[tokio::test]
async fn r27_the_task_renews_and_gives_back() {
    let (store, clock) = (store(), Arc::new(SetClock::default()));
    let short = Duration::from_millis(60);
    let (_, lease) = Expiring::acquire(&store, Arc::clone(&clock) as Arc<dyn Clock>, short).await.unwrap();
    let register = Register::new(Arc::clone(&store), engine_path(&["lease"]));
    let mut newest = 0;
    for _ in 0..1000 {
        time::sleep(short / 3).await;
        newest = register.numbers().await.unwrap().pop().unwrap();
        if newest > 5 {
            break;
        }
    }
    assert!(newest > 5, "renewed only {newest} times");
    assert!(register.numbers().await.unwrap().len() <= 3, "old records are removed");
    drop(lease);
    for _ in 0..1000 {
        time::sleep(short / 3).await;
        if register.newest::<LeaseRecord>().await.unwrap().unwrap().1.released {
            return;
        }
    }
    panic!("a lease that is dropped was not given back");
}

#[tokio::test]
async fn a_process_that_slept_does_not_take_a_number_that_was_used_and_removed() {
    let (store, clock) = (store(), Arc::new(SetClock::default()));
    let mut sleeper = take(&store, &clock).await.unwrap();
    clock.pass(MINUTE);
    let mut other = take(&store, &clock).await.unwrap();
    for _ in 0..5 {
        assert!(other.renew().await.unwrap());
    }
    let left = other.register.numbers().await.unwrap();
    assert!(!left.contains(&(sleeper.number + 1)), "its next number is free again: {left:?}");
    assert!(!sleeper.renew().await.unwrap());
    assert!(other.renew().await.unwrap(), "the owner is not disturbed");
}

/// Owners of chance: whoever thinks that it holds the lease, while nobody's clock says that it expired, is the only one, and
/// epochs only rise.
#[tokio::test]
async fn r27_two_never_hold_a_lease_at_once() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (store, clock) = (store(), Arc::new(SetClock::default()));
        let mut actors: Vec<Option<Keeper>> = (0..3).map(|_| None).collect();
        let (mut newest_epoch, mut taken) = (0, 0);
        for step in 0..60 {
            let who = random.place(3);
            match (random.below(4), actors[who].take()) {
                (0, held) => {
                    clock.pass(seconds(random.below(50)));
                    actors[who] = held;
                }
                (1, Some(held)) => held.give_back().await.unwrap(),
                (_, Some(mut held)) => {
                    // One that lost it drops it.
                    if held.renew().await.unwrap() {
                        actors[who] = Some(held);
                    }
                }
                (_, None) => {
                    if let Ok(held) = take(&store, &clock).await {
                        assert!(held.record.epoch > newest_epoch, "seed {seed} step {step}");
                        newest_epoch = held.record.epoch;
                        taken += 1;
                        actors[who] = Some(held);
                    }
                }
            }
            let holds = |held: &&Keeper| held.record.expiry() > clock.now();
            let holders = actors.iter().flatten().filter(holds).count();
            assert!(holders <= 1, "seed {seed} step {step}");
        }
        assert!(taken > 1, "seed {seed}");
    }
}

/// A store that lets others have their turn before each of its answers.
#[derive(Debug)]
struct Yielding(InMemory);

impl std::fmt::Display for Yielding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Yielding")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Yielding {
    async fn put_opts(
        &self,
        location: &object_store::path::Path,
        payload: object_store::PutPayload,
        opts: object_store::PutOptions,
    ) -> object_store::Result<object_store::PutResult> {
        tokio::task::yield_now().await;
        self.0.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &object_store::path::Path,
        opts: object_store::PutMultipartOptions,
    ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
        self.0.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &object_store::path::Path,
        options: object_store::GetOptions,
    ) -> object_store::Result<object_store::GetResult> {
        tokio::task::yield_now().await;
        self.0.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>> {
        self.0.delete_stream(locations)
    }

    fn list(
        &self,
        prefix: Option<&object_store::path::Path>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(
        &self,
        prefix: Option<&object_store::path::Path>,
    ) -> object_store::Result<object_store::ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &object_store::path::Path,
        to: &object_store::path::Path,
        options: object_store::CopyOptions,
    ) -> object_store::Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}
