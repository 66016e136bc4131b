//! What one call has changed so far: one change in each root, with the parts that were written down.

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
    /// The changes that this call takes back.
    undoes: Mutex<Vec<u64>>,
    begun: Mutex<Vec<BegunChange>>,
}

#[derive(Debug)]
struct BegunChange {
    history: Arc<History>,
    number: u64,
    /// How many parts have a name.
    slots: u32,
    /// How many of them were written down.
    written: u32,
    failed: u32,
    /// Something could not be kept.
    lost: bool,
    /// What was written down, if the call may have to take it back.
    parts: Vec<Part>,
}

impl CallChanges {
    pub(crate) fn by(author: Author) -> CallChanges {
        CallChanges {
            author,
            undoes: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    /// Who makes the call.
    pub(crate) fn author(&self) -> &Author {
        &self.author
    }

    /// Says which changes the call takes back, before it does.
    pub(crate) fn set_undoes(&self, numbers: Vec<u64>) {
        *self.undoes.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
    }

    fn undoes(&self) -> Vec<u64> {
        let undoes = self.undoes.lock();
        undoes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the call has done so far in a root, where it takes back changes.
    pub(crate) fn parts_in(&self, history: &History) -> Vec<Part> {
        let begun = self.lock();
        let own = begun.iter().find(|begun| begun.is_in(history));
        own.map(|begun| begun.parts.clone()).unwrap_or_default()
    }

    /// The names of all changes that this call made.
    pub(crate) fn ids(&self) -> Vec<String> {
        let begun = self.lock();
        let made = begun.iter().filter(|begun| begun.written > begun.failed);
        made.map(|begun| change_id(begun.number)).collect()
    }

    /// Tells whether something was changed that cannot be taken back.
    pub(crate) fn has_lost(&self) -> bool {
        self.lock().iter().any(|begun| begun.lost)
    }

    /// Gives the next part of the call's change in a root its number and the name of its object.
    pub(crate) fn slot(&self, history: &Arc<History>, store: &Store) -> SysResult<PartSlot> {
        let mut begun = self.lock();
        let index = match begun.iter().position(|begun| begun.is_in(history)) {
            Some(index) => index,
            None => {
                begun.push(BegunChange {
                    history: Arc::clone(history),
                    number: store.next_number(0)?,
                    slots: 0,
                    written: 0,
                    failed: 0,
                    lost: false,
                    parts: Vec::new(),
                });
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

    /// Writes a part down, before it is seen; returns its index in the change.
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
        own.parts.extend(kept);
        Ok(index)
    }

    /// Says that a part that was written down did not happen.
    pub(crate) fn fail(&self, slot: &PartSlot, index: u32) {
        let mut begun = self.lock();
        let own = begun.iter_mut().find(|begun| begun.is_in(&slot.history));
        if let Some(own) = own {
            own.failed += 1;
            own.parts.pop();
        }
        drop(begun);
        slot.history.journal.fail(slot.number, index);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BegunChange>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BegunChange {
    fn is_in(&self, history: &History) -> bool {
        std::ptr::eq(&*self.history, history)
    }
}

impl Drop for CallChanges {
    fn drop(&mut self) {
        let begun = self.begun.get_mut();
        for begun in begun.unwrap_or_else(PoisonError::into_inner) {
            if begun.written > 0 {
                let end = if begun.written > begun.failed {
                    End::Done
                } else {
                    End::Void
                };
                begun.history.journal.end(begun.number, end);
            }
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
