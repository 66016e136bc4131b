//! The questions that wait for answers. Equal questions of one client are asked once: the second call waits for the
//! first call's answer.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use guide::{AgentQuestion, CacheOwner, Error};
use tokio::sync::watch;

use super::answer::MarkedAnswer;

/// The most questions that wait for answers at once.
const QUESTIONS_MAX: usize = 1024;
/// The most questions of one holder; the rest is reserved for others.
const QUESTIONS_OF_ONE: usize = QUESTIONS_MAX / 2;

/// How long after it was asked a call still joins a question that a client carries. A later call was not made together
/// with the first, which the client may have given up.
const CARRIED_FRESH: Duration = Duration::from_secs(2);

/// Whose question it is, and what it asks.
type QuestionKey = (Arc<str>, AgentQuestion);

/// The questions that wait for answers.
#[derive(Debug, Default)]
pub(super) struct PendingQuestions(Mutex<HashMap<QuestionKey, Pending>>);

#[derive(Debug)]
struct Pending {
    /// Distinguishes it from the same question asked at another time.
    marker: u32,
    holder: Arc<str>,
    /// Gets the answer, for the calls that wait for it. Closed without one if nobody will bring it.
    answer: watch::Sender<Option<MarkedAnswer>>,
    asked: Instant,
    /// When a question that a client carries counts as lost.
    expires: Option<Instant>,
}

impl Pending {
    /// Tells whether a new call with the same question can no longer rely on it.
    fn is_given_up(&self, now: Instant) -> bool {
        let is_carried = self.expires.is_some();
        is_carried && now.saturating_duration_since(self.asked) >= CARRIED_FRESH
    }
}

/// What a call with a question does next.
pub(super) enum Joined<'state> {
    /// It asks.
    Own(Turn<'state>),
    /// Another call has asked the same.
    Other(OtherAnswer),
}

/// The answer to the question of another call.
pub(super) struct OtherAnswer(watch::Receiver<Option<MarkedAnswer>>);

impl OtherAnswer {
    /// Waits for the answer; `None` if nobody will bring it.
    pub(super) async fn wait(&mut self) -> Option<MarkedAnswer> {
        let answered = self.0.wait_for(Option::is_some).await;
        answered.ok()?.clone()
    }
}

/// The right to ask a question. Dropped, it lets another call ask.
pub(super) struct Turn<'state> {
    questions: &'state PendingQuestions,
    key: Option<QuestionKey>,
    marker: u32,
}

impl PendingQuestions {
    /// Takes the right to ask a question, or joins the call that has it.
    pub(super) fn join(
        &self,
        owner: &CacheOwner,
        question: &AgentQuestion,
        marker: u32,
    ) -> Result<Joined<'_>, Error> {
        let mut pending = self.lock();
        let now = Instant::now();
        pending.retain(|_, one| one.expires.is_none_or(|expires| expires > now));
        let key = (Arc::clone(&owner.name), question.clone());
        if let Some(other) = pending.get(&key)
            && !other.is_given_up(now)
        {
            return Ok(Joined::Other(OtherAnswer(other.answer.subscribe())));
        }
        let own = pending.values().filter(|one| one.holder == owner.holder);
        if own.count() >= QUESTIONS_OF_ONE || pending.len() >= QUESTIONS_MAX {
            return Err(Error::Busy {
                limit: QUESTIONS_OF_ONE,
            });
        }
        let question = Pending {
            marker,
            holder: Arc::clone(&owner.holder),
            answer: watch::Sender::new(None),
            asked: now,
            expires: None,
        };
        pending.insert(key.clone(), question);
        Ok(Joined::Own(self.turn(key, marker)))
    }

    /// Returns the right to a question that the client carried, if it is still waited for.
    pub(super) fn resume(&self, owner: &CacheOwner, marker: u32) -> Option<Turn<'_>> {
        let pending = self.lock();
        let mut own = pending.iter().filter(|((name, _), _)| *name == owner.name);
        let (key, _) = own.find(|(_, one)| one.marker == marker)?;
        Some(self.turn(key.clone(), marker))
    }

    /// Forgets a question that another call has asked, so that it can be asked again.
    pub(super) fn give_up(&self, owner: &CacheOwner, question: &AgentQuestion) {
        let key = (Arc::clone(&owner.name), question.clone());
        self.lock().remove(&key);
    }

    /// Returns how many questions of a client wait.
    pub(super) fn count(&self, owner: &CacheOwner) -> usize {
        let now = Instant::now();
        let pending = self.lock();
        let own = pending.iter().filter(|((name, _), one)| {
            *name == owner.name && one.expires.is_none_or(|expires| expires > now)
        });
        own.count()
    }

    fn turn(&self, key: QuestionKey, marker: u32) -> Turn<'_> {
        Turn {
            questions: self,
            key: Some(key),
            marker,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionKey, Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Gives the answer to the calls that wait for it.
    pub(super) fn settle(mut self, answer: MarkedAnswer) {
        if let Some(own) = self.remove() {
            own.answer.send_replace(Some(answer));
        }
    }

    /// Hands the question to the client, which brings the answer in a later call.
    pub(super) fn carry(mut self, lasts: Duration) {
        let Some(key) = self.key.take() else { return };
        if let Some(own) = self.questions.lock().get_mut(&key) {
            own.expires = Some(Instant::now() + lasts);
        }
    }

    /// Takes the question out, unless another call has asked it again in the meantime.
    fn remove(&mut self) -> Option<Pending> {
        let key = self.key.take()?;
        let mut pending = self.questions.lock();
        let is_own = pending.get(&key)?.marker == self.marker;
        if is_own { pending.remove(&key) } else { None }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.remove());
    }
}

