//! `mcp-filesystem check`: reports what would be served, to whom, and what is risky about it.
//!
//! It reads the same settings and opens the same roots as the server, but starts nothing. It shows host paths: the
//! reader is the operator.

mod clients;
mod own_files;
mod risks;
mod root_tools;
mod secrets;

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use sandbox::{HiddenEntries, HistoryFigures, Landlock, NamedRoot, Protection, Quota, Roots};

use self::own_files::OwnFile;
pub(crate) use self::risks::{
    asks_for_tokens, of_roots as root_risks, of_settings as settings_risks, open_door,
};
use super::serve::bad_audit_file;
use crate::guide_project::{self, GuideProject};
use crate::http::CredentialStore;
use crate::http::listener::address;
use crate::settings::{
    HistoryKept, LoadedSettings, LogFormat, RootAccess, RootSettings, Settings, Transport,
    WordValue, restart_keys, size_in_words,
};
use crate::{open_roots, operator_files, shared_directory, tool_sets};

/// Writes the report. A mistake in the configuration is returned as an error.
pub(crate) fn run(loaded: &LoadedSettings, output: &mut impl Write) -> Result<()> {
    let roots = open_roots::open(&loaded.settings)?;
    tool_sets::check(&loaded.settings, &roots)?;
    let project = guide_project::open(&loaded.settings)?;
    let credentials = CredentialStore::load(&loaded.settings)?.current();
    check_audit_file(&loaded.settings)?;
    let facts = Findings {
        loaded,
        found: roots
            .iter()
            .zip(&loaded.settings.roots)
            .map(CheckedRoot::of)
            .collect(),
        project: project.as_ref(),
        files: own_files::all(loaded),
        tokens: credentials.tokens.map(|tokens| tokens.count()),
        is_superuser: operator_files::is_superuser(),
        unordered: shared_directory::risk(&roots, &loaded.settings),
        // This comes last: it confines the process to the roots.
        kernel: protections(&roots, loaded.settings.landlock)?,
    };
    output.write_all(report(&facts).as_bytes())?;
    Ok(())
}

/// Fails if the server would not start because of its audit file.
fn check_audit_file(settings: &Settings) -> Result<()> {
    let Some(path) = settings.audit_file.as_deref() else {
        return Ok(());
    };
    operator_files::may_append(path).map_err(|error| bad_audit_file(path, &error))
}

/// The facts for the report.
struct Findings<'a> {
    loaded: &'a LoadedSettings,
    found: Vec<CheckedRoot>,
    /// The project of `guide`.
    project: Option<&'a GuideProject>,
    /// The operator's own files.
    files: Vec<OwnFile>,
    /// The number of tokens; `None` if no token is needed.
    tokens: Option<usize>,
    /// Whether the process runs as root.
    is_superuser: bool,
    /// The risk of roots that other machines may change too.
    unordered: Option<String>,
    kernel: Vec<String>,
}

/// The facts about a root's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckedRoot {
    name: String,
    real_path: PathBuf,
    mode: u32,
    is_writable: bool,
    /// Where its history is and how much it holds, if one is kept.
    history: Option<(bool, HistoryFigures)>,
    /// What its `deny` hides, or the shipped list would.
    hidden: HiddenEntries,
}

impl CheckedRoot {
    fn of((root, own): (&NamedRoot, &RootSettings)) -> CheckedRoot {
        CheckedRoot {
            name: root.name.clone(),
            real_path: root.root.real_path().to_owned(),
            mode: root.root.metadata().map_or(0, |metadata| metadata.mode),
            is_writable: open_roots::access(&root.root).is_some_and(|access| access.writable),
            history: root
                .root
                .history()
                .map(|history| (history.is_in_root(), history.figures())),
            hidden: secrets::hidden_in(root, own),
        }
    }
}

