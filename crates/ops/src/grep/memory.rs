//! Uses what earlier searches remember: between the walk and the open, and around the reading of a file.

use sandbox::WalkItem;

use super::CompressedFiles;
use super::batch::{Candidate, Named};
use super::file::{FileSearched, LargeFile, PieceMatches, search_piece, search_whole};
use super::lines::Searched;
use super::{GrepSearch, GrepUnit, SearchFrom};
use crate::decompress::Compression;
use crate::search_memory::{Excluded, LargeLesson, Question, Tally};

impl GrepSearch {
    /// The result of searching a file, and the file's size, if both are known without opening it.
    pub(super) fn known(&self, item: &WalkItem, tally: &mut Tally) -> Option<(Excluded, u64)> {
        let memory = self.memory.as_ref()?;
        tally.meet();
        let is_unfolded = self.compressed == CompressedFiles::Decompressed
            && Compression::by_name(item.name.as_bytes()).is_some();
        if is_unfolded {
            return None;
        }
        let question = Question {
            needs: self.needs.as_ref()?,
            longest_line: self.matcher.reach().line,
            largest: self.max_file_size,
        };
        memory.excludes(item, question, tally)
    }

    /// Searches a whole file, and remembers it if it is one to be learned.
    pub(super) fn search_and_learn(
        &self,
        candidate: &Candidate,
        unit: &mut GrepUnit<'_>,
    ) -> FileSearched {
        let GrepUnit {
            scratch,
            room,
            halt,
            tally,
            ..
        } = unit;
        let opened = &candidate.opened;
        let lesson = match (&self.memory, &candidate.named) {
            (Some(memory), Named::By(item)) => memory.lesson(item, opened, tally),
            _ => None,
        };
        let searched = search_whole(opened, self.wanted, scratch, room, halt);
        if let Some(lesson) = lesson.filter(|_| searched.unread.is_none()) {
            let content = scratch.buffer.get(..searched.read).unwrap_or_default();
            let is_binary = searched.hits.is_none();
            lesson.learn(opened, content, is_binary, &mut scratch.table);
        }
        searched
    }

    /// Decides whether the pieces of a large file may be remembered; only those that are cut off from its start.
    pub(super) fn large_lesson(&self, candidate: &Candidate) -> Option<LargeLesson> {
        let memory = self.memory.as_ref();
        let memory = memory.filter(|_| self.wanted.from == SearchFrom::Start)?;
        match &candidate.named {
            Named::By(item) => memory.large_lesson(item, &candidate.opened),
            Named::Already { .. } => None,
        }
    }

    /// Searches a piece of a large file, and remembers it if it is its turn.
    pub(super) fn search_piece_and_learn(
        &self,
        large: &LargeFile,
        unit: &mut GrepUnit<'_>,
    ) -> PieceMatches {
        let GrepUnit {
            scratch,
            room,
            halt,
            ..
        } = unit;
        let lesson = || {
            let memory = self.memory.as_ref()?;
            memory.piece_lesson(large.lesson?, &large.opened, large.numbered()?)
        };
        let lesson = lesson();
        let piece = search_piece(large, self.wanted, scratch, room, halt);
        let lines = piece
            .whole_lines
            .clone()
            .filter(|_| piece.searched != Searched::Halted);
        if let (Some(lesson), Some(lines)) = (lesson, lines) {
            let lines = scratch.buffer.get(lines).unwrap_or_default();
            lesson.learn(&large.opened, lines, &mut scratch.table);
        }
        piece
    }
}
