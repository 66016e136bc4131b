//! Merges the sources: the command line and environment first, then the file, then the defaults.

use std::path::{Path, PathBuf};

use toolset::{SetNames, every_set, first_collision};

use super::SettingsError;
use super::config_file::{self, ConfigFile};
use super::root_settings::{name_for, named_after_their_last_component};
use super::value::Host;
use super::{
    AllowedTools, ClientSettings, KeyPath, OnMissingRoot, Partial, RootSettings, STDIO_CLIENT,
    Settings, Toolset, Transport,
};
use crate::command_line::{Cli, Directories, GivenBy, GivenPath};

/// The origin of a root that was not named.
pub(crate) const CURRENT_DIRECTORY: &str = "the current directory";

/// The origin of a root that was typed as a word.
pub(crate) const TYPED: &str = "DIR";

/// Whether the command needs something to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootsNeed {
    /// At least one root, unless the tool sets need none.
    Needed,
    /// Nothing is served.
    NotNeeded,
}

/// The settings, and the config file that some came from.
#[derive(Debug)]
pub(crate) struct LoadedSettings {
    /// What the process runs with.
    pub(crate) settings: Settings,
    /// The config file.
    pub(crate) file: Option<ConfigFile>,
}

/// Reads every source and merges them. Relative paths start from `current`.
pub(crate) fn load(
    cli: &Cli,
    current: &Path,
    need: RootsNeed,
) -> Result<LoadedSettings, SettingsError> {
    let file = cli.config().map(config_file::read).transpose()?;
    let from_file = file.as_ref().map(partial_of).transpose()?;
    let mut merged = cli.partial(current).or(from_file.unwrap_or_default());
    merged.is_max_file_size_given = Some(merged.max_file_size.is_some());
    if file.is_none() {
        // A person who types a directory did not decide to serve it to the network.
        merged.host.get_or_insert_with(Host::this_machine);
    }
    let mut settings = with_directories(merged.complete(), cli.directories(current), current);
    if cli.is_without_history() {
        for root in &mut settings.roots {
            root.history = None;
        }
    }
    check(cli, &settings, need)?;
    Ok(LoadedSettings { settings, file })
}

fn partial_of(file: &ConfigFile) -> Result<Partial, SettingsError> {
    let partial = config_file::parse(&file.text, file.directory());
    let partial = partial.map_err(|fault| fault.in_file(&file.path))?;
    Ok(Partial {
        config_file: Some(Some(file.path.clone())),
        ..partial
    })
}

/// Directories on the command line replace the file's roots. So does one from the environment, unless a directory was
/// typed.
fn with_directories(mut settings: Settings, given: Directories, current: &Path) -> Settings {
    let serves = |set| settings.toolsets.contains(&set);
    let with_memory = serves(Toolset::Memory) || serves(Toolset::MemoryTool);
    let files_alone = serves(Toolset::Files) && !serves(Toolset::Workspace);
    let is_typed = !given.served.is_empty();
    let root = given.root;
    let root = root.filter(|root| !is_typed || root.source == GivenBy::Flag);
    replace_roots(&mut settings, given.served, root);
    if settings.roots.is_empty() && files_alone {
        let path = (current.to_owned(), CURRENT_DIRECTORY);
        settings.roots = named_after_their_last_component([path]);
    }
    if let Some(base) = given.base.filter(|_| with_memory) {
        add_base(&mut settings, base);
    }
    settings
}

/// Puts the directories that were given in the place of the roots, if there are any. The last is that of `files`.
fn replace_roots(settings: &mut Settings, served: Vec<PathBuf>, root: Option<GivenPath>) {
    let has_root = root.is_some();
    let typed = served.into_iter().map(|path| (path, TYPED));
    let root = root.map(|root| (root.path, root.source.of("--root-dir", "FS_SERVER_ROOT")));
    let directories: Vec<_> = typed.chain(root).collect();
    if !directories.is_empty() {
        settings.roots = named_after_their_last_component(directories);
    }
    if has_root {
        settings.files_root = settings.roots.last().map(|root| root.name.clone());
    }
}

