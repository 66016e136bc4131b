//! Lists of a reply whose items are made while they are written: a large list is not held a second time in another form.

use std::str::SplitTerminator;

use serde::{Serialize, Serializer};

/// Something that items of a reply are made from.
pub(crate) trait MadeItems {
    /// An item, which may borrow from this.
    type Item<'made>: Serialize
    where
        Self: 'made;

    /// The items, in order.
    fn items(&self) -> impl Iterator<Item = Self::Item<'_>>;
}

/// Writes the items as a list.
pub(crate) fn serialize<S: Serializer>(
    made: &impl MadeItems,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(made.items())
}

/// Writes lines as a list of strings.
pub(crate) fn serialize_lines<S: Serializer>(
    lines: &SplitTerminator<'_, char>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.clone())
}