/// The kernel's part in the confinement. To find out, this process really confines itself; it ends after the report
/// anyway.
fn protections(roots: &Roots, landlock: Landlock) -> Result<Vec<String>> {
    let protection = sandbox::lock_in(roots, landlock, &[])?;
    let walks = roots
        .iter()
        .filter(|root| !root.root.uses_openat2())
        .count();
    let lookup = match walks {
        0 => "openat2: the kernel itself keeps every look-up inside its root",
        _ => "no openat2: look-ups go step by step, as safe but slower",
    };
    Ok(vec![lookup.to_owned(), landlock_in_words(&protection)])
}

fn landlock_in_words(protection: &Protection) -> String {
    let meaning = match protection {
        Protection::Enforced { fully: true, .. } => "the process cannot reach beyond its roots",
        Protection::Enforced { fully: false, .. } => {
            "the process can hardly reach beyond its roots; a newer kernel does more"
        }
        Protection::Unavailable => "this kernel has no second wall around the process",
        Protection::Off => "sandbox.landlock is off; there is no second wall around the process",
    };
    format!("{protection}: {meaning}")
}

fn report(facts: &Findings<'_>) -> String {
    let settings = &facts.loaded.settings;
    let roots = facts.found.iter().zip(&settings.roots);
    let roots = roots.flat_map(root_lines(settings));
    let project = facts.project.into_iter().flat_map(project_lines);
    let sections = [
        ("Configuration", vec![configuration(settings)]),
        ("Roots", roots.chain(project).collect()),
        ("Who can reach it", reach_lines(settings, facts.tokens)),
        ("Limits", limits(settings)),
        ("Log", log(settings)),
        ("Kernel protections", facts.kernel.clone()),
        ("Risks", or_none(risks::all(facts))),
    ];
    let section =
        |(title, lines): (&str, Vec<String>)| format!("{title}\n  {}\n", lines.join("\n  "));
    sections.map(section).join("\n")
}

fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        vec!["none found".to_owned()]
    } else {
        lines
    }
}

fn configuration(settings: &Settings) -> String {
    match &settings.config_file {
        Some(file) => format!("{}: valid", file.display()),
        None => "no config file; the command line is valid".to_owned(),
    }
}

fn root_lines<'a>(
    settings: &'a Settings,
) -> impl Fn((&'a CheckedRoot, &'a RootSettings)) -> Vec<String> + 'a {
    move |(found, root)| {
        let mut lines = vec![format!("{}: {}", root.name, found.real_path.display())];
        let tools = root_tools::lines(root, settings);
        lines.extend(tools.map(|line| format!("  {line}")));
        lines.extend(changes_in_words(root, found).map(|line| format!("  {line}")));
        lines.extend(
            root.quota
                .map(|quota| format!("  {}", quota_in_words(quota))),
        );
        let asks = root.confirm.is_some();
        lines.extend(
            asks.then(|| "  large changes ask a person first (roots[].confirm)".to_owned()),
        );
        lines.extend(secrets::deny_in_words(root, found).map(|line| format!("  {line}")));
        let history = root.history.as_ref().zip(found.history);
        lines.extend(history.map(|(kept, found)| format!("  {}", history_in_words(kept, found))));
        lines
    }
}

/// The project of the `guide` set.
fn project_lines(project: &GuideProject) -> Vec<String> {
    let mut lines = vec![
        format!("the project of guide: {}", project.path.display()),
        "  its files are never opened; agents hand them over".to_owned(),
        format!("  allowed paths: {}", project.allowed.join(", ")),
    ];
    if !project.missing.is_empty() {
        lines.push(format!("  not there: {}", project.missing.join(", ")));
    }
    lines
}

fn changes_in_words(root: &RootSettings, found: &CheckedRoot) -> Option<&'static str> {
    match root.access {
        RootAccess::ReadOnly => Some("read-only: every tool that changes anything is refused"),
        RootAccess::ReadWrite if found.is_writable => None,
        RootAccess::ReadWrite => Some("this user may not write in the directory itself"),
    }
}

