//! What `deny` hides in a root, or the shipped list would.

use sandbox::{HiddenEntries, NamedRoot, SECRETS_WORD, View};

use super::CheckedRoot;
use crate::settings::RootSettings;

/// How many hidden entries are named.
const NAMED: usize = 10;

/// Finds what the root's own globs hide; of a root without any, what the shipped list would.
pub(super) fn hidden_in(root: &NamedRoot, own: &RootSettings) -> HiddenEntries {
    let shipped = [SECRETS_WORD.to_owned()];
    let globs = if own.deny.is_empty() {
        &shipped[..]
    } else {
        &own.deny
    };
    match View::new(&[], globs) {
        Ok(Some(view)) => root.root.hidden_by(&view, NAMED),
        _ => HiddenEntries::default(),
    }
}

/// What a root hides from its clients.
pub(super) fn deny_in_words(root: &RootSettings, found: &CheckedRoot) -> Option<String> {
    let globs = (!root.deny.is_empty()).then(|| root.deny.join(", "))?;
    Some(format!("deny {globs}: {}", entries_in_words(&found.hidden)))
}

fn entries_in_words(hidden: &HiddenEntries) -> String {
    let more = hidden.count - hidden.first.len();
    let mut names = hidden.first.join(", ");
    if more > 0 {
        names.push_str(&format!(" and {more} more"));
    }
    if hidden.is_partial {
        names.push_str(" (the root is large: only a part of it was looked at)");
    }
    match hidden.count {
        0 => format!("hides nothing that is there{names}"),
        1 => format!("hides 1 entry: {names}"),
        count => format!("hides {count} entries: {names}"),
    }
}

/// The risks of visible files: names that usually hold secrets, and globs that hide less than they seem to.
pub(super) fn risks(found: &CheckedRoot, own: &RootSettings) -> Vec<String> {
    let mut risks = Vec::new();
    let name = &own.name;
    if own.deny.is_empty() && found.hidden.count > 0 {
        let HiddenEntries { first, count, .. } = &found.hidden;
        let shown: Vec<&str> = first.iter().take(5).map(String::as_str).collect();
        let more = if *count > shown.len() { ", …" } else { "" };
        let entries = match count {
            1 => "1 entry that usually holds secrets".to_owned(),
            count => format!("{count} entries that usually hold secrets"),
        };
        risks.push(format!(
            "the root \"{name}\" shows clients {entries} ({}{more}); `deny: secrets` in the root hides what usually \
             holds secrets",
            shown.join(", ")
        ));
    }
    let is_top_only = |glob: &&String| {
        let plain = glob.trim_start_matches('!');
        *plain != *SECRETS_WORD
            && !plain.trim_end_matches('/').contains('/')
            && !glob.starts_with('!')
    };
    for glob in own.deny.iter().filter(is_top_only) {
        risks.push(format!(
            "`{glob}` in deny of the root \"{name}\" means the top of the root alone; write `**/{glob}` for every \
             directory, or `/{glob}` if that is meant"
        ));
    }
    risks
}
