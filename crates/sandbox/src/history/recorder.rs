//! The changes of one call so far: one in each root, with the parts that were recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::journal::now_ms;
use super::record::{Author, End, Part, change_id};
use super::{History, Store};
use crate::change::Durability;
use crate::name::Name;
use crate::syscall::{self, Errno, SysResult};

/// The changes of one call. When it is dropped, the call is over and its changes have ended.
#[derive(Debug, Default)]
pub(crate) struct CallChanges {
    author: Author,
    /// The changes that this call undoes.
    undoes: Mutex<Vec<u64>>,
    begun: Mutex<Vec<BegunChange>>,
    /// What it does is on disk before it is confirmed.
    is_durable: AtomicBool,
    /// It changed something in a root whose history cannot be opened.
    is_unrecorded: AtomicBool,
}

#[derive(Debug)]
struct BegunChange {
    history: Arc<History>,
    number: u64,
    /// How many parts have a name.
    slots: u32,
    /// How many of them were recorded.
    written: u32,
    failed: u32,
    /// Something could not be kept.
    lost: bool,
    /// Whether the records themselves show that no further part follows.
    is_closed: bool,
    has_ended: bool,
    /// Another history has this change too, under this number.
    is_joint: bool,
    /// The parts that were recorded and happened, if the call may have to undo them; each with its index.
    parts: Vec<(u32, Part)>,
}

impl CallChanges {
    pub(crate) fn by(author: Author) -> CallChanges {
        CallChanges {
            author,
            undoes: Mutex::default(),
            begun: Mutex::default(),
            is_durable: AtomicBool::default(),
            is_unrecorded: AtomicBool::default(),
        }
    }

    /// Says how durable a change of the call is.
    pub(crate) fn begin(&self, durability: Durability) {
        let is_durable = durability == Durability::Fsync;
        self.is_durable.fetch_or(is_durable, Ordering::Relaxed);
    }

    /// Who makes the call.
    pub(crate) fn author(&self) -> &Author {
        &self.author
    }

    /// Records which changes the call will undo.
    pub(crate) fn set_undoes(&self, numbers: Vec<u64>) {
        *self.undoes.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
    }