/// Adds the storage of `memory` and `memory_tool` as a root of its own, which no other set may touch.
fn add_base(settings: &mut Settings, base: GivenPath) {
    let name = name_for(&base.path, &settings.roots);
    let origin = base.source.of("--base-path", "BASE_PATH");
    let root = RootSettings::open_to_all(name, base.path, origin);
    settings.memory_root = Some(root.name.clone());
    settings.memory_tool_root = None;
    settings.roots.push(RootSettings {
        tools: AllowedTools::all_of(&[Toolset::Memory, Toolset::MemoryTool]),
        on_missing: OnMissingRoot::Create,
        // In `memory`, every absolute path counts as leading out.
        host_paths: false,
        ..root
    });
}

fn check(cli: &Cli, settings: &Settings, need: RootsNeed) -> Result<(), SettingsError> {
    let faults = [
        idle_flag(cli, settings),
        relative_root(settings),
        (settings.admin_listen.is_some() && settings.admin_token_file.is_none())
            .then_some(SettingsError::PageWithoutToken),
        client_of_nobody(settings),
        client_without_issuer(settings),
        scope_without_client(settings),
        (need == RootsNeed::Needed && settings.transport == Transport::Stdio)
            .then(|| collision(&settings.toolsets))
            .flatten(),
        (need == RootsNeed::Needed && settings.transport == Transport::Stdio)
            .then(|| not_alone(settings))
            .flatten(),
        (need == RootsNeed::Needed && lacks_roots(settings)).then(|| no_roots(settings)),
    ];
    faults.into_iter().flatten().next().map_or(Ok(()), Err)
}

/// A client that no caller can be: it has no token and no access token, and no scope stands for it.
fn client_of_nobody(settings: &Settings) -> Option<SettingsError> {
    let is_of_scope = |name: &str| {
        let mut scopes = settings.oauth.iter().flat_map(|oauth| &oauth.scopes);
        scopes.any(|(_, client)| client == name)
    };
    let is_of_nobody = |client: &ClientSettings| {
        let has_token = !client.tokens.is_empty() || client.oauth.is_some();
        !has_token && client.name != STDIO_CLIENT && !is_of_scope(&client.name)
    };
    let index = settings.clients.iter().position(is_of_nobody)?;
    let fault = SettingsError::Missing {
        path: KeyPath::default().key("clients").item(index).key("tokens"),
        expected: format!(
            "tokens or oauth, or a scope of auth.oauth.scopes: nobody can be this client otherwise (only the client \
             {STDIO_CLIENT} needs none)"
        ),
    };
    Some(match &settings.config_file {
        Some(file) => fault.in_file(file),
        None => fault,
    })
}

fn client_without_issuer(settings: &Settings) -> Option<SettingsError> {
    let clients = settings.clients.iter();
    let mut idle = clients.filter(|client| client.oauth.is_some() && settings.oauth.is_none());
    idle.next()
        .map(|client| SettingsError::ClientWithoutIssuer {
            client: client.name.clone(),
        })
}

/// Without `clients` a scope may stand for any name: then all have the same rights.
fn scope_without_client(settings: &Settings) -> Option<SettingsError> {
    let is_known = |name: &str| settings.clients.iter().any(|client| client.name == name);
    let mut scopes = settings.oauth.iter().flat_map(|oauth| &oauth.scopes);
    let stray = scopes.find(|(_, client)| !settings.clients.is_empty() && !is_known(client));
    stray.map(|(scope, client)| SettingsError::ScopeWithoutClient {
        scope: scope.clone(),
        client: client.clone(),
    })
}

/// The first two sets that cannot be served on one connection.
fn collision(toolsets: &[Toolset]) -> Option<SettingsError> {
    let names = |set: &Toolset| every_set().iter().find(|names| names.set == set.name());
    let sets: Vec<&SetNames> = toolsets.iter().filter_map(names).collect();
    first_collision(&sets).map(SettingsError::Collision)
}

/// Finds a root with a relative path. Only the base path can be one; the other paths are already absolute.
fn relative_root(settings: &Settings) -> Option<SettingsError> {
    let root = settings.roots.iter().find(|root| root.path.is_relative())?;
    Some(SettingsError::BadDirectory {
        origin: root.origin.clone(),
        path: root.path.clone(),
        reason: "the path must be absolute".to_owned(),
    })
}

/// The set that cannot share a connection, if it would have to.
fn not_alone(settings: &Settings) -> Option<SettingsError> {
    let shares = settings.serves(Toolset::Reference) && settings.toolsets.len() > 1;
    shares.then(|| SettingsError::NotAlone {
        toolset: Toolset::Reference.name(),
    })
}

