//! The risks of a valid configuration.

use std::collections::BTreeMap;
use std::path::Path;

use sandbox::NamedRoot;

use super::own_files::{Holds, OwnFile};
use super::root_tools;
use super::secrets;
use super::{Audience, CheckedRoot, Findings, audience_of};
use crate::settings::{AllowedTools, RootAccess, RootSettings, Settings, Transport};

/// Finds every risk: one sentence each, with what to do about it.
pub(super) fn all(facts: &Findings<'_>) -> Vec<String> {
    let (settings, found) = (&facts.loaded.settings, &facts.found);
    let mut risks = of_settings(settings);
    risks.extend(facts.is_superuser.then(superuser));
    risks.extend(facts.unordered.clone());
    risks.extend(nested_roots(found));
    risks.extend(found.iter().filter_map(whole_system));
    risks.extend(found.iter().filter_map(world_writable));
    risks.extend(facts.files.iter().filter_map(exposed));
    for (root, own) in found.iter().zip(&settings.roots) {
        let inside = |file: &&OwnFile| file.real_path.starts_with(&root.real_path);
        let files = facts.files.iter().filter(inside);
        risks.extend(files.filter_map(|file| within_reach(root, own, file)));
        risks.extend(secrets::risks(root, own));
    }
    risks.extend(
        settings
            .roots
            .iter()
            .filter_map(|root| idle_names(root, settings)),
    );
    risks
}

/// The risks of each root: of its directory, its tools and what it shows. Looks through the roots, so it may take a while.
pub(crate) fn of_roots(roots: &[NamedRoot], settings: &Settings) -> BTreeMap<String, Vec<String>> {
    let own = |root: &NamedRoot| settings.roots.iter().find(|own| own.name == root.name);
    let found = roots
        .iter()
        .filter_map(|root| Some((CheckedRoot::of((root, own(root)?)), own(root)?)));
    let found: Vec<(CheckedRoot, &RootSettings)> = found.collect();
    let holding = |outer: &CheckedRoot| {
        let inside = found
            .iter()
            .filter(|(inner, _)| inner.name != outer.name)
            .filter(|(inner, _)| inner.real_path.starts_with(&outer.real_path));
        let told: Vec<String> = inside.map(|(inner, _)| nested(outer, inner)).collect();
        told
    };
    let risks = found.iter().map(|(root, own)| {
        let mut risks = holding(root);
        risks.extend(whole_system(root));
        risks.extend(world_writable(root));
        risks.extend(secrets::risks(root, own));
        risks.extend(idle_names(own, settings));
        (root.name.clone(), risks)
    });
    risks.collect()
}

/// The risks that need no look at the file system.
pub(crate) fn of_settings(settings: &Settings) -> Vec<String> {
    let risks = [
        open_door(settings),
        tokens_in_the_clear(settings),
        page_in_the_clear(settings),
    ];
    risks.into_iter().flatten().collect()
}

/// Whether a request over HTTP needs a token.
pub(crate) fn asks_for_tokens(settings: &Settings) -> bool {
    settings.bearer_tokens_file.is_some()
        || settings.oauth.is_some()
        || !settings.clients.is_empty()
}

