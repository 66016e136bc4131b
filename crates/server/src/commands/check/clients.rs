//! Who may do what, where.

use crate::settings::{AllowedTools, ClientRoot, ClientSettings, OAuthSelector, Settings};

/// A line for each client, and one for each of its roots.
pub(super) fn lines(settings: &Settings) -> Vec<String> {
    let clients = settings.clients.iter();
    clients.flat_map(client_lines).collect()
}

fn client_lines(client: &ClientSettings) -> Vec<String> {
    let mut about = vec![known_by(client)];
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
    let roots = client
        .roots
        .iter()
        .map(|(name, root)| root_line(name, root));
    let none = client
        .roots
        .is_empty()
        .then(|| "  no root at all".to_owned());
    std::iter::once(head).chain(roots).chain(none).collect()
}

fn known_by(client: &ClientSettings) -> String {
    let tokens = match client.tokens.len() {
        0 => None,
        1 => Some("1 token".to_owned()),
        count => Some(format!("{count} tokens")),
    };
    let oauth = client.oauth.as_ref().map(|selector| match selector {
        OAuthSelector::Scope(scope) => format!("access tokens with the scope {scope}"),
        OAuthSelector::Subject(subject) => format!("access tokens of {subject}"),
        OAuthSelector::Claim(name, value) => format!("access tokens whose {name} is {value}"),
    });
    let known: Vec<String> = tokens.into_iter().chain(oauth).collect();
    match known.is_empty() {
        true => "standard input and output".to_owned(),
        false => known.join(", "),
    }
}

fn root_line(name: &str, root: &ClientRoot) -> String {
    let tools = match &root.tools {
        AllowedTools::All => "every tool that the root allows".to_owned(),
        AllowedTools::Only(names) => names.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    let paths = match root.paths.is_empty() {
        true => "every path".to_owned(),
        false => root.paths.join(", "),
    };
    format!("  {name}: may {}; {tools}; {paths}", root.rights)
}
