//! Inserts text before a line of a text file.

use sandbox::Metadata;

use crate::context::Context;
use crate::edit::Edited;
use crate::error::Result;
use crate::operation::{Operation, again_if_full};
use crate::place::Place;
use crate::read_at::reader;
use crate::text::edit::insert_before;

/// Inserts text before a line.
#[derive(Debug)]
pub struct InsertLines {
    /// The file; links are followed.
    pub place: Place,
    /// The line, from 1; one after the last is allowed.
    pub line: i64,
    /// The text to insert.
    pub text: String,
}

/// The text was inserted.
#[derive(Debug)]
pub struct InsertedLines {
    /// The resolved path.
    pub path: String,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for InsertLines {
    type Outcome = InsertedLines;

    fn run(self, context: &Context) -> Result<InsertedLines> {
        again_if_full([&self.place], || self.try_run(context))
    }
}

impl InsertLines {
    fn try_run(&self, context: &Context) -> Result<InsertedLines> {
        let edited = Edited::begin(&self.place, context)?;
        let open = edited.open_text()?;
        let mut read = reader(open, &context.cancel);
        let splice = insert_before(&edited.path(), &mut read, self.line, &self.text)?;
        let metadata = edited.splice(open, &splice)?;
        Ok(InsertedLines {
            path: edited.path(),
            metadata,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::testing::{Tree, context};

    fn insert(tree: &Tree, path: &str, line: i64, text: &str) -> Result<InsertedLines> {
        InsertLines {
            place: tree.place(path),
            line,
            text: text.to_owned(),
        }
        .run(&context())
    }

    #[test]
    fn text_goes_before_its_line() {
        for (content, line, text, expected) in [
            ("a\nb\n", 1, "x\n", "x\na\nb\n"),
            ("a\nb\n", 2, "x", "a\nxb\n"),
            ("a\nb\n", 3, "x", "a\nb\nx"),
            ("a\nb", 3, "x", "a\nb\nx"),
            ("", 1, "x\n", "x\n"),
            ("a\r\nb\r\n", 2, "x\n", "a\r\nx\r\nb\r\n"),
        ] {
            let tree = Tree::new();
            tree.file("file", content);
            insert(&tree, "file", line, text).unwrap();
            assert_eq!(tree.read("file"), expected, "{content:?} {line}");
        }
    }

    #[test]
    fn lines_out_of_range_are_told() {
        let tree = Tree::new();
        tree.file("file", "a\nb\n").file("bytes", b"\xff");
        for line in [0, -1, 4, i64::MAX, i64::MIN] {
            let failure = insert(&tree, "file", line, "x").unwrap_err();
            assert!(
                matches!(failure, Error::LineOutOfRange { max: 3, .. }),
                "{failure:?}"
            );
        }
        assert_eq!(
            insert(&tree, "bytes", 1, "x").unwrap_err().kind(),
            ErrorKind::NotText
        );
        assert_eq!(
            insert(&tree, "none", 1, "x").unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(tree.read("file"), "a\nb\n");
    }
}