/// What is missing if there is nothing to serve.
fn no_roots(settings: &Settings) -> SettingsError {
    let stores = |set: &Toolset| matches!(set, Toolset::Memory | Toolset::MemoryTool);
    if settings.toolsets.iter().all(stores) {
        SettingsError::NoStorage
    } else {
        SettingsError::NoRoots
    }
}

fn lacks_roots(settings: &Settings) -> bool {
    settings.roots.is_empty() && settings.toolsets.iter().any(|set| *set != Toolset::Guide)
}

/// Finds a flag for a tool set that is not served. An environment variable may be meant for other programs.
fn idle_flag(cli: &Cli, settings: &Settings) -> Option<SettingsError> {
    let is_typed = |given: &GivenPath| given.source == GivenBy::Flag;
    let base = cli.directories(Path::new("/")).base;
    let base = base.is_some_and(|base| is_typed(&base));
    let flags = [
        (
            base && !settings.serves(Toolset::MemoryTool),
            "--base-path",
            Toolset::Memory,
        ),
        (cli.names_project_root(), "--project-root", Toolset::Guide),
    ];
    flags
        .into_iter()
        .find(|(is_given, _, set)| *is_given && !settings.toolsets.contains(set))
        .map(|(_, flag, set)| SettingsError::IdleFlag {
            flag,
            toolset: set.name(),
        })
}

#[cfg(test)]
mod tests {
    use super::super::RootAccess;
    use super::*;
    use crate::command_line::tests::typed;
    use std::io::Write;

    const FILE: &str = "
host: file.example
port: 1000
limits: {max_file_size: 5}
roots:
  - {name: one, path: sub/one, allowed_tools: [grep], read_only: true}
";

    struct Setup {
        directory: tempfile::TempDir,
        config: PathBuf,
    }

    impl Setup {
        fn new(yaml: &str) -> Setup {
            let directory = tempfile::tempdir().unwrap();
            let config = directory.path().join("config.yaml");
            let mut file = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
            file.write_all(yaml.as_bytes()).unwrap();
            file.persist(&config).unwrap();
            Setup { directory, config }
        }

        fn load(&self, words: &[&str]) -> Result<Settings, SettingsError> {
            let config = self.config.to_string_lossy();
            let words: Vec<&str> = ["--config", &config].iter().chain(words).copied().collect();
            loaded(&words)
        }
    }

    fn loaded(words: &[&str]) -> Result<Settings, SettingsError> {
        let here = Path::new("/here/now");
        load(&typed(words), here, RootsNeed::Needed).map(|loaded| loaded.settings)
    }

