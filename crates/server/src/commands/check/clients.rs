//! The rights of each caller in each root, after the root's own limits are applied.

use std::collections::BTreeSet;

use sandbox::{Right, Rights};

use crate::settings::{
    AllowedTools, ClientRoot, ClientSettings, OAuthSelector, RootAccess, RootSettings,
    STDIO_CLIENT, Settings, Transport,
};

/// A line for each client and each kind of unnamed caller, and one for each of their roots.
pub(super) fn lines(settings: &Settings) -> Vec<String> {
    if settings.clients.is_empty() {
        return Vec::new();
    }
    let clients = settings.clients.iter();
    let named = clients.flat_map(|client| client_lines(client, settings));
    let unnamed = unnamed(settings).into_iter();
    let unnamed = unnamed.flat_map(|head| {
        let roots = settings.roots.iter().map(|root| root_line(root, None));
        std::iter::once(format!("{head}: what the roots allow")).chain(roots)
    });
    named.chain(unnamed).collect()
}

/// The callers that are let in without being a named client.
fn unnamed(settings: &Settings) -> Vec<String> {
    let has_stdio = settings
        .clients
        .iter()
        .any(|client| client.name == STDIO_CLIENT);
    match settings.transport {
        Transport::Stdio if has_stdio => Vec::new(),
        Transport::Stdio => vec!["the caller on standard input and output".to_owned()],
        Transport::Http => {
            let file = settings.bearer_tokens_file.iter();
            file.map(|_| "callers with a token of server.bearer_tokens_file".to_owned())
                .collect()
        }
    }
}

fn client_lines(client: &ClientSettings, settings: &Settings) -> Vec<String> {
    let mut about = vec![known_by(client, settings)];
    if let Some(sets) = &client.toolsets {
        let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
        about.push(format!("tool sets {}", names.join(", ")));
    }
    if let Some(rate) = client.rate {
        about.push(format!(
            "{} calls a second, {} at once after a pause",
            rate.per_second, rate.burst
        ));
    }
    if let Some(most) = client.max_calls {
        about.push(format!("{most} calls at once"));
    }
    let head = format!("the client {}: {}", client.name, about.join("; "));
    let roots = settings.roots.iter().filter_map(|root| {
        let part = client.root(&root.name)?;
        Some(root_line(root, Some(part)))
    });
    let none = client
        .roots
        .is_empty()
        .then(|| "  no root at all".to_owned());
    std::iter::once(head).chain(roots).chain(none).collect()
}

/// How callers show that they are this client.
fn known_by(client: &ClientSettings, settings: &Settings) -> String {
    let tokens = match client.tokens.len() {
        0 => None,
        1 => Some("1 token".to_owned()),
        count => Some(format!("{count} tokens")),
    };
    let with_scope = |scope: &str| format!("access tokens with the scope {scope}");
    let oauth = client.oauth.as_ref().map(|selector| match selector {
        OAuthSelector::Scope(scope) => with_scope(scope),
        OAuthSelector::Subject(subject) => format!("access tokens of {subject}"),
        OAuthSelector::Claim(name, value) => format!("access tokens whose {name} is {value}"),
    });
    let scopes = settings.oauth.iter().flat_map(|oauth| &oauth.scopes);
    let scopes = scopes.filter(|(_, name)| *name == client.name);
    let scopes = scopes.map(|(scope, _)| with_scope(scope));
    let stdio = (client.name == STDIO_CLIENT).then(|| "standard input and output".to_owned());
    let known: Vec<String> = stdio
        .into_iter()
        .chain(tokens)
        .chain(oauth)
        .chain(scopes)
        .collect();
    known.join(", ")
}

/// The effective rights of a caller in a root.
fn root_line(root: &RootSettings, part: Option<&ClientRoot>) -> String {
    let granted = part.map_or(Rights::ALL, |part| part.rights);
    let rights = match root.access {
        RootAccess::ReadOnly => Rights::of(&[Right::Read]),
        RootAccess::ReadWrite => granted,
    };
    let tools = match (&root.tools, part.map(|part| &part.tools)) {
        (AllowedTools::All, None | Some(AllowedTools::All)) => "every tool".to_owned(),
        (AllowedTools::Only(names), None | Some(AllowedTools::All)) => listed(names),
        (AllowedTools::All, Some(AllowedTools::Only(names))) => listed(names),
        (AllowedTools::Only(of_root), Some(AllowedTools::Only(own))) => listed(&both(of_root, own)),
    };
    let paths = part.map(|part| part.paths.as_slice()).unwrap_or_default();
    let paths = match (paths, root.deny.is_empty()) {
        ([], true) => "every path".to_owned(),
        ([], false) => "every path that the root does not deny".to_owned(),
        (globs, _) => globs.join(", "),
    };
    format!("  {}: may {rights}; {tools}; {paths}", root.name)
}

/// The names that both lists allow; `copy` is that tool of every set, `files.copy` that of one.
fn both(one: &BTreeSet<String>, other: &BTreeSet<String>) -> BTreeSet<String> {
    let has = |list: &BTreeSet<String>, name: &str| {
        let bare = name.rsplit('.').next().unwrap_or(name);
        list.contains(name) || list.contains(bare)
    };
    let in_both = |from: &BTreeSet<String>, to: &BTreeSet<String>| -> Vec<String> {
        from.iter().filter(|name| has(to, name)).cloned().collect()
    };
    in_both(one, other)
        .into_iter()
        .chain(in_both(other, one))
        .collect()
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "no tool".to_owned();
    }
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}
