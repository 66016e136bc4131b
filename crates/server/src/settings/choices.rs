//! The settings that are one of a few words, written the same on the command line and in the file.

use sandbox::{Durability, Landlock};
use toolset::guide::CacheSharing;
use toolset::{MemoryCreate, MemoryStore, ReplyHalves, ReplyPolicy, Right, TextForm};

/// A type whose values each have a word.
pub(crate) trait WordValue: Copy + PartialEq + Send + Sync + 'static {
    /// The name of such a word in messages.
    const WHAT: &'static str;
    /// Every value with its word and what it means.
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// The value's word.
    fn word(self) -> &'static str {
        let own = Self::WORDS.iter().find(|(_, value, _)| *value == self);
        own.map_or("", |(word, ..)| word)
    }

    /// The value that a word means.
    fn named(text: &str) -> Option<Self> {
        let own = Self::WORDS.iter().find(|(word, ..)| *word == text);
        own.map(|(_, value, _)| *value)
    }

    /// Every word.
    fn all_words() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(word, ..)| *word).collect()
    }
}

/// Gives the values of a type their words.
macro_rules! words {
    ($type:ident, $what:literal: $($word:literal = $value:ident, $meaning:expr;)*) => {
        impl WordValue for $type {
            const WHAT: &'static str = $what;
            const WORDS: &'static [(&'static str, $type, &'static str)] =
                &[$(($word, $type::$value, $meaning)),*];
        }
    };
}

/// Defines a type with its words; the meanings are the variants' own comments.
macro_rules! word_type {
    (
        $(#[doc = $about:literal])*
        $type:ident, $what:literal:
        $( $(#[doc = $meaning:literal])* $word:literal = $value:ident; )*
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $type { $( $(#[doc = $meaning])* $value, )* }

        words! { $type, $what: $( $word = $value, concat!($($meaning),*).trim_ascii(); )* }
    };
}

word_type! {
    /// How clients reach the process.
    Transport, "choice":
        /// Standard input and output: one client, the program that starts the server
        "stdio" = Stdio;
        /// Streamable HTTP: any number of clients
        "http" = Http;
}

word_type! {
    /// A set of tools with its own names, arguments and replies.
    Toolset, "tool set":
        /// Named roots with allowlists
        "workspace" = Workspace;
        /// One root
        "files" = Files;
        /// One root of text files an agent remembers things in
        "memory" = Memory;
        /// The files on the agent's side
        "guide" = Guide;
        /// The tools of the reference server, with paths of this machine
        "reference" = Reference;
        /// Anthropic's memory tool: one tool for everything
        "memory_tool" = MemoryTool;
}

impl Toolset {
    /// The name of the set, in settings and in its endpoint.
    pub(crate) fn name(self) -> &'static str {
        self.word()
    }
}

word_type! {
    /// Which clients get a session.
    SessionPolicy, "choice":
        /// Only if a tool set needs it
        "auto" = Auto;
        /// Every client that knows sessions
        "on" = On;
        /// Nobody
        "off" = Off;
}

words! {
    Right, "right":
        "read" = Read, "It may see what is there and read it";
        "create" = Create, "It may make what is not there yet";
        "change" = Change, "It may change the content of what is there";
        "remove" = Remove, "It may remove what is there, and move it away";
}

words! { MemoryStore, "choice":
    "shared" = Shared, "All clients share one";
    "per_client" = PerClient, "Each client (its token, else its address) has a directory of its own below the root";
}

words! { CacheSharing, "choice":
    "per_client" = PerClient, "Only the client (its token, else its session, else its address) that handed it over";
    "shared" = Shared, "Every client";
}

words! { MemoryCreate, "choice":
    "fail" = Fail, "It is an error";
    "overwrite" = Overwrite, "It is replaced";
}

impl WordValue for ReplyPolicy {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, ReplyPolicy, &'static str)] = &[
        (
            "auto",
            ReplyPolicy::Auto,
            "Both, but to clients known to drop the text only the text",
        ),
        (
            "both",
            ReplyPolicy::Always(ReplyHalves::Both),
            "Text and structured content",
        ),
        ("text", ReplyPolicy::Always(ReplyHalves::Text), "Text alone"),
        (
            "structured",
            ReplyPolicy::Always(ReplyHalves::Structured),
            "Structured content alone",
        ),
    ];
}

words! { TextForm, "choice":
    "compact" = Compact, "Short lines for models";
    "json" = Json, "The reply object as JSON, for programs that read only text";
}

words! { Durability, "durability":
    "fsync" = Fsync, "File and directory are synced first";
    "fast" = Fast, "The system writes when it likes";
}

words! { Landlock, "choice":
    "auto" = Auto, "As far as the kernel can";
    "require" = Require, "Or does not start";
    "off" = Off, "Not at all";
}

word_type! {
    /// How important a log line has to be to be written.
    LogLevel, "level":
        /// What failed for good
        "error" = Error;
        /// What an operator should look at: refused escapes, denied tools
        "warn" = Warn;
        /// Every call, one line
        "info" = Info;
        /// What a developer wants to know
        "debug" = Debug;
        /// Everything
        "trace" = Trace;
}

word_type! {
    /// How a log line is written.
    LogFormat, "format":
        /// `text` if standard error is a terminal, else `json`
        "auto" = Auto;
        /// One JSON object a line
        "json" = Json;
        /// One line a person reads
        "text" = Text;
}

word_type! {
    /// What becomes of changes while the audit file cannot be written.
    AuditOnFailure, "choice":
        /// Changes are refused; reading goes on
        "refuse" = Refuse;
        /// Calls go on without a record, and the log says so
        "continue" = Continue;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for (word, set, _) in Toolset::WORDS {
            assert_eq!(set.name(), *word);
            assert_eq!(Toolset::named(word), Some(*set));
        }
    }
}
