//! The settings that are one of a few words, written the same on the command line and in the file.

use clap::ValueEnum;

/// How clients reach the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Standard input and output: one client, the program that starts us.
    Stdio,
    /// Streamable HTTP: any number of clients.
    Http,
}

/// A set of tools with its own names, arguments and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Toolset {
    /// Named roots with allowlists.
    Workspace,
    /// One root.
    Files,
    /// One root of text files an agent remembers things in.
    Memory,
    /// The files on the agent's side.
    Guide,
}

impl Toolset {
    /// The name of the set, in settings and in its endpoint.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Toolset::Workspace => "workspace",
            Toolset::Files => "files",
            Toolset::Memory => "memory",
            Toolset::Guide => "guide",
        }
    }
}

/// Which clients get a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionPolicy {
    /// Only where a tool set cannot work without.
    Auto,
    /// Every client that knows sessions.
    On,
    /// Nobody.
    Off,
}

/// Which halves of a reply are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Replies {
    /// Text and structured content.
    Both,
    /// Text alone.
    Text,
    /// Structured content alone.
    Structured,
}

/// Whether a write is on disk before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// File and directory are synced first.
    Fsync,
    /// The system writes when it likes.
    Fast,
}

impl From<Durability> for sandbox::Durability {
    fn from(durability: Durability) -> sandbox::Durability {
        match durability {
            Durability::Fsync => sandbox::Durability::Fsync,
            Durability::Fast => sandbox::Durability::Fast,
        }
    }
}

/// Whether the process locks itself into its roots with the kernel's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Landlock {
    /// As far as the kernel can.
    Auto,
    /// Or does not start.
    Require,
    /// Not at all.
    Off,
}

impl From<Landlock> for sandbox::Landlock {
    fn from(landlock: Landlock) -> sandbox::Landlock {
        match landlock {
            Landlock::Auto => sandbox::Landlock::Auto,
            Landlock::Require => sandbox::Landlock::Require,
            Landlock::Off => sandbox::Landlock::Off,
        }
    }
}

/// How important a log line has to be to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed for good.
    Error,
    /// What an operator should look at: refused escapes, denied tools.
    Warn,
    /// Every call, one line.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// One line a person reads.
    Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_set_is_called_what_it_is_read_as() {
        for set in Toolset::value_variants() {
            assert_eq!(Toolset::from_str(set.name(), false), Ok(*set));
        }
    }
}
