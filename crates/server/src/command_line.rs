//! The command line and the environment: what was typed.
//!
//! clap reports mistakes and ends the process with code 2. The result is a [`Partial`], as from the config file;
//! `settings` decides what it means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::settings::{self, CURRENT_DIRECTORY, Partial, SettingValue, Settings, Toolset};

/// Lets AI agents work on files without ever leaving the directories they were given.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-filesystem",
    version,
    subcommand_precedence_over_arg = true
)]
#[command(after_help = "A directory called like a subcommand is given as ./check.")]
pub(crate) struct Cli {
    /// Directories to serve, each named after its last component; they replace the config file's
    /// roots.
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    #[command(flatten)]
    flags: PlaceFlags,
    #[command(subcommand)]
    command: Option<CommandArgs>,
    /// Whether `--root-dir` was a flag or an environment variable.
    #[arg(skip)]
    root_dir_source: GivenBy,
    /// Whether `--base-path` was a flag or an environment variable.
    #[arg(skip)]
    base_path_source: GivenBy,
    /// The settings that were typed or found in the environment, with paths as they were given.
    #[arg(skip)]
    given: Partial,
}

/// The flags that are not settings: the config file and directories.
#[derive(Debug, Args)]
struct PlaceFlags {
    /// YAML config file.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCP_FILESYSTEM_CONFIG",
        global = true
    )]
    config: Option<PathBuf>,
    /// The one root of `files` [default: the current directory]; `workspace` serves it too.
    #[arg(long, value_name = "PATH", env = "FS_SERVER_ROOT", global = true)]
    root_dir: Option<PathBuf>,
    /// The one root of `memory` and `memory_tool`; created if missing.
    #[arg(long, value_name = "PATH", env = "BASE_PATH", global = true)]
    base_path: Option<PathBuf>,
    /// Keep nothing of what changes replace or remove: nothing can be undone.
    #[arg(long, global = true)]
    no_history: bool,
}

#[derive(Debug, Subcommand)]
enum CommandArgs {
    /// Validate the configuration and say what would be served, to whom, and what is risky.
    Check {
        /// Directories to check as if they were served.
        #[arg(value_name = "DIR")]
        directories: Vec<PathBuf>,
    },
    /// Print the tool reference.
    Tools {
        /// How to print it.
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
    },
    /// Print every key of the config file with its type, default and meaning.
    Settings {
        /// How to print it.
        #[arg(long, value_enum, default_value_t = SettingsFormat::Markdown)]
        format: SettingsFormat,
    },
    /// Call one tool from the shell, the way a client would.
    Call(CallArgs),
    /// Show the changes of roots that keep a history, the newest first.
    History {
        #[command(subcommand)]
        action: Option<HistoryAction>,
        /// The root [default: all].
        #[arg(value_name = "ROOT")]
        root: Option<String>,
        /// Only changes of this path, or below it.
        #[arg(value_name = "PATH")]
        path: Option<String>,
    },
    /// Undo a change that `history` shows.
    Undo(UndoCommand),
    /// Ask a running server whether it is well; exit code 0 if so. For health checks of containers.
    Health {
        /// Its address [default: where these options and this config file make a server listen].
        #[arg(value_name = "URL")]
        url: Option<String>,
    },
    /// Make a token for a client: the token itself, and the digest for `clients` of the config file.
    Token {
        /// The client's name.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Look after the audit file.
    Audit {
        #[command(subcommand)]
        command: AuditArgs,
    },
    /// Print the completions of a shell, to be put where that shell looks for them.
    Completions {
        /// The shell.
        #[arg(value_enum, value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page (roff): mcp-filesystem man | man -l -
    Man,
}

/// A call, as it is typed.
#[derive(Debug, Args)]
struct CallArgs {
    /// The tool's name.
    #[arg(value_name = "TOOL")]
    tool: String,
    /// The tool's arguments: NAME=VALUE each, or one JSON object; `-` reads the object from standard input.
    #[arg(value_name = "NAME=VALUE|JSON|-")]
    arguments: Vec<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// The running server that a call goes to.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
struct RemoteArgs {
    /// Call a running server, such as http://127.0.0.1:8091, instead of working here.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file whose first line is the bearer token for that server [default: $MCP_FILESYSTEM_TOKEN].
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust instead of the system's.
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
}

/// A running server, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteServer {
    /// Its URL, as it was typed.
    pub(crate) url: String,
    /// The file of the token.
    pub(crate) token_file: Option<PathBuf>,
    /// The file of the certificates to trust.
    pub(crate) ca_file: Option<PathBuf>,
}

/// A call that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallRequest {
    /// The tool's name.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) arguments: CallArguments,
}

#[derive(Debug, Subcommand)]
enum AuditArgs {
    /// Tell whether lines of the audit file were altered or removed; exit code 0 if not.
    Verify {
        /// The file, or rotated files with the oldest first; `-` is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// A hash that was noted earlier (`audit head` in the log): its line has to be there.
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
    },
}

/// Further actions on a history.
#[derive(Debug, Subcommand)]
enum HistoryAction {
    /// Check the chain of records; exit code 1 if a line was altered.
    Verify,
    /// Remove what is older, more or larger than the settings keep, as the server does every minute.
    Prune,
    /// Remove all that is kept of a path, for good.
    Forget {
        /// The path inside the root.
        #[arg(value_name = "PATH")]
        path: String,
        /// The root, if there are several.
        #[arg(value_name = "ROOT")]
        root: Option<String>,
    },
}

/// A task for histories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryRequest {
    /// Show changes.
    Show {
        /// Of this root, or of all.
        root: Option<String>,
        /// Of this path, or of all.
        path: Option<String>,
    },
    /// Check the records.
    Verify,
    /// Remove what is too old or too much.
    Prune,
    /// Remove what is kept.
    Forget {
        /// Of this path.
        path: String,
        /// In this root.
        root: Option<String>,
    },
    /// Undo a change.
    Undo(UndoCommand),
}

