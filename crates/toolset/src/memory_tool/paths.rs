//! Paths as the model writes them: `/memories` is the store.

use ops::text::encoding::to_base64;
use ops::{Error, Place, is_within};

use crate::client::Caller;
use crate::deployment::MemoryStore;
use crate::tool::Call;

/// What every path begins with.
pub(super) const TOP: &str = "/memories";

/// The place that a path means.
pub(super) fn place(call: &Call, path: &str) -> ops::Result<Place> {
    let inside = inside(path)?;
    let store = store(call);
    let joined = match (store.as_str(), inside.as_str()) {
        ("", "") => ".".to_owned(),
        ("", inside) => inside.to_owned(),
        (store, "") => store.to_owned(),
        (store, inside) => format!("{store}/{inside}"),
    };
    let place = call
        .place(&joined)
        .map_err(|error| escape_if_invalid(error, path))?;
    // Security: a link of the operator must not lead one client into the store of another.
    if !store.is_empty() && !is_within(&place.resolved()?, &store) {
        return Err(escapes(path));
    }
    Ok(place)
}

/// Whether a path is the store itself.
pub(super) fn is_top(path: &str) -> bool {
    inside(path).is_ok_and(|inside| inside.is_empty())
}

/// The path inside the store, with `.` and `..` removed textually.
fn inside(path: &str) -> ops::Result<String> {
    let rest = path.strip_prefix(TOP);
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(rest) = rest else {
        return Err(Error::InvalidArgument {
            argument: "path",
            reason: format!("Path must start with {TOP}, got: {path}"),
        });
    };
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if names.pop().is_none() {
                    return Err(escapes(path));
                }
            }
            name => names.push(name),
        }
    }
    Ok(names.join("/"))
}

fn escapes(path: &str) -> Error {
    Error::Outside {
        path: path.to_owned(),
        leads_to: path.to_owned(),
        link: None,
    }
}

fn escape_if_invalid(error: Error, path: &str) -> Error {
    match error {
        Error::InvalidPath { fault, .. } => Error::InvalidPath {
            path: path.to_owned(),
            fault,
        },
        other => other,
    }
}

/// Where in the root the client's store is; empty for the root itself.
fn store(call: &Call) -> String {
    match call.memory_tool.store {
        MemoryStore::Shared => String::new(),
        MemoryStore::PerClient => format!("client-{}", store_name(&call.caller)),
    }
}

/// A session is not a client: its store would be empty the next time. A subject keeps its store across clients.
fn store_name(caller: &Caller) -> String {
    if let Some(subject) = &caller.subject {
        // No other kind of name contains a hyphen.
        return format!("subject-{subject}");
    }
    // Names must stay distinct, and no byte may have a meaning in a path.
    let name = to_base64(caller.allowance.as_bytes());
    name.trim_end_matches('=').replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_the_top() {
        for (path, expected) in [
            ("/memories", Some("")),
            ("/memories/", Some("")),
            ("/memories/a/./b//c", Some("a/b/c")),
            ("/memories/a/../b", Some("b")),
            ("/memories/..", None),
            ("/memories/a/../../b", None),
            ("/memoriesX", None),
            ("memories/a", None),
            ("/etc/passwd", None),
        ] {
            assert_eq!(inside(path).ok().as_deref(), expected, "{path}");
        }
    }
}