    /// The changes that the call undoes.
    pub(super) fn undoes(&self) -> Vec<u64> {
        let undoes = self.undoes.lock();
        undoes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What an undo has done so far in a root: its number there, and the parts.
    pub(super) fn made_in(&self, history: &History) -> Option<(u64, Vec<(u32, Part)>)> {
        let begun = self.lock();
        let own = begun.iter().find(|begun| begun.is_in(history));
        own.map(|begun| (begun.number, begun.parts.clone()))
    }

    /// The names of all changes that this call made.
    pub(crate) fn ids(&self) -> Vec<String> {
        let begun = self.lock();
        let mut joint = None;
        let made = begun.iter().filter(|begun| begun.written > begun.failed);
        made.filter(|begun| !begun.is_joint || joint.replace(begun.number) != Some(begun.number))
            .map(|begun| change_id(begun.number))
            .collect()
    }

    /// Begins one change in two histories, under one number; `false` if the call has begun another in one of them.
    pub(crate) fn begin_joint(
        &self,
        one: (&Arc<History>, &Store),
        other: (&Arc<History>, &Store),
    ) -> SysResult<bool> {
        let mut begun = self.lock();
        let number = |history: &Arc<History>| {
            let own = begun.iter().find(|begun| begun.is_in(history));
            own.map(|own| own.number)
        };
        match (number(one.0), number(other.0)) {
            (None, None) => {}
            (known, theirs) => return Ok(known == theirs),
        }
        let number = one.1.next_joint_number(other.1)?;
        for history in [one.0, other.0] {
            begun.push(BegunChange {
                is_joint: true,
                ..BegunChange::new(history, number)
            });
        }
        Ok(true)
    }

    /// Tells whether something was changed that cannot be undone.
    pub(crate) fn has_lost(&self) -> bool {
        self.is_unrecorded.load(Ordering::Relaxed) || self.lock().iter().any(|begun| begun.lost)
    }

    /// Says that a root's history cannot be opened, so that a change there cannot be undone.
    pub(super) fn note_unrecorded(&self) {
        self.is_unrecorded.store(true, Ordering::Relaxed);
    }

    /// Gives the next part of the call's change in a root its number and the name of its object.
    pub(crate) fn slot(&self, history: &Arc<History>, store: &Store) -> SysResult<PartSlot> {
        let mut begun = self.lock();
        let index = match begun.iter().position(|begun| begun.is_in(history)) {
            Some(index) => index,
            None => {
                begun.push(BegunChange::new(history, store.next_number(0)?));
                begun.len() - 1
            }
        };
        let change = begun.get_mut(index).ok_or(Errno::INVAL)?;
        loop {
            let object = format!("{}.{}", change_id(change.number), change.slots);
            let object = Name::new(object.as_bytes()).ok_or(Errno::INVAL)?;
            change.slots += 1;
            // After a power cut an object may be there whose record is lost with its number.
            match syscall::stat_at_unchecked(store.objects(), &object) {
                Ok(_) => {}
                Err(Errno::NOENT) => {
                    return Ok(PartSlot {
                        history: Arc::clone(history),
                        number: change.number,
                        object,
                    });
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Records a part before it is visible; returns its index in the change.
    pub(crate) fn write(
        &self,
        slot: &PartSlot,
        part: Part,
        last: bool,
        durability: Durability,
    ) -> SysResult<u32> {
        let history = &slot.history;
        let undoes = self.undoes();
        let mut begun = self.lock();
        let own = begun.iter_mut().find(|begun| begun.is_in(history));
        let own = own.ok_or(Errno::INVAL)?;
        let (index, lost) = (own.written, part.lost);
        let kept = (!undoes.is_empty()).then(|| part.clone());
        let store = history.store().ok_or(Errno::NOENT)?;
        let journal = &history.journal;
        if index > 0 {
            journal.add(slot.number, part, last, durability)?;
        } else {
            let author = Author {
                time: now_ms(),
                undoes,
                ..self.author.clone()
            };
            journal.begin(store, slot.number, &author, part, last, durability)?;
        }
        own.written += 1;
        own.lost |= lost;
        own.is_closed = last;
        own.parts.extend(kept.map(|part| (index, part)));
        Ok(index)
    }

    /// Records that a recorded part did not happen.
    pub(crate) fn fail(&self, slot: &PartSlot, index: u32) {
        self.fail_in(&slot.history, slot.number, index);
    }

    /// Records that a part of the change with this number did not happen.
    pub(super) fn fail_in(&self, history: &History, number: u64, index: u32) {
        let mut begun = self.lock();
        let own = begun.iter_mut().find(|begun| begun.is_in(history));
        if let Some(own) = own {
            own.failed += 1;
            own.is_closed = false;
            own.parts.retain(|(other, _)| *other != index);
        }
        drop(begun);
        history.journal.fail(number, index);
    }

    /// Ends the changes whose parts alone do not tell, after a power cut, that they were all: a reply that confirms them
    /// comes after this.
    pub(crate) fn settle(&self) -> SysResult<()> {
        if !self.is_durable.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut begun = self.lock();
        let open = begun.iter_mut().filter(|begun| begun.needs_end());
        let ended = open.map(|begun| begun.end(Durability::Fsync));
        ended.fold(Ok(()), SysResult::and)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BegunChange>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BegunChange {
    fn new(history: &Arc<History>, number: u64) -> BegunChange {
        BegunChange {
            history: Arc::clone(history),
            number,
            slots: 0,
            written: 0,
            failed: 0,
            lost: false,
            is_closed: false,
            has_ended: false,
            is_joint: false,
            parts: Vec::new(),
        }
    }

    fn is_in(&self, history: &History) -> bool {
        std::ptr::eq(&*self.history, history)
    }

    /// Tells whether nothing but its end says that all its parts were made.
    fn needs_end(&self) -> bool {
        !self.is_closed && self.written > self.failed
    }

    /// Records that it has ended, if that was not done.
    fn end(&mut self, durability: Durability) -> SysResult<()> {
        if self.written == 0 || std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        let end = if self.written > self.failed {
            End::Done
        } else {
            End::Void
        };
        self.history.journal.end(self.number, end, durability)
    }
}

impl Drop for CallChanges {
    fn drop(&mut self) {
        let _ = self.settle();
        let begun = self.begun.get_mut();
        for begun in begun.unwrap_or_else(PoisonError::into_inner) {
            let _ = begun.end(Durability::Fast);
        }
    }
}

/// The place of a part in a change, and the name of the object that keeps what was there.
#[derive(Debug)]
pub(crate) struct PartSlot {
    pub(crate) history: Arc<History>,
    pub(crate) number: u64,
    pub(crate) object: Name,
}
