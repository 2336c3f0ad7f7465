//! What requests about dead letters read: their own letters, however many others the seat has.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_core::store::RedriveTo;
use laneway_core::{EventId, Key, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{OnFailure, Policy};
use laneway_engine::lane::{Answer, Filed, Refused};
use laneway_engine::service::TokioClock;
use laneway_engine::{Env, ProcessorSettings};

use crate::faulty::Faulty;
use crate::world::{SOON, World};

struct Letters {
    world: World,
    store: Arc<Faulty>,
    lanes: u64,
    per_lane: u64,
}

impl Letters {
    /// A seat with so many lanes, each of which has so many dead letters.
    async fn new(on_failure: OnFailure, lanes: u64, per_lane: u64) -> Self {
        let clock = Arc::new(TokioClock::start());
        let (env, memory) = (Env::seeded(clock.clone(), 7), Arc::new(MemoryStore::new(clock)));
        let store = Faulty::new(memory.clone());
        let world = World::through(store.clone(), memory, env);
        let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
        world.engine.define_stream("orders", settings).await.expect("a new stream");
        let policy = Policy { on_failure, ..Policy::default() };
        world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
        let mut last = None;
        for _ in 0..per_lane {
            for lane in 0..lanes {
                last = Some(world.submit(&name(lane), "broken").await);
            }
        }
        world.settled(last.expect("there is one")).await;
        Self { world, store, lanes, per_lane }
    }

    /// Asks for each lane, waits for all answers, and counts the letters that were read per request.
    async fn read_per_request(
        &self,
        to: RedriveTo,
        id_of: impl Fn(u64) -> Option<EventId>,
    ) -> (u64, Vec<Answer>) {
        let operator = self.world.engine.operator();
        let before = self.store.letters.load(Ordering::Relaxed);
        let mut filed: Vec<Filed> = Vec::new();
        for lane in 0..self.lanes {
            let key = Key::new(name(lane)).expect("a short key");
            filed.push(operator.redrive("charge", &key, id_of(lane), to).await.expect("it exists"));
        }
        let mut answers = Vec::new();
        for filed in filed {
            let answer = operator.answer(filed, SOON).await.expect("the store answers");
            answers.push(answer.expect("its owner decides soon"));
        }
        answers.dedup();
        let read = self.store.letters.load(Ordering::Relaxed) - before;
        (read.div_ceil(self.lanes), answers)
    }
}

fn name(lane: u64) -> String {
    format!("lane-{lane}")
}

/// Letters that a request may read: its own, once more if its lane changed meanwhile, and its share of one walk.
const PER_LETTER_MAX: u64 = 3;

#[tokio::test(start_paused = true)]
async fn redrive_of_a_letter_reads_no_other_letters() {
    let letters = Letters::new(OnFailure::DeadLetter, 300, 1).await;
    let (read, answers) = letters.read_per_request(RedriveTo::Place, |lane| Some(EventId(lane + 1))).await;
    assert_eq!(answers, [Answer::Applied]);
    assert!(read <= PER_LETTER_MAX, "{read} letters per request");
}

#[tokio::test(start_paused = true)]
async fn redrive_of_a_lane_reads_the_letters_of_that_lane() {
    for to in [RedriveTo::Place, RedriveTo::Tail] {
        let letters = Letters::new(OnFailure::DeadLetterLane, 150, 2).await;
        let (read, answers) = letters.read_per_request(to, |_| None).await;
        assert_eq!(answers, [Answer::Applied], "{to:?}");
        assert!(read <= letters.per_lane * PER_LETTER_MAX, "{read} letters per request");
    }
}

#[tokio::test(start_paused = true)]
async fn letter_of_a_diverting_lane_is_refused_by_its_neighbours_alone() {
    let lanes = 150;
    let letters = Letters::new(OnFailure::DeadLetterLane, lanes, 3).await;
    for (behind, why) in [(0, Refused::WholeLane), (1, Refused::EarlierDead), (2, Refused::EarlierDead)] {
        let id_of = |lane| Some(EventId(behind * lanes + lane + 1));
        let (read, answers) = letters.read_per_request(RedriveTo::Place, id_of).await;
        assert_eq!(answers, [Answer::Refused(why)]);
        // The letter, and the first two of its lane at most.
        assert!(read <= 3 * PER_LETTER_MAX, "{read} letters per request");
    }
}