fn quota_in_words(quota: Quota) -> String {
    let bytes = quota.max_bytes.map(size_in_words);
    let files = quota
        .max_files
        .map(|most| format!("{most} files and directories"));
    let limits: Vec<String> = [bytes, files].into_iter().flatten().collect();
    format!("quota: at most {}", limits.join(" in at most "))
}

fn history_in_words(kept: &HistoryKept, (is_in_root, found): (bool, HistoryFigures)) -> String {
    let place = if is_in_root {
        "in the root"
    } else {
        "outside the root"
    };
    let days = kept.keep.as_secs() / (24 * 60 * 60);
    let HistoryFigures {
        changes,
        bytes,
        oldest_ms,
    } = found;
    let oldest = oldest_ms.and_then(|oldest| i64::try_from(oldest).ok());
    let oldest = oldest.and_then(|oldest| jiff::Timestamp::from_second(oldest / 1000).ok());
    let oldest = oldest.map_or_else(String::new, |oldest| format!(", the oldest of {oldest}"));
    format!(
        "history {place}: {changes} changes with {bytes} bytes of old content{oldest}; kept for {days} days, at most {}",
        size_in_words(kept.max_bytes)
    )
}

fn reach(settings: &Settings, tokens: Option<usize>) -> Vec<String> {
    if settings.transport == Transport::Stdio {
        return vec!["stdio: only the program that starts it".to_owned()];
    }
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    vec![
        format!(
            "{scheme} on {}: {}",
            address(&settings.host, settings.port),
            audience(settings)
        ),
        format!("endpoints: {}", endpoints(settings)),
        token_line(tokens, settings),
        encryption_line(settings),
        format!("host names: {}", host_names(settings)),
        format!("web pages: {}", origins(settings)),
    ]
}

fn encryption_line(settings: &Settings) -> String {
    match &settings.tls {
        Some(tls) => format!("encrypted with the certificate {}", tls.cert.display()),
        None => "not encrypted".to_owned(),
    }
}

fn host_names(settings: &Settings) -> String {
    let own = match audience_of(&settings.host) {
        Audience::OneInterface => Some(settings.host.to_string()),
        Audience::ThisMachine | Audience::EveryInterface => None,
    };
    let names = ["localhost and loopback addresses".to_owned()];
    let names = names.into_iter().chain(own);
    let names = names.chain(settings.allowed_hosts.iter().cloned());
    names.collect::<Vec<_>>().join(", ")
}

fn origins(settings: &Settings) -> String {
    match settings.allowed_origins.as_slice() {
        [] => "none but its own".to_owned(),
        origins => origins.join(", "),
    }
}

fn limits(settings: &Settings) -> Vec<String> {
    let seconds = settings.request_timeout.as_secs();
    let rate = settings.rate.map(|rate| {
        let (per_second, burst) = (rate.per_second, rate.burst);
        format!("each client: {per_second} calls a second, {burst} at once")
    });
    let calls = format!(
        "calls: {} at once, {seconds} seconds each (grep and glob: as they ask, {} at most)",
        settings.max_concurrent_calls,
        settings.search_timeout.as_secs()
    );
    let replies = format!(
        "content in one reply: {}; whole files: up to {}",
        size_in_words(settings.max_file_size),
        size_in_words(settings.max_full_read_size)
    );
    [calls, replies].into_iter().chain(rate).collect()
}

fn log(settings: &Settings) -> Vec<String> {
    let format = match settings.log_format {
        LogFormat::Auto => "JSON lines on standard error (text on a terminal)",
        LogFormat::Json => "JSON lines on standard error",
        LogFormat::Text => "text lines on standard error",
    };
    let level = settings.log_level.word();
    let lines = format!("{format}, from level {level} on");
    let audit = settings.audit_file.as_deref();
    let audit = audit.map(|file| format!("every call also in {}", file.display()));
    std::iter::once(lines).chain(audit).collect()
}