/// A change that is to be undone.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct UndoCommand {
    /// Its name, such as 4f2a.
    #[arg(value_name = "CHANGE")]
    pub(crate) change: String,
    /// The root, if there are several.
    #[arg(value_name = "ROOT")]
    pub(crate) root: Option<String>,
    /// Undo everything after it too.
    #[arg(long)]
    pub(crate) since: bool,
    /// Only say whether it could be undone.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The command that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Serve clients.
    Serve,
    /// Say what would be served.
    Check,
    /// Print the tool reference.
    Tools(Format),
    /// Print the reference of the config file, or a file to begin with.
    Settings(SettingsFormat),
    /// See or undo changes.
    History(HistoryRequest),
    /// Ask a server whether it is well.
    Health(Option<String>),
    /// Make a token for the client of this name.
    Token(String),
    /// Verify audit files.
    VerifyAudit {
        /// The files, the oldest first.
        files: Vec<PathBuf>,
        /// A hash that has to be among them.
        head: Option<String>,
    },
    /// Print completions.
    Completions(Shell),
    /// Print the manual page.
    Man,
    /// Call one tool.
    Call {
        /// The tool and its arguments.
        request: CallRequest,
        /// The server to call, if not this process.
        remote: Option<RemoteServer>,
    },
}

impl HistoryRequest {
    fn of(
        action: Option<&HistoryAction>,
        root: &Option<String>,
        path: &Option<String>,
    ) -> HistoryRequest {
        match action {
            None => HistoryRequest::Show {
                root: root.clone(),
                path: path.clone(),
            },
            Some(HistoryAction::Verify) => HistoryRequest::Verify,
            Some(HistoryAction::Prune) => HistoryRequest::Prune,
            Some(HistoryAction::Forget { path, root }) => HistoryRequest::Forget {
                path: path.clone(),
                root: root.clone(),
            },
        }
    }
}

/// How the tool reference is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Markdown,
    /// For programs.
    Json,
}

/// How the reference of the config file is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SettingsFormat {
    /// A page for people.
    Markdown,
    /// A config file to begin with.
    Yaml,
}

/// Where a call's arguments come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallArguments {
    /// There are none.
    None,
    /// They were typed as a JSON object.
    Json(String),
    /// They were typed one by one, as NAME=VALUE.
    Pairs(Vec<String>),
    /// They come on standard input.
    Stdin,
}

/// Whether a value was typed or found in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum GivenBy {
    /// A flag, or not given at all.
    #[default]
    Flag,
    /// An environment variable; a flag of the same meaning wins over it.
    Environment,
}

