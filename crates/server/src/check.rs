//! `mcp-filesystem check`: tells an operator in plain words what would be served, to whom, and what
//! is risky about it.
//!
//! It reads the same settings as the server and looks at the same roots, and starts nothing. Host
//! paths are shown: this is the operator's own terminal.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use sandbox::{NamedRoot, Protection, Roots};

use crate::known::KNOWN_TOOLS;
use crate::listen::address;
use crate::project::{self, Project};
use crate::roots;
use crate::settings::{
    AllowedTools, KnownTools, Landlock, Loaded, Quota, RootAccess, RootSettings, Settings, Toolset,
    Transport, tools_of,
};

/// Writes the report. A mistake in the configuration is the error that comes back.
pub(crate) fn run(loaded: &Loaded, output: &mut impl Write) -> Result<()> {
    let roots = roots::open(&loaded.settings)?;
    let project = project::open(&loaded.settings)?;
    let found: Vec<Found> = roots.iter().map(Found::of).collect();
    let kernel = protections(&roots, loaded.settings.landlock)?;
    output.write_all(report(loaded, &found, project.as_ref(), &kernel).as_bytes())?;
    Ok(())
}

/// What an operator wants to know of a root's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    name: String,
    real_path: PathBuf,
    mode: u32,
    is_writable: bool,
}

impl Found {
    fn of(root: &NamedRoot) -> Found {
        Found {
            name: root.name.clone(),
            real_path: root.root.real_path().to_owned(),
            mode: root.root.metadata().map_or(0, |metadata| metadata.mode),
            is_writable: roots::access(&root.root).is_some_and(|access| access.writable),
        }
    }
}

