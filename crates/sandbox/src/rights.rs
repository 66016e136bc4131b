//! What a caller may do to the files of a root.

/// One thing that a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// See what is there and read it.
    Read,
    /// Make what is not there yet.
    Create,
    /// Change what is there.
    Change,
    /// Remove what is there, or move it away.
    Remove,
}

impl Right {
    /// Every right, in the order of documents.
    pub const EVERY: [Right; 4] = [Right::Read, Right::Create, Right::Change, Right::Remove];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Create => "create",
            Right::Change => "change",
            Right::Remove => "remove",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Right::Read => 1,
            Right::Create => 2,
            Right::Change => 4,
            Right::Remove => 8,
        }
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Every right.
    pub const ALL: Rights = Rights(15);

    /// These rights.
    #[must_use]
    pub fn of(rights: &[Right]) -> Rights {
        Rights(rights.iter().fold(0, |all, right| all | right.bit()))
    }

    /// Tells whether a right is among them.
    #[must_use]
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Tells whether anything may be changed.
    #[must_use]
    pub fn may_change(self) -> bool {
        self.0 & !Right::Read.bit() != 0
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }
}

impl Default for Rights {
    fn default() -> Rights {
        Rights::ALL
    }
}

impl std::fmt::Display for Rights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Right::EVERY.into_iter().filter(|right| self.has(*right));
        let names: Vec<&str> = names.map(Right::name).collect();
        f.write_str(&names.join(", "))
    }
}