impl GivenBy {
    /// The name of the setting in messages.
    pub(crate) fn of(self, flag: &'static str, variable: &'static str) -> &'static str {
        match self {
            GivenBy::Flag => flag,
            GivenBy::Environment => variable,
        }
    }
}

/// A path that was given, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenPath {
    /// The path.
    pub(crate) path: PathBuf,
    /// How it was given.
    pub(crate) source: GivenBy,
}

/// The directories that were given; `settings` turns them into roots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Directories {
    /// `[DIR]...`
    pub(crate) served: Vec<PathBuf>,
    /// `--root-dir`
    pub(crate) root: Option<GivenPath>,
    /// `--base-path`
    pub(crate) base: Option<GivenPath>,
}

/// The whole definition of the command line: this file's and the flags of the settings.
pub(crate) fn command() -> clap::Command {
    Cli::command().args(settings::flags())
}

impl Cli {
    /// Reads the process's own command line, or ends the process the way clap does.
    pub(crate) fn read() -> Cli {
        Cli::try_read(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    fn try_read(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let matches = command().try_get_matches_from(words)?;
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.root_dir_source = source(&matches, "root_dir");
        cli.base_path_source = source(&matches, "base_path");
        cli.given = Partial::from_flags(&matches);
        if let Some(CommandArgs::Check { directories }) = &mut cli.command {
            cli.directories.append(directories);
        }
        Ok(cli)
    }

    /// The command that was typed.
    pub(crate) fn task(&self) -> Task {
        match &self.command {
            None => Task::Serve,
            Some(CommandArgs::Check { .. }) => Task::Check,
            Some(CommandArgs::Tools { format }) => Task::Tools(*format),
            Some(CommandArgs::Settings { format }) => Task::Settings(*format),
            Some(CommandArgs::History { action, root, path }) => {
                Task::History(HistoryRequest::of(action.as_ref(), root, path))
            }
            Some(CommandArgs::Undo(undo)) => Task::History(HistoryRequest::Undo(undo.clone())),
            Some(CommandArgs::Health { url }) => Task::Health(url.clone()),
            Some(CommandArgs::Token { name }) => Task::Token(name.clone()),
            Some(CommandArgs::Audit { command }) => command.task(),
            Some(CommandArgs::Completions { shell }) => Task::Completions(*shell),
            Some(CommandArgs::Man) => Task::Man,
            Some(CommandArgs::Call(call)) => call.task(),
        }
    }

    /// The arguments that start the same server from any directory, for a client's configuration. Values from the
    /// environment are included, because a client has another environment.
    pub(crate) fn portable(&self, settings: &Settings, current: &Path) -> Vec<String> {
        let absolute = |path: &PathBuf| current.join(path).display().to_string();
        let flags = self.portable_flags(settings, &absolute).into_iter();
        let flags = flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let no_history = self.is_without_history().then(|| "--no-history".to_owned());
        let given = self.directories.iter().map(absolute);
        let unnamed = settings.roots.iter();
        let unnamed = unnamed.filter(|root| root.origin == CURRENT_DIRECTORY);
        let unnamed = unnamed.map(|root| root.path.display().to_string());
        let flags = flags.flatten().chain(no_history);
        flags.chain(given).chain(unnamed).collect()
    }

    fn portable_flags(
        &self,
        settings: &Settings,
        absolute: &impl Fn(&PathBuf) -> String,
    ) -> [(&'static str, Option<String>); 10] {
        let (flags, given) = (&self.flags, &self.given);
        // As flags these two could conflict with others, so unused ones from the environment are left out.
        let is_used = self.root_dir_source == GivenBy::Flag || self.directories.is_empty();
        let root_dir = flags.root_dir.as_ref().filter(|_| is_used);
        let is_used = settings.serves(Toolset::Memory) || settings.serves(Toolset::MemoryTool);
        let base_path = flags.base_path.as_ref().filter(|_| is_used);
        let project_root = given.guide_project_root.as_ref().and_then(Option::as_ref);
        let config = flags.config.as_ref();
        [
            ("--config", config.map(absolute)),
            // A config file alone would mean HTTP.
            ("--transport", config.map(|_| "stdio".to_owned())),
            ("--toolset", given.toolsets.as_deref().map(joined)),
            ("--root-dir", root_dir.map(absolute)),
            ("--base-path", base_path.map(absolute)),
            ("--project-root", project_root.map(absolute)),
            ("--max-file-size", in_yaml(&given.max_file_size)),
            ("--request-timeout", in_yaml(&given.request_timeout)),
            ("--log-level", in_yaml(&given.log_level)),
            ("--replies", in_yaml(&given.replies)),
        ]
    }

    /// A command that needs roots and the first word behind it, which may be a directory that belongs before it.
    pub(crate) fn first_word(&self) -> Option<(&'static str, &str)> {
        match self.command.as_ref()? {
            CommandArgs::History { root, .. } => Some(("history", root.as_deref()?)),
            CommandArgs::Undo(undo) => Some(("undo CHANGE", &undo.change)),
            CommandArgs::Call(call) => Some(("call TOOL", &call.tool)),
            _ => None,
        }
    }

    /// The config file that was named, if any.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.flags.config.as_deref()
    }

    /// The directories that were given. Relative ones start from `current`; the base path stays as typed.
    pub(crate) fn directories(&self, current: &Path) -> Directories {
        let given = |path: PathBuf, source| GivenPath { path, source };
        let (root, base) = (&self.flags.root_dir, &self.flags.base_path);
        Directories {
            served: self
                .directories
                .iter()
                .map(|path| current.join(path))
                .collect(),
            root: root
                .as_ref()
                .map(|path| given(current.join(path), self.root_dir_source)),
            // The specification of `memory` wants an absolute path: a relative one would move with the current directory.
            base: base
                .as_ref()
                .map(|path| given(path.clone(), self.base_path_source)),
        }
    }

    /// Everything else that was typed or found in the environment.
    pub(crate) fn partial(&self, current: &Path) -> Partial {
        let project_root = self.given.guide_project_root.clone();
        Partial {
            guide_project_root: project_root.map(|path| path.map(|path| current.join(path))),
            ..self.given.clone()
        }
    }

    /// Tells whether no root keeps a history.
    pub(crate) fn is_without_history(&self) -> bool {
        self.flags.no_history
    }

    /// The first tool set that was named, if any.
    pub(crate) fn first_toolset(&self) -> Option<Toolset> {
        self.given.toolsets.as_deref()?.first().copied()
    }

    /// Tells whether the project of `guide` was named.
    pub(crate) fn names_project_root(&self) -> bool {
        self.given.guide_project_root.is_some()
    }
}

impl AuditArgs {
    fn task(&self) -> Task {
        let AuditArgs::Verify { files, head } = self;
        Task::VerifyAudit {
            files: files.clone(),
            head: head.clone(),
        }
    }
}

impl CallArgs {
    fn task(&self) -> Task {
        Task::Call {
            request: CallRequest {
                tool: self.tool.clone(),
                arguments: CallArguments::of(&self.arguments),
            },
            remote: self.remote.server(),
        }
    }
}

impl CallArguments {
    fn of(words: &[String]) -> CallArguments {
        match words {
            [] => CallArguments::None,
            [word] if word == "-" => CallArguments::Stdin,
            [word] if word.trim_start().starts_with('{') => CallArguments::Json(word.clone()),
            pairs => CallArguments::Pairs(pairs.to_vec()),
        }
    }
}

impl RemoteArgs {
    fn server(&self) -> Option<RemoteServer> {
        let url = self.url.clone()?;
        Some(RemoteServer {
            url,
            token_file: self.token_file.clone(),
            ca_file: self.ca_file.clone(),
        })
    }
}

fn joined(sets: &[Toolset]) -> String {
    let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
    names.join(",")
}

fn in_yaml(value: &Option<impl SettingValue>) -> Option<String> {
    value.as_ref().map(SettingValue::in_yaml)
}

fn source(matches: &ArgMatches, id: &str) -> GivenBy {
    match matches.value_source(id) {
        Some(ValueSource::EnvVariable) => GivenBy::Environment,
        _ => GivenBy::Flag,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::LogLevel;

    /// A command line as it would be typed after the program's name.
    pub(crate) fn typed(words: &[&str]) -> Cli {
        try_typed(words).unwrap()
    }

    fn try_typed(words: &[&str]) -> Result<Cli, clap::Error> {
        let words = std::iter::once("mcp-filesystem").chain(words.iter().copied());
        Cli::try_read(words.map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn directories_are_served_without_a_subcommand() {
        let cli = typed(&["a", "/b"]);
        assert_eq!(cli.task(), Task::Serve);
        let served = cli.directories(Path::new("/here")).served;
        assert_eq!(served, [Path::new("/here/a"), Path::new("/b")]);
    }

    #[test]
    fn options_go_before_and_after_a_subcommand() {
        for words in [["--port", "7", "check"], ["check", "--port", "7"]] {
            let cli = typed(&words);
            assert_eq!(cli.task(), Task::Check, "{words:?}");
            assert_eq!(cli.given.port, Some(7), "{words:?}");
        }
    }

    #[test]
    fn directories_go_before_and_after_check_and_before_call() {
        for words in [["a", "check"], ["check", "a"]] {
            let cli = typed(&words);
            assert_eq!(cli.task(), Task::Check, "{words:?}");
            assert_eq!(
                cli.directories(Path::new("/")).served,
                [Path::new("/a")],
                "{words:?}"
            );
        }
        let cli = typed(&["a", "call", "read_file", "{}"]);
        let arguments = CallArguments::Json("{}".to_owned());
        let request = CallRequest {
            tool: "read_file".to_owned(),
            arguments,
        };
        let remote = None;
        assert_eq!(cli.task(), Task::Call { request, remote });
        assert_eq!(cli.directories(Path::new("/")).served, [Path::new("/a")]);
        assert_eq!(typed(&["./check"]).task(), Task::Serve);
    }

    #[test]
    fn call_takes_its_arguments_from_where_it_is_told() {
        let arguments = |words: &[&str]| match typed(words).task() {
            Task::Call { request, .. } => request.arguments,
            other => panic!("{other:?}"),
        };
        assert_eq!(arguments(&["call", "list_roots"]), CallArguments::None);
        assert_eq!(arguments(&["call", "grep", "-"]), CallArguments::Stdin);
    }

    #[test]
    fn tool_sets_are_separated_by_commas_and_counted_once() {
        let cli = typed(&["--toolset", "workspace,guide,workspace"]);
        let sets = cli.partial(Path::new("/")).toolsets;
        assert_eq!(sets, Some(vec![Toolset::Workspace, Toolset::Guide]));
    }

    #[test]
    fn words_may_be_in_capitals() {
        let level = typed(&["--log-level", "WARN"]).given.log_level;
        assert_eq!(level, Some(LogLevel::Warn));
    }

    #[test]
    fn tools_knows_its_formats() {
        assert_eq!(typed(&["tools"]).task(), Task::Tools(Format::Markdown));
        let cli = typed(&["tools", "--toolset", "files", "--format", "json"]);
        assert_eq!(cli.task(), Task::Tools(Format::Json));
    }

    #[test]
    fn a_client_s_command_line_works_from_anywhere() {
        let here = Path::new("/here");
        let line = |words: &[&str]| {
            let cli = typed(words);
            let settings = cli.partial(here).complete();
            cli.portable(&settings, here).join(" ")
        };
        assert_eq!(line(&["app", "/b"]), "/here/app /b");
        assert_eq!(
            line(&["--config", "c.yaml", "--log-level", "warn"]),
            "--config /here/c.yaml --transport stdio --log-level warn"
        );
        let memory = ["--toolset", "memory", "--base-path", "/notes"];
        assert_eq!(line(&memory), "--toolset memory --base-path /notes");
        assert_eq!(line(&["--no-history", "app"]), "--no-history /here/app");
    }

    #[test]
    fn mistakes_are_clap_s_own() {
        let mistakes: &[&[&str]] = &[
            &["--transport", "tcp"],
            &["--port", "65536"],
            &["--port", "-1"],
            &["--host", "a b"],
            &["--host", "localhost:80"],
            &["--toolset", "workspce"],
            &["--max-file-size", "0"],
            &["--request-timeout", "86401"],
            &["--log-level", "loud"],
            &["--no-such-flag"],
            &["call"],
            &["tools", "--format", "xml"],
        ];
        for words in mistakes {
            assert_eq!(try_typed(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }
}