fn endpoints(settings: &Settings) -> String {
    let named = settings
        .toolsets
        .iter()
        .map(|set| format!("/mcp/{}", set.name()));
    let first = settings
        .toolsets
        .first()
        .map(|set| format!("/mcp (= {})", set.name()));
    first
        .into_iter()
        .chain(named)
        .chain(["/metrics", "/health", "/ready"].map(str::to_owned))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Who can reach the server, and what each named client may do.
fn reach_lines(settings: &Settings, tokens: Option<usize>) -> Vec<String> {
    let mut lines = reach(settings, tokens);
    lines.extend(page_line(settings));
    lines.extend(clients::lines(settings));
    lines.extend(settings.config_file.as_ref().map(|_| {
        let keys = restart_keys("");
        format!("SIGHUP reads the file again; changed values of these keys need a restart: {keys}")
    }));
    lines
}

/// Where the operator's page is, and what opens it.
fn page_line(settings: &Settings) -> Option<String> {
    let address = settings.admin_listen?;
    let file = settings.admin_token_file.as_deref()?;
    Some(format!(
        "the operator's page: http://{address}/, with a token of {}",
        file.display()
    ))
}

fn token_line(tokens: Option<usize>, settings: &Settings) -> String {
    if let Some(oauth) = &settings.oauth {
        let scopes = oauth.scope_names().join(", ");
        let own = tokens.map(|count| format!(", or one of {count} bearer tokens"));
        return format!(
            "an access token of {} is required, with one of the scopes {scopes}{}",
            oauth.issuer,
            own.unwrap_or_default()
        );
    }
    match tokens {
        Some(1) => "a bearer token is required; there is 1".to_owned(),
        Some(count) => format!("a bearer token is required; there are {count}"),
        None => "no token is asked for".to_owned(),
    }
}

/// Who can open a connection to the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    ThisMachine,
    OneInterface,
    EveryInterface,
}

fn audience_of(host: &str) -> Audience {
    match host.parse::<IpAddr>() {
        Ok(ip) if ip.is_loopback() => Audience::ThisMachine,
        Ok(ip) if ip.is_unspecified() => Audience::EveryInterface,
        Err(_) if host.eq_ignore_ascii_case("localhost") => Audience::ThisMachine,
        _ => Audience::OneInterface,
    }
}

fn audience(settings: &Settings) -> &'static str {
    match audience_of(&settings.host) {
        Audience::ThisMachine => "every program on this machine",
        Audience::OneInterface => "every machine that can reach this address",
        Audience::EveryInterface => "every machine that can reach this one, on any interface",
    }
}

#[cfg(test)]
mod tests {
    use super::own_files::Holds;
    use super::*;
    use crate::settings::Toolset;
    use crate::settings::config_file::{self, ConfigFile};
    use std::path::Path;

    fn loaded(yaml: &str) -> LoadedSettings {
        let partial = config_file::parse(yaml, Path::new("/etc")).unwrap();
        let path = PathBuf::from("/etc/config.yaml");
        let mut settings = partial.complete();
        settings.config_file = Some(path.clone());
        LoadedSettings {
            settings,
            file: Some(ConfigFile {
                path,
                text: yaml.to_owned(),
            }),
        }
    }

    fn facts<'a>(loaded: &'a LoadedSettings, found: Vec<CheckedRoot>) -> Findings<'a> {
        Findings {
            loaded,
            found,
            project: None,
            files: Vec::new(),
            tokens: None,
            is_superuser: false,
            unordered: None,
            kernel: vec!["openat2: yes".to_owned()],
        }
    }

    fn found(name: &str, path: &str, mode: u32) -> CheckedRoot {
        CheckedRoot {
            name: name.to_owned(),
            real_path: PathBuf::from(path),
            mode,
            is_writable: name != "frozen",
            history: None,
            hidden: HiddenEntries::default(),
        }
    }

    const TWO: &str = "
