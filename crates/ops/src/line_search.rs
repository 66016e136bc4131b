//! Finds and counts the lines of an open file with the help of its line index, and extends the index on the way.

use std::ops::ControlFlow;
use std::sync::Arc;

use memchr::memchr_iter;
use sandbox::OpenFile;

use crate::context::{Cancel, Context};
use crate::count_lines;
use crate::error::{Error, Result};
use crate::ordered::RunEnd;
use crate::read_at::reader;
use crate::text::line_index::{LineIndex, Mark, STRIDE};
use crate::text::lines::{Blocks, Sought, newlines};

/// The smallest file that is worth remembering: counting a smaller one costs no more than looking it up.
const REMEMBERED_FROM: u64 = 256 * 1024;

/// How much has to be counted so that several threads are worth it.
const COUNTED_TOGETHER_FROM: u64 = 16 * 1024 * 1024;

/// Tells whether the lines of a file are remembered. Content in memory may be another than the file's own.
fn is_remembered(open: &OpenFile) -> bool {
    open.metadata.size >= REMEMBERED_FROM && !open.is_in_memory()
}

/// One search for lines in one file.
pub(crate) struct LineSearch<'a> {
    open: &'a OpenFile,
    context: &'a Context,
    index: Arc<LineIndex>,
    is_kept: bool,
}

impl<'a> LineSearch<'a> {
    pub(crate) fn new(open: &'a OpenFile, context: &'a Context) -> LineSearch<'a> {
        let is_worth_it = is_remembered(open);
        let index = if is_worth_it {
            context.line_index_cache.find(open)
        } else {
            Arc::default()
        };
        let is_kept =
            is_worth_it && index.lines().is_none() && context.line_index_cache.may_learn(open);
        LineSearch {
            open,
            context,
            index,
            is_kept,
        }
    }

    /// Finds where a line starts, counted from 0.
    pub(crate) fn seek(&mut self, line: u64) -> Result<Sought> {
        if line == 0 {
            return Ok(Sought::At(0));
        }
        let cancel = &self.context.cancel;
        let mut found = None;
        let end = self.scan(self.index.before_line(line), cancel, |mark, block, here| {
            let missing = line - mark.newlines;
            if here < missing {
                return ControlFlow::Continue(());
            }
            let nth = usize::try_from(missing - 1).unwrap_or(usize::MAX);
            let newline = memchr_iter(b'\n', block).nth(nth).unwrap_or(block.len());
            found = Some(mark.offset + newline as u64 + 1);
            ControlFlow::Break(())
        })?;
        Ok(match found {
            Some(offset) => Sought::At(offset),
            None => Sought::Beyond {
                lines: self.index.lines().unwrap_or(end.newlines),
                size: end.offset,
            },
        })
    }

    /// Counts the lines before one that starts at `offset`; `None` if that would take too long.
    pub(crate) fn lines_before(&mut self, offset: u64) -> Result<Option<u64>> {
        self.within_share(|search, cancel| {
            let mut before = 0;
            search.scan(
                search.index.before_offset(offset),
                cancel,
                |mark, block, _| {
                    let left = usize::try_from(offset - mark.offset).unwrap_or(usize::MAX);
                    before = mark.newlines + newlines(block.get(..left).unwrap_or(block));
                    if left <= block.len() {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                },
            )?;
            Ok(before)
        })
    }

    /// Counts all lines; `None` if that would take too long. The index keeps the count for the next time.
    pub(crate) fn total(&mut self) -> Result<Option<u64>> {
        if let Some(lines) = self.index.lines() {
            return Ok(Some(lines));
        }
        let counted = self.within_share(|search, cancel| {
            search.count_together(cancel)?;
            let everything = |_: Mark, _: &[u8], _| ControlFlow::Continue(());
            search.scan(search.index.known(), cancel, everything)
        })?;
        Ok(counted.and_then(|_| self.index.lines()))
    }

    /// Counts the lines of a large file on several threads, if that does not take too long: for callers that want all of them
    /// counted anyway, and a line that [`LineSearch::seek`] would otherwise look for on one thread.
    pub(crate) fn count_ahead(&mut self) -> Result<()> {
        self.within_share(Self::count_together).map(drop)
    }

    /// Counts most of a large file on several threads; its end is left to whoever reads on.
    fn count_together(&mut self, cancel: &Cancel) -> Result<()> {
        let left = self
            .open
            .metadata
            .size
            .saturating_sub(self.index.known().offset);
        if left < COUNTED_TOGETHER_FROM || self.open.is_in_memory() {
            return Ok(());
        }
        if let Ok(open) = self.open.again() {
            let (index, ending) = count_lines::extend((*self.index).clone(), open, cancel)?;
            self.index = Arc::new(index);
            if ending == RunEnd::Expired {
                return Err(Error::Timeout);
            }
        }
        Ok(())
    }

    /// Remembers what was learnt, also by a call that failed.
    pub(crate) fn keep(self) {
        if self.is_kept {
            self.context.line_index_cache.keep(self.open, self.index);
        }
    }

    /// Reads forward from a mark until told to stop, or to the end, which it returns.
    fn scan(
        &mut self,
        from: Mark,
        cancel: &Cancel,
        mut take: impl FnMut(Mark, &[u8], u64) -> ControlFlow<()>,
    ) -> Result<Mark> {
        let mut read = reader(self.open, cancel);
        let mut blocks = Blocks::new(&mut read, from.offset, STRIDE);
        let mut mark = from;
        while let Some((offset, block)) = blocks.next()? {
            let here = newlines(block);
            if offset == self.index.known().offset {
                Arc::make_mut(&mut self.index).learn(offset, block, here);
            }
            if take(mark, block, here).is_break() {
                return Ok(mark);
            }
            mark.offset = offset + block.len() as u64;
            mark.newlines += here;
        }
        if mark.offset == self.index.known().offset {
            Arc::make_mut(&mut self.index).end();
        }
        Ok(mark)
    }

    /// Does optional work in a share of the remaining time.
    fn within_share<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &Cancel) -> Result<T>,
    ) -> Result<Option<T>> {
        let caller = &self.context.cancel;
        match work(self, &caller.share()) {
            Err(Error::Timeout) if !caller.must_stop() => Ok(None),
            result => result.map(Some),
        }
    }
}
