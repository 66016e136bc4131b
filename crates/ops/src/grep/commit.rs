//! Merges the results of the units in path order, within the bounds of the answer.

use std::ops::ControlFlow;

use super::file::{Hits, weight};
use super::{FileMatches, GrepSearch, Grepped, SearchFrom, SearchOutput};
use crate::byte_budget::COPIES;
use crate::unread::{Unread, UnreadTotal};

/// What a unit found.
#[derive(Default)]
pub(super) struct BatchMatches {
    pub(super) files: Vec<FileMatches>,
    pub(super) searched: u64,
    pub(super) skipped: u64,
    pub(super) too_large: u64,
    pub(super) unread: UnreadTotal,
    pub(super) lines_in_parts: u64,
    /// The unit had to stop because it held enough text.
    pub(super) full: bool,
    /// Set for a piece of a large file.
    pub(super) piece: Option<PieceLines>,
    /// The piece could not be read.
    pub(super) unreadable: Option<Unread>,
}

/// A piece of a large file.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceLines {
    /// No other piece of the file was before it.
    pub(super) is_first: bool,
    /// How many lines begin in it.
    pub(super) lines: u64,
}

/// The results committed so far.
#[derive(Default)]
pub(super) struct GrepProgress {
    pub(super) found: Grepped,
    /// The size of the text held.
    pub(super) text: usize,
    /// Lines of the large file under way in the pieces that were committed.
    pub(super) lines: u64,
    /// The large file under way has matches.
    pub(super) open_file: bool,
    /// A piece of the large file under way could not be read.
    pub(super) unreadable: bool,
}

impl GrepSearch {
    /// Adds a unit's results; breaks when no more are needed.
    pub(super) fn commit_batch(
        &self,
        progress: &mut GrepProgress,
        mut found: BatchMatches,
    ) -> ControlFlow<()> {
        progress.found.files_searched += found.searched;
        progress.found.files_skipped += found.skipped;
        progress.found.files_too_large += found.too_large;
        progress.found.lines_in_parts += found.lines_in_parts;
        progress
            .found
            .unread
            .extend(std::mem::take(&mut found.unread));
        let continues = progress.enter_piece(&mut found, self.wanted.from);
        for file in found.files {
            self.commit_file(progress, file, continues)?;
        }
        if found.full {
            progress.found.truncated = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Adds those of a file's matches that are needed.
    fn commit_file(
        &self,
        progress: &mut GrepProgress,
        file: FileMatches,
        continues: bool,
    ) -> ControlFlow<()> {
        match self.wanted.output {
            SearchOutput::Matches => self.commit_matches(progress, file, continues),
            SearchOutput::Files | SearchOutput::Count => {
                self.commit_count(progress, file, continues)
            }
        }
    }

    fn commit_matches(
        &self,
        progress: &mut GrepProgress,
        mut file: FileMatches,
        continues: bool,
    ) -> ControlFlow<()> {
        let found = &mut progress.found;
        let total = usize::try_from(found.total_matches).unwrap_or(usize::MAX);
        let room = self.max_results.saturating_sub(total);
        found.truncated = file.matches.len() > room;
        file.matches.truncate(room);
        file.count = file.matches.len() as u64;
        found.total_matches += file.count;
        progress.text += file.matches.iter().map(weight).sum::<usize>();
        match found.files.last_mut().filter(|_| continues) {
            Some(last) => last.extend(file),
            None if file.count > 0 => found.files.push(file),
            None => {}
        }
        found.truncated |= progress.text >= self.max_text;
        if found.truncated {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn commit_count(
        &self,
        progress: &mut GrepProgress,
        mut file: FileMatches,
        continues: bool,
    ) -> ControlFlow<()> {
        let found = &mut progress.found;
        let counts = self.wanted.output == SearchOutput::Count;
        if let Some(last) = found.files.last_mut().filter(|_| continues) {
            if counts {
                found.total_matches += file.count;
                last.extend(file);
            }
            return ControlFlow::Continue(());
        }
        if found.files.len() >= self.max_results {
            found.truncated = true;
            return ControlFlow::Break(());
        }
        file.count = if counts { file.count } else { 1 };
        found.total_matches += file.count;
        found.files.push(file);
        ControlFlow::Continue(())
    }
}

impl BatchMatches {
    /// About how much memory it takes until its reply is written.
    pub(super) fn footprint(&self) -> u64 {
        let of_file = |file: &FileMatches| {
            let matches: usize = file.matches.iter().map(weight).sum();
            size_of::<FileMatches>() + file.path.len() + matches
        };
        let bytes: usize = self.files.iter().map(of_file).sum();
        (bytes as u64).saturating_mul(COPIES)
    }

    /// Counts a file or directory that could not be read.
    pub(super) fn skip(&mut self, unread: Unread) {
        self.skipped += 1;
        self.unread.add(unread);
    }

    pub(super) fn add(&mut self, path: String, invalid_utf8: bool, hits: Hits) {
        if hits.count > 0 {
            let Hits {
                count, mut matches, ..
            } = hits;
            // Most files have few matches, and they stay until the reply is written.
            matches.shrink_to_fit();
            self.files.push(FileMatches {
                path,
                invalid_utf8,
                count,
                matches,
            });
        }
    }
}

impl FileMatches {
    fn extend(&mut self, other: FileMatches) {
        self.count += other.count;
        self.matches.extend(other.matches);
    }
}

impl GrepProgress {
    /// Corrects a piece's line numbers, and returns whether its file already has an entry.
    fn enter_piece(&mut self, found: &mut BatchMatches, from: SearchFrom) -> bool {
        let Some(PieceLines { is_first, lines }) = found.piece else {
            return false;
        };
        if is_first {
            self.lines = 0;
            self.open_file = false;
            self.unreadable = false;
        }
        if let Some(unread) = found.unreadable.take().filter(|_| !self.unreadable) {
            self.unreadable = true;
            self.found.unread.add(unread);
            // It was counted as searched when it was opened.
            self.found.files_searched = self.found.files_searched.saturating_sub(1);
            self.found.files_skipped += 1;
        }
        let signed = |lines: u64| i64::try_from(lines).unwrap_or(i64::MAX);
        let moved = match from {
            SearchFrom::Start => signed(self.lines),
            SearchFrom::End => -signed(self.lines + lines + 1),
        };
        for line in found.files.iter_mut().flat_map(|file| &mut file.matches) {
            line.line_number += moved;
        }
        self.lines += lines;
        let continues = self.open_file;
        self.open_file |= !found.files.is_empty();
        continues
    }
}