    fn paths(settings: &Settings) -> Vec<(&str, &str)> {
        let roots = settings.roots.iter();
        roots
            .map(|root| (root.name.as_str(), root.path.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn sets_that_share_names_collide() {
        let fault = collision(&[Toolset::Guide, Toolset::Workspace, Toolset::Files]);
        assert_eq!(
            fault.unwrap().to_string(),
            "the tool sets workspace and files both have copy, move, compare, watch, undo; on stdio serve one of them, \
             or use --transport http"
        );
        assert_eq!(collision(&[Toolset::Workspace, Toolset::Guide]), None);
    }

    #[test]
    fn flags_beat_the_file_and_the_file_beats_the_defaults() {
        let setup = Setup::new(FILE);
        let settings = setup
            .load(&["--port", "2000", "--max-file-size", "6"])
            .unwrap();
        assert_eq!(settings.port, 2000);
        assert_eq!(&*settings.host, "file.example");
        assert_eq!(settings.max_file_size, 6);
        assert_eq!(settings.max_connections, 1024);
        assert_eq!(setup.load(&[]).unwrap().max_file_size, 5);
    }

    #[test]
    fn a_config_file_means_http_unless_a_flag_says_otherwise() {
        let setup = Setup::new(FILE);
        assert_eq!(setup.load(&[]).unwrap().transport, Transport::Http);
        let settings = setup.load(&["--transport", "stdio"]).unwrap();
        assert_eq!(settings.transport, Transport::Stdio);
        assert_eq!(loaded(&["/a"]).unwrap().transport, Transport::Stdio);
    }

    #[test]
    fn relative_roots_start_from_where_they_were_written() {
        let setup = Setup::new(FILE);
        let settings = setup.load(&[]).unwrap();
        let expected = setup.directory.path().join("sub/one");
        assert_eq!(settings.roots[0].path, expected);
        assert_eq!(settings.roots[0].access, RootAccess::ReadOnly);
        let settings = loaded(&["a", "/b", "."]).unwrap();
        assert_eq!(
            paths(&settings),
            [("a", "/here/now/a"), ("b", "/b"), ("now", "/here/now/.")]
        );
    }

    #[test]
    fn typed_directories_replace_the_roots_of_the_file() {
        let setup = Setup::new(FILE);
        let settings = setup.load(&["/x/one"]).unwrap();
        assert_eq!(paths(&settings), [("one", "/x/one")]);
        assert_eq!(settings.roots[0].tools, AllowedTools::All);
        let settings = setup.load(&["/x", "--root-dir", "/y/x"]).unwrap();
        assert_eq!(paths(&settings), [("x", "/x"), ("x-2", "/y/x")]);
        assert_eq!(settings.files_root.as_deref(), Some("x-2"));
    }

    #[test]
    fn the_environment_beats_the_file_and_gives_way_to_what_was_typed() {
        let given = |served: &[&str], source| Directories {
            served: served.iter().map(PathBuf::from).collect(),
            root: Some(GivenPath {
                path: PathBuf::from("/env"),
                source,
            }),
            base: None,
        };
        let file = config_file::parse(FILE, Path::new("/etc"))
            .unwrap()
            .complete();
        let with = |given| with_directories(file.clone(), given, Path::new("/here"));
        let settings = with(given(&[], GivenBy::Environment));
        assert_eq!(paths(&settings), [("env", "/env")]);
        assert_eq!(settings.roots[0].origin, "FS_SERVER_ROOT");
        assert_eq!(
            paths(&with(given(&["/a"], GivenBy::Environment))),
            [("a", "/a")]
        );
        assert_eq!(
            paths(&with(given(&["/a"], GivenBy::Flag))),
            [("a", "/a"), ("env", "/env")]
        );
    }

    #[test]
    fn the_base_path_is_a_root_for_memory_alone() {
        let mut settings = Partial::default().complete();
        settings.toolsets = vec![Toolset::Workspace, Toolset::Memory];
        let base = Some(GivenPath {
            path: PathBuf::from("/x/notes"),
            source: GivenBy::Flag,
        });
        let served = vec![PathBuf::from("/y/notes")];
        let given = Directories {
            served,
            root: None,
            base,
        };
        let settings = with_directories(settings, given, Path::new("/here"));
        assert_eq!(
            paths(&settings),
            [("notes", "/y/notes"), ("notes-2", "/x/notes")]
        );
        let root = settings.root_of(Toolset::Memory).unwrap();
        assert_eq!(root.name.as_str(), "notes-2");
        assert_eq!(root.on_missing, OnMissingRoot::Create);
        assert!(root.tools.allows(Toolset::Memory, "view"));
        assert!(!root.tools.allows(Toolset::Workspace, "grep"));
        assert_eq!(settings.root_of(Toolset::Files).unwrap().name, "notes");
    }

    #[test]
    fn files_serves_the_current_directory_by_default() {
        let mut settings = Partial::default().complete();
        settings.toolsets = vec![Toolset::Files];
        let settings = with_directories(settings, Directories::default(), Path::new("/here/now"));
        assert_eq!(paths(&settings), [("now", "/here/now")]);
    }

    #[test]
    fn nothing_to_serve_says_how_to_give_something() {
        let fault = loaded(&[]).unwrap_err();
        assert_eq!(fault, SettingsError::NoRoots);
        assert!(fault.to_string().contains("mcp-filesystem DIR"));
        assert_eq!(
            Setup::new("port: 1").load(&[]).unwrap_err(),
            SettingsError::NoRoots
        );
    }

    #[test]
    fn a_flag_for_a_set_that_is_not_served_is_a_mistake() {
        let message = |words: &[&str]| loaded(words).unwrap_err().to_string();
        assert_eq!(
            message(&["/a", "--base-path", "/b"]),
            "--base-path is for the tool set memory, which is not served; add --toolset memory"
        );
        assert!(message(&["/a", "--project-root", "/b"]).starts_with("--project-root is for"));
    }

    #[test]
    fn a_mistake_names_the_file_it_is_in() {
        let setup = Setup::new("prot: 1");
        let message = setup.load(&["/a"]).unwrap_err().to_string();
        let file = setup.config.to_string_lossy();
        assert!(
            message.starts_with(&format!("{file:?}: prot: unknown key")),
            "{message}"
        );
    }
}
