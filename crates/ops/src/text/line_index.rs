//! Knows where the lines of a large file are: at regular positions, how many newlines come before.
//!
//! An index is learnt while a file is read for another reason, from its beginning on, and may end anywhere. It never has
//! more than [`MARKS_MAX`] marks: in a longer file they are further apart. Pure: [`crate::line_index_cache`] decides which
//! indexes are kept, and for which files.

/// How many bytes are read and counted at a time; marks are this far apart, or twice as far, and so on.
pub(crate) const STRIDE: usize = 64 * 1024;

/// The most marks of one index: 128 KiB.
const MARKS_MAX: usize = 16 * 1024;

/// A position in a file, and how many newlines come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    pub(crate) newlines: u64,
}

/// Where lines are, as far as the file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineIndex {
    /// How far apart the marks are.
    step: u64,
    /// The newlines before the first step, the second, and so on.
    marks: Vec<u64>,
    /// Up to which position the file is known.
    known: Mark,
    /// Whether what is known ends inside a line.
    open: bool,
    /// Whether that is all there is.
    complete: bool,
}

impl Default for LineIndex {
    fn default() -> LineIndex {
        LineIndex {
            step: STRIDE as u64,
            marks: Vec::new(),
            known: Mark::default(),
            open: false,
            complete: false,
        }
    }
}

impl LineIndex {
    /// Learns from a block. A block that begins where the index ends extends it; any other block is known or out of reach.
    pub(crate) fn learn(&mut self, offset: u64, block: &[u8], newlines: u64) {
        let Some(last) = block.last().filter(|_| offset == self.known.offset) else {
            return;
        };
        self.extend(block.len() as u64, newlines, *last == b'\n');
    }

    /// Learns from a whole stride that was counted elsewhere.
    pub(crate) fn learn_stride(&mut self, offset: u64, newlines: u64, ends_line: bool) {
        if offset == self.known.offset {
            self.extend(STRIDE as u64, newlines, ends_line);
        }
    }

    fn extend(&mut self, length: u64, newlines: u64, ends_line: bool) {
        self.known.offset += length;
        self.known.newlines += newlines;
        self.open = !ends_line;
        if self.known.offset == self.next_mark() {
            self.marks.push(self.known.newlines);
            self.thin_out();
        }
    }

    /// Marks that the file ends where the index ends.
    pub(crate) fn end(&mut self) {
        self.complete = true;
    }

    /// Up to which position the file is known.
    pub(crate) fn known(&self) -> Mark {
        self.known
    }

    /// How many lines the file has, if all of it is known.
    pub(crate) fn lines(&self) -> Option<u64> {
        self.complete
            .then(|| self.known.newlines + u64::from(self.open))
    }

    /// The last mark before the start of a line, counted from 0.
    pub(crate) fn before_line(&self, line: u64) -> Mark {
        // A mark with the same number of newlines may be anywhere in the line.
        self.mark(self.marks.partition_point(|&newlines| newlines < line))
    }

    /// The last mark at or before a position.
    pub(crate) fn before_offset(&self, offset: u64) -> Mark {
        let index = usize::try_from(offset / self.step).unwrap_or(usize::MAX);
        self.mark(index.min(self.marks.len()))
    }

    fn mark(&self, count: usize) -> Mark {
        let newlines = count.checked_sub(1).and_then(|last| self.marks.get(last));
        Mark {
            offset: newlines.map_or(0, |_| count as u64 * self.step),
            newlines: newlines.copied().unwrap_or_default(),
        }
    }

    fn next_mark(&self) -> u64 {
        (self.marks.len() as u64 + 1) * self.step
    }

    /// Keeps every second mark once there are too many.
    fn thin_out(&mut self) {
        if self.marks.len() >= MARKS_MAX {
            let every_second = self.marks.iter().copied().skip(1).step_by(2);
            self.marks = every_second.collect();
            self.step *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of lines of one stride each, as far as `strides` go.
    fn learnt(strides: u64) -> LineIndex {
        let mut index = LineIndex::default();
        let mut block = vec![b'a'; STRIDE];
        block[STRIDE - 1] = b'\n';
        for stride in 0..strides {
            index.learn(stride * STRIDE as u64, &block, 1);
        }
        index
    }

    #[test]
    fn a_mark_lies_before_its_line() {
        let index = learnt(10);
        let stride = STRIDE as u64;
        for (line, offset, newlines) in
            [(0, 0, 0), (1, 0, 0), (2, stride, 1), (99, 10 * stride, 10)]
        {
            assert_eq!(index.before_line(line), Mark { offset, newlines });
        }
        assert_eq!(index.before_offset(stride - 1).offset, 0);
        assert_eq!(index.before_offset(stride).newlines, 1);
        assert_eq!(index.before_offset(u64::MAX).newlines, 10);
    }

    #[test]
    fn only_what_comes_next_is_learnt() {
        let mut index = learnt(2);
        let before = index.clone();
        index.learn(0, b"x\n", 1);
        index.learn(3 * STRIDE as u64, b"x\n", 1);
        index.learn(2 * STRIDE as u64, b"", 0);
        assert_eq!(index, before);
        assert_eq!(index.lines(), None);
        index.learn(2 * STRIDE as u64, b"last", 0);
        index.end();
        assert_eq!(index.lines(), Some(3));
    }

    #[test]
    fn marks_move_apart_instead_of_growing_without_end() {
        let strides = 5 * MARKS_MAX as u64;
        let index = learnt(strides);
        assert!(index.marks.len() < MARKS_MAX && index.step > STRIDE as u64);
        assert_eq!(index.known().newlines, strides);
        for line in [1, 2, 1000, strides / 2, strides - 1, strides] {
            let mark = index.before_line(line);
            assert_eq!(mark.offset, mark.newlines * STRIDE as u64);
            assert!(mark.newlines < line && mark.newlines + 8 >= line, "{line}");
        }
    }
}