/// What the kernel adds to our own confinement, found out by really asking for it: this process
/// locks itself in, writes its report and ends.
fn protections(roots: &Roots, landlock: Landlock) -> Result<Vec<String>> {
    let protection = sandbox::lock_in(roots, landlock.into(), &[])?;
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

fn report(
    loaded: &Loaded,
    found: &[Found],
    project: Option<&Project>,
    kernel: &[String],
) -> String {
    let settings = &loaded.settings;
    let sections = [
        ("Configuration", vec![configuration(settings)]),
        (
            "Roots",
            found
                .iter()
                .zip(&settings.roots)
                .flat_map(root_lines(settings))
                .chain(project.into_iter().flat_map(project_lines))
                .collect(),
        ),
        ("Who can reach it", reach(settings)),
        ("Kernel protections", kernel.to_vec()),
        ("Risks", or_none(risks(loaded, found))),
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
) -> impl Fn((&'a Found, &'a RootSettings)) -> Vec<String> + 'a {
    move |(found, root)| {
        let mut lines = vec![format!("{}: {}", root.name, found.real_path.display())];
        // The agent's files lie in no root.
        let sets = settings
            .toolsets
            .iter()
            .filter(|set| **set != Toolset::Guide);
        lines.extend(sets.map(|set| {
            format!(
                "  {}: {}",
                set.name(),
                tools_in_words(root, *set, KNOWN_TOOLS)
            )
        }));
        lines.extend(changes_in_words(root, found).map(|line| format!("  {line}")));
        lines.extend(
            root.quota
                .map(|quota| format!("  {}", quota_in_words(quota))),
        );
        lines
    }
}

/// The project of the `guide` set.
fn project_lines(project: &Project) -> Vec<String> {
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

fn changes_in_words(root: &RootSettings, found: &Found) -> Option<&'static str> {
    match root.access {
        RootAccess::ReadOnly => Some("read-only: every tool that changes anything is refused"),
        RootAccess::ReadWrite if found.is_writable => None,
        RootAccess::ReadWrite => Some("this user may not write in the directory itself"),
    }
}

fn quota_in_words(quota: Quota) -> String {
    let bytes = quota.max_bytes.map(|most| format!("{most} bytes"));
    let files = quota
        .max_files
        .map(|most| format!("{most} files and directories"));
    let limits: Vec<String> = [bytes, files].into_iter().flatten().collect();
    format!("quota: at most {}", limits.join(" in at most "))
}

fn tools_in_words(root: &RootSettings, set: Toolset, known: KnownTools<'_>) -> String {
    let tools = tools_of(set.name(), known);
    let allowed: Vec<&str> = tools
        .iter()
        .copied()
        .filter(|tool| root.tools.allows(set, tool))
        .collect();
    match allowed.len() {
        0 => "no tool".to_owned(),
        all if all == tools.len() => format!("all {all} tools"),
        some => format!("{some} of {} tools: {}", tools.len(), allowed.join(", ")),
    }
}

fn reach(settings: &Settings) -> Vec<String> {
    match settings.transport {
        Transport::Stdio => {
            vec!["stdio: only the program that starts it".to_owned()]
        }
        Transport::Http => vec![
            format!("http on {}: {}", address(settings), audience(settings)),
            format!("endpoints: {}", endpoints(settings)),
            token_line(settings).to_owned(),
        ],
    }
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
        .chain(["/metrics", "/health"].map(str::to_owned))
        .collect::<Vec<_>>()
        .join(", ")
}

fn token_line(settings: &Settings) -> &'static str {
    match settings.bearer_tokens_file {
        Some(_) => "a bearer token is required",
        None => "no token is asked for",
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

fn risks(loaded: &Loaded, found: &[Found]) -> Vec<String> {
    let settings = &loaded.settings;
    let mut risks = Vec::new();
    risks.extend(open_door(settings));
    risks.extend(nested_roots(found));
    risks.extend(found.iter().filter_map(world_writable));
    risks.extend(
        loaded
            .file
            .as_ref()
            .and_then(|file| exposed_config(file.mode)),
    );
    risks.extend(
        settings
            .roots
            .iter()
            .filter_map(|root| idle_names(root, settings)),
    );
    risks
}

/// The risk that whoever reaches the port is let in.
pub(crate) fn open_door(settings: &Settings) -> Option<String> {
    let is_open = settings.transport == Transport::Http && settings.bearer_tokens_file.is_none();
    let where_from = match audience_of(&settings.host) {
        Audience::ThisMachine => return None,
        Audience::OneInterface => "an address that other machines may reach",
        Audience::EveryInterface => "all interfaces",
    };
    is_open.then(|| {
        format!(
            "it listens on {where_from} without asking for a token: whoever reaches port {} can use \
             every allowed tool; set server.bearer_tokens_file, or host to 127.0.0.1",
            settings.port
        )
    })
}

fn nested_roots(found: &[Found]) -> Vec<String> {
    let mut risks = Vec::new();
    for (index, outer) in found.iter().enumerate() {
        for (other, inner) in found.iter().enumerate() {
            let is_same = inner.real_path == outer.real_path;
            if index == other || (is_same && index > other) {
                continue;
            }
            if inner.real_path.starts_with(&outer.real_path) {
                risks.push(nested(outer, inner));
            }
        }
    }
    risks
}

fn nested(outer: &Found, inner: &Found) -> String {
    let (outer_name, inner_name) = (&outer.name, &inner.name);
    if inner.real_path == outer.real_path {
        return format!(
            "the roots \"{outer_name}\" and \"{inner_name}\" are the same directory: what one \
             forbids the other may allow"
        );
    }
    format!(
        "the root \"{outer_name}\" contains the root \"{inner_name}\": what is forbidden in \
         \"{inner_name}\" may be allowed through \"{outer_name}\""
    )
}

fn world_writable(found: &Found) -> Option<String> {
    (found.mode & 0o002 != 0).then(|| {
        format!(
            "the root \"{}\" is writable by every user of this machine",
            found.name
        )
    })
}

fn exposed_config(mode: u32) -> Option<String> {
    let others = match mode & 0o006 {
        0 => return None,
        0o004 => "readable by every user of this machine (chmod o-r)",
        _ => {
            "writable by every user of this machine: any of them can open any directory (chmod o-w)"
        }
    };
    Some(format!("the config file is {others}"))
}

/// Names in an allowlist that none of the served sets has.
fn idle_names(root: &RootSettings, settings: &Settings) -> Option<String> {
    let AllowedTools::Only(names) = &root.tools else {
        return None;
    };
    let is_idle = |name: &&String| {
        let only = AllowedTools::Only([(*name).clone()].into());
        let mut served = settings.toolsets.iter().flat_map(|set| {
            let tools = tools_of(set.name(), KNOWN_TOOLS).iter();
            tools.map(move |tool| (*set, *tool))
        });
        !served.any(|(set, tool)| only.allows(set, tool))
    };
    let idle: Vec<&str> = names.iter().filter(is_idle).map(String::as_str).collect();
    (!idle.is_empty()).then(|| {
        format!(
            "the root \"{}\" allows {}, which no served tool set has: a slip?",
            root.name,
            idle.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, ConfigFile};
    use std::path::Path;

    fn loaded(yaml: &str, mode: u32) -> Loaded {
        let partial = config::parse(yaml, Path::new("/etc"), KNOWN_TOOLS).unwrap();
        let path = PathBuf::from("/etc/config.yaml");
        let mut settings = partial.complete();
        settings.config_file = Some(path.clone());
        Loaded {
            settings,
            file: Some(ConfigFile {
                path,
                text: yaml.to_owned(),
                mode,
            }),
        }
    }

    fn found(name: &str, path: &str, mode: u32) -> Found {
        Found {
            name: name.to_owned(),
            real_path: PathBuf::from(path),
            mode,
            is_writable: name != "frozen",
        }
    }

    const TWO: &str = "
roots:
  - {name: all, path: /data, allowed_tools: ['*']}
  - {name: logs, path: /data/logs, allowed_tools: [read_file, grep, mkdir], read_only: true}
";

    #[test]
    fn the_report_says_what_an_operator_asks() {
        let loaded = loaded(TWO, 0o644);
        let found = [
            found("all", "/data", 0o777),
            found("logs", "/data/logs", 0o755),
        ];
        let expected = "\
Configuration
  /etc/config.yaml: valid

Roots
  all: /data
    workspace: all 14 tools
  logs: /data/logs
    workspace: 2 of 14 tools: read_file, grep
    read-only: every tool that changes anything is refused

Who can reach it
  http on 0.0.0.0:8091: every machine that can reach this one, on any interface
  endpoints: /mcp (= workspace), /mcp/workspace, /metrics, /health
  no token is asked for

Kernel protections
  openat2: yes

Risks
  it listens on all interfaces without asking for a token: whoever reaches port 8091 can use every \
allowed tool; set server.bearer_tokens_file, or host to 127.0.0.1
  the root \"all\" contains the root \"logs\": what is forbidden in \"logs\" may be allowed through \"all\"
  the root \"all\" is writable by every user of this machine
  the config file is readable by every user of this machine (chmod o-r)
  the root \"logs\" allows mkdir, which no served tool set has: a slip?
";
        let kernel = ["openat2: yes".to_owned()];
        assert_eq!(report(&loaded, &found, None, &kernel), expected);
    }

    #[test]
    fn a_careful_setup_has_no_risks() {
        let yaml = "host: 127.0.0.1\nroots: [{name: a, path: /data-2, allowed_tools: ['*']}]";
        let found = [found("a", "/data", 0o755), found("b", "/data-2", 0o755)];
        assert_eq!(risks(&loaded(yaml, 0o640), &found), Vec::<String>::new());
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

    #[test]
    fn equal_roots_are_told_once() {
        let found = [found("a", "/data", 0o755), found("b", "/data", 0o755)];
        assert_eq!(nested_roots(&found).len(), 1);
    }
}