roots:
  - {name: all, path: /data, allowed_tools: ['*']}
  - {name: logs, path: /data/logs, allowed_tools: [read_file, grep, mkdir], read_only: true}
";

    #[test]
    fn the_report_says_what_an_operator_asks() {
        let loaded = loaded(TWO);
        let found = vec![
            found("all", "/data", 0o777),
            found("logs", "/data/logs", 0o755),
        ];
        let mut facts = facts(&loaded, found);
        facts.is_superuser = true;
        facts.files.push(OwnFile {
            what: "the config file",
            real_path: PathBuf::from("/data/logs/config.yaml"),
            mode: 0o644,
            holds: Holds::Policy,
        });
        let expected = "\
Configuration
  /etc/config.yaml: valid

Roots
  all: /data
    workspace: all COUNT tools
  logs: /data/logs
    workspace: 2 of COUNT tools: read_file, grep
    read-only: every tool that changes anything is refused

Who can reach it
  http on 0.0.0.0:8091: every machine that can reach this one, on any interface
  endpoints: /mcp (= workspace), /mcp/workspace, /metrics, /health, /ready
  no token is asked for
  not encrypted
  host names: localhost and loopback addresses
  web pages: none but its own
  SIGHUP reads the file again; changed values of these keys need a restart: RESTART

Limits
  calls: 256 at once, 30 seconds each (grep and glob: as they ask, 300 at most)
  content in one reply: 10 MiB; whole files: up to 1 MiB

Log
  JSON lines on standard error (text on a terminal), from level info on

Kernel protections
  openat2: yes

Risks
  it listens on all interfaces without asking for a token: whoever reaches port 8091 can use every \
allowed tool; set server.bearer_tokens_file, or host to 127.0.0.1
  it runs as root, so that no permission bits hold: run it as a user of its own
  the root \"all\" contains the root \"logs\": what is forbidden in \"logs\" may be allowed through \"all\"
  the root \"all\" is writable by every user of this machine
  the config file (/data/logs/config.yaml) is readable by every user of this machine (chmod o-r)
  the root \"all\" contains the config file: agents may be able to change it; keep it elsewhere
  the root \"logs\" allows mkdir, which no served tool set has: a slip?
";
        let count = root_tools::available(Toolset::Workspace, &loaded.settings).count();
        let count = count.to_string();
        let expected = expected.replace("COUNT", &count);
        let expected = expected.replace("RESTART", &restart_keys(""));
        assert_eq!(report(&facts), expected);
    }

    #[test]
    fn the_report_names_the_operator_s_page() {
        let page = "admin: {listen: '127.0.0.1:8092', token_file: page-token}";
        for transport in [Transport::Http, Transport::Stdio] {
            let mut loaded = loaded(page);
            loaded.settings.transport = transport;
            let report = report(&facts(&loaded, Vec::new()));
            let line =
                "  the operator's page: http://127.0.0.1:8092/, with a token of /etc/page-token\n";
            assert!(report.contains(line), "{report}");
        }
    }

    #[test]
    fn a_careful_setup_has_no_risks() {
        let yaml = "host: 127.0.0.1\nroots: [{name: a, path: /data-2, allowed_tools: ['*']}]";
        let found = vec![found("a", "/data", 0o755), found("b", "/data-2", 0o755)];
        let loaded = loaded(yaml);
        assert_eq!(risks::all(&facts(&loaded, found)), Vec::<String>::new());
    }

    #[test]
    fn who_can_reach_an_address() {
        for host in ["127.0.0.1", "127.8.8.8", "::1", "localhost"] {
            assert_eq!(audience_of(host), Audience::ThisMachine, "{host}");
        }
        for host in ["0.0.0.0", "::"] {
            assert_eq!(audience_of(host), Audience::EveryInterface, "{host}");
        }
        assert_eq!(audience_of("192.0.2.1"), Audience::OneInterface);
    }
}
