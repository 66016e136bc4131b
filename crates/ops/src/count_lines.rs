//! Counts the lines of a large file on several threads, and learns its line index from that.

use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use sandbox::OpenFile;

use crate::context::Cancel;
use crate::error::Result;
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};
use crate::read_at::read_at;
use crate::text::line_index::{LineIndex, STRIDE};
use crate::text::lines::newlines;

/// How many strides one unit counts.
const STRIDES_PER_UNIT: u64 = 32;

/// Extends an index by whole strides, from where it ends to the last one before `size`. If the file ends earlier or
/// cannot be read, the rest is left to the next reader.
pub(crate) fn extend(
    index: LineIndex,
    open: OpenFile,
    cancel: &Cancel,
) -> Result<(LineIndex, RunEnd)> {
    let stride = STRIDE as u64;
    let from = index.known().offset;
    let until = open.metadata.size / stride * stride;
    let count = LineCount {
        open,
        buffers: Mutex::default(),
    };
    if !from.is_multiple_of(stride) || from >= until {
        return Ok((index, RunEnd::Complete));
    }
    ordered::run(count, from..until, index, cancel)
}

struct LineCount {
    open: OpenFile,
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// What was counted in some strides, one after the other.
struct Counted {
    start: u64,
    strides: Vec<StrideCount>,
}

struct StrideCount {
    newlines: u64,
    ends_line: bool,
}

impl LineCount {
    /// Counts one stride; `None` if it cannot be read whole.
    fn stride(&self, offset: u64, buffer: &mut [u8]) -> Option<StrideCount> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_at(&self.open, rest, offset + filled as u64) {
                Ok(0) | Err(_) => return None,
                Ok(read) => filled += read,
            }
        }
        Some(StrideCount {
            newlines: newlines(buffer),
            ends_line: buffer.last() == Some(&b'\n'),
        })
    }

    fn buffers(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stages for LineCount {
    type Source = Range<u64>;
    type Batch = Range<u64>;
    type Found = Counted;
    type Outcome = LineIndex;

    fn pull(&self, source: &mut Range<u64>) -> Option<Range<u64>> {
        let start = source.start;
        let most = STRIDES_PER_UNIT * STRIDE as u64;
        source.start = start.saturating_add(most).min(source.end);
        (start < source.start).then_some(start..source.start)
    }

    fn split(&self, batch: Range<u64>) -> (Range<u64>, Option<Range<u64>>) {
        (batch, None)
    }

    fn work(&self, batch: Range<u64>, halt: &Halt) -> Worked<Counted, Range<u64>> {
        let kept = self.buffers().pop();
        let mut buffer = kept.unwrap_or_else(|| vec![0; STRIDE]);
        let mut strides = Vec::new();
        for offset in batch.clone().step_by(STRIDE) {
            let counted = if halt.must_stop() {
                None
            } else {
                self.stride(offset, &mut buffer)
            };
            let Some(counted) = counted else { break };
            strides.push(counted);
        }
        self.buffers().push(buffer);
        Worked {
            found: Some(Counted {
                start: batch.start,
                strides,
            }),
            rest: None,
        }
    }

    fn commit(&self, index: &mut LineIndex, found: Counted) -> ControlFlow<()> {
        // Nothing can be learned beyond a missing stride.
        let is_whole = found.strides.len() as u64 == STRIDES_PER_UNIT;
        let mut offset = found.start;
        for stride in found.strides {
            index.learn_stride(offset, stride.newlines, stride.ends_line);
            offset += STRIDE as u64;
        }
        if is_whole {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn several_threads_learn_what_one_would() {
        let content: String = (0..900_000).map(|number| format!("{number}\n")).collect();
        let tree = Tree::with(&[("file", &content)]);
        let open = || tree.root.open_file(&tree.place("file").path).unwrap();
        for already in [0, 1, 33] {
            let mut expected = LineIndex::default();
            let mut index = LineIndex::default();
            for (number, block) in content.as_bytes().chunks_exact(STRIDE).enumerate() {
                let offset = (number * STRIDE) as u64;
                expected.learn(offset, block, newlines(block));
                if number < already {
                    index = expected.clone();
                }
            }
            let (index, _) = extend(index, open(), &Cancel::never()).unwrap();
            assert_eq!(index, expected, "{already}");
        }
    }

    #[test]
    fn a_file_that_became_shorter_ends_where_it_ends() {
        let content = "line\n".repeat(1_000_000);
        let tree = Tree::with(&[("file", &content)]);
        let open = tree.root.open_file(&tree.place("file").path).unwrap();
        tree.stretch("file", 3 * STRIDE as u64 + 7);
        let (index, _) = extend(LineIndex::default(), open, &Cancel::never()).unwrap();
        assert_eq!(index.known().offset, 3 * STRIDE as u64);
    }

    #[test]
    fn a_caller_that_gave_up_gets_nothing() {
        let content = "line\n".repeat(1_000_000);
        let tree = Tree::with(&[("file", &content)]);
        let open = tree.root.open_file(&tree.place("file").path).unwrap();
        let cancel = Cancel::never();
        cancel.cancel();
        assert!(extend(LineIndex::default(), open, &cancel).is_err());
    }
}