/// Returns a number that no answer can begin with by chance.
pub(super) fn new_marker() -> u32 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // The keys of the hash are random for each process and each use.
    RandomState::new().hash_one(number) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use guide::{PathValidator, Subject};

    fn questions(count: usize) -> Vec<AgentQuestion> {
        let directory = std::env::temp_dir();
        let root = ops::Root::open(&directory).unwrap();
        let validator = PathValidator::new(root, &directory, &["docs"]).unwrap();
        let question = |number| AgentQuestion {
            path: validator.validate(&format!("docs/{number}")).unwrap(),
            subject: Subject::Directory {
                recursive: false,
                pattern: None,
            },
            lack: None,
            size: None,
        };
        (0..count).map(question).collect()
    }

    #[test]
    fn one_holder_has_half_of_the_questions() {
        let pending = PendingQuestions::default();
        let session = |number: usize| CacheOwner {
            name: number.to_string().into(),
            holder: "host".into(),
        };
        let questions = questions(QUESTIONS_MAX);
        let asked = questions
            .iter()
            .enumerate()
            .map_while(|(number, question)| pending.join(&session(number % 3), question, 0).ok());
        let turns: Vec<Joined<'_>> = asked.collect();
        assert_eq!(turns.len(), QUESTIONS_OF_ONE);
        let other = CacheOwner::alone("other");
        assert!(matches!(
            pending.join(&other, &questions[0], 1),
            Ok(Joined::Own(_))
        ));
        drop(turns);
        assert_eq!(pending.count(&session(0)), 0);
    }

    #[tokio::test]
    async fn who_comes_second_gets_the_answer_of_the_first() {
        let (pending, owner) = (PendingQuestions::default(), CacheOwner::alone("one"));
        let question = &questions(1)[0];
        let Ok(Joined::Own(turn)) = pending.join(&owner, question, 7) else {
            panic!("nobody asked before")
        };
        let Ok(Joined::Other(mut other)) = pending.join(&owner, question, 8) else {
            panic!("it was asked before")
        };
        // The client carries it; a later call brings the answer.
        turn.carry(Duration::from_secs(60));
        let turn = pending.resume(&owner, 7).expect("it waits");
        assert!(pending.resume(&CacheOwner::alone("two"), 7).is_none());
        turn.settle(MarkedAnswer {
            answer: super::super::answer::AgentAnswer::Late(1),
            marker: 7,
        });
        assert_eq!(other.wait().await.map(|answer| answer.marker), Some(7));
        // A call that goes away without an answer lets another ask.
        let Ok(Joined::Own(turn)) = pending.join(&owner, question, 9) else {
            panic!("it was answered")
        };
        let Ok(Joined::Other(mut other)) = pending.join(&owner, question, 10) else {
            panic!("it was asked before")
        };
        drop(turn);
        assert!(other.wait().await.is_none());
    }
}