/// The risk of a port that anybody may use.
pub(crate) fn open_door(settings: &Settings) -> Option<String> {
    let is_open = settings.transport == Transport::Http && !asks_for_tokens(settings);
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

fn nested_roots(found: &[CheckedRoot]) -> Vec<String> {
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

fn nested(outer: &CheckedRoot, inner: &CheckedRoot) -> String {
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

fn world_writable(found: &CheckedRoot) -> Option<String> {
    (found.mode & 0o002 != 0).then(|| {
        format!(
            "the root \"{}\" is writable by every user of this machine",
            found.name
        )
    })
}

/// The risk of an operator's file that every user of the machine may read or write.
fn exposed(file: &OwnFile) -> Option<String> {
    let (what, path) = (file.what, file.real_path.display());
    let meaning = match file.holds {
        Holds::Policy => "any of them can open any directory",
        Holds::Secret => "any of them can put in a secret of their own",
        Holds::Record => "any of them can forge what happened",
        Holds::Program => "any of them can replace the server",
    };
    match (file.mode & 0o006, file.holds) {
        (0, _) | (0o004, Holds::Program) => None,
        (0o004, Holds::Secret) => Some(format!(
            "{what} ({path}) is readable by every user of this machine, any of whom can use what is in it (chmod o-r)"
        )),
        (0o004, _) => Some(format!(
            "{what} ({path}) is readable by every user of this machine (chmod o-r)"
        )),
        _ => Some(format!(
            "{what} ({path}) is writable by every user of this machine: {meaning} (chmod o-w)"
        )),
    }
}

/// The risk of an operator's file inside a root.
fn within_reach(root: &CheckedRoot, own: &RootSettings, file: &OwnFile) -> Option<String> {
    let what = file.what;
    let can = match (own.access, file.holds) {
        (RootAccess::ReadOnly, Holds::Policy | Holds::Record | Holds::Program) => return None,
        (RootAccess::ReadOnly, Holds::Secret) => "may read it",
        (RootAccess::ReadWrite, _) => "may be able to change it",
    };
    Some(format!(
        "the root \"{}\" contains {what}: agents {can}; keep it elsewhere",
        root.name
    ))
}

fn whole_system(found: &CheckedRoot) -> Option<String> {
    (found.real_path == Path::new("/")).then(|| {
        format!(
            "the root \"{}\" is the whole file system: nothing is left to be confined from",
            found.name
        )
    })
}

fn superuser() -> String {
    "it runs as root, so that no permission bits hold: run it as a user of its own".to_owned()
}

/// The risk of tokens sent without encryption.
fn tokens_in_the_clear(settings: &Settings) -> Option<String> {
    let is_clear = settings.transport == Transport::Http
        && asks_for_tokens(settings)
        && settings.tls.is_none()
        && audience_of(&settings.host) != Audience::ThisMachine;
    is_clear.then(|| {
        "tokens and files travel unencrypted: set server.tls, or put a proxy with TLS on this machine in front and \
         host to 127.0.0.1"
            .to_owned()
    })
}

/// The risk of an operator's page that other machines reach.
fn page_in_the_clear(settings: &Settings) -> Option<String> {
    let address = settings.admin_listen?;
    (!address.ip().is_loopback()).then(|| {
        format!(
            "the operator's page on {address} is not encrypted: put a proxy with TLS in front and let admin.listen be an \
             address of 127.0.0.1"
        )
    })
}

/// The risk of an allowlist with tools that no served set has.
fn idle_names(root: &RootSettings, settings: &Settings) -> Option<String> {
    let AllowedTools::Only(names) = &root.tools else {
        return None;
    };
    let is_idle = |name: &&String| {
        let only = AllowedTools::Only([(*name).clone()].into());
        let mut served = settings.toolsets.iter().flat_map(|set| {
            let tools = root_tools::available(*set, settings);
            tools.map(move |tool| (*set, tool))
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
    use std::path::PathBuf;

    fn file(holds: Holds, mode: u32) -> OwnFile {
        OwnFile {
            what: "the file",
            real_path: PathBuf::from("/data/file"),
            mode,
            holds,
        }
    }

    fn found(name: &str, path: &str) -> CheckedRoot {
        CheckedRoot {
            name: name.to_owned(),
            real_path: PathBuf::from(path),
            mode: 0o755,
            is_writable: true,
            history: None,
            hidden: sandbox::HiddenEntries::default(),
        }
    }

    #[test]
    fn equal_roots_are_told_once() {
        let found = [found("a", "/data"), found("b", "/data")];
        assert_eq!(nested_roots(&found).len(), 1);
    }

    #[test]
    fn files_of_the_operator_are_his_alone() {
        let risk = |holds, mode| exposed(&file(holds, mode)).unwrap_or_default();
        for mode in [0o600, 0o640, 0o660] {
            assert_eq!(risk(Holds::Secret, mode), "");
        }
        assert!(risk(Holds::Secret, 0o644).contains("any of whom can use what is in it"));
        assert!(risk(Holds::Policy, 0o644).ends_with("(chmod o-r)"));
        assert!(risk(Holds::Policy, 0o666).contains("any of them can open any directory"));
        assert_eq!(risk(Holds::Program, 0o755), "");
        assert!(risk(Holds::Program, 0o757).contains("replace the server"));
    }

    #[test]
    fn files_of_the_operator_do_not_belong_into_a_root() {
        let root = found("data", "/data");
        let own = |access| RootSettings {
            access,
            ..RootSettings::open_to_all("data".to_owned(), "/data".into(), "DIR")
        };
        let told = |access, holds| within_reach(&root, &own(access), &file(holds, 0o600));
        assert!(told(RootAccess::ReadWrite, Holds::Program).is_some());
        assert!(told(RootAccess::ReadOnly, Holds::Secret).is_some());
        assert!(told(RootAccess::ReadOnly, Holds::Policy).is_none());
    }

    #[test]
    fn tokens_want_encryption_unless_they_stay_here() {
        let risk = |yaml: &str| {
            let parsed = crate::settings::config_file::parse(yaml, Path::new("/etc"));
            tokens_in_the_clear(&parsed.unwrap().complete()).is_some()
        };
        assert!(risk("server: {bearer_tokens_file: t}"));
        assert!(!risk("{host: localhost, server: {bearer_tokens_file: t}}"));
        assert!(!risk(
            "server: {bearer_tokens_file: t, tls: {cert: c, key: k}}"
        ));
        assert!(!risk("port: 1"));
    }
}
