//! Names for user and group numbers, from the system's files as they are at start-up.
//!
//! They are read once because Landlock closes `/etc` afterwards; a user without a name there is shown by number.

use std::collections::HashMap;

/// A snapshot of the user database.
#[derive(Debug, Clone, Default)]
pub struct Users {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Users {
    /// Reads the database.
    #[must_use]
    pub fn load() -> Users {
        Users {
            users: names("/etc/passwd"),
            groups: names("/etc/group"),
        }
    }

    /// The name of a user.
    #[must_use]
    pub fn user(&self, uid: u32) -> Option<&str> {
        self.users.get(&uid).map(String::as_str)
    }

    /// The name of a group.
    #[must_use]
    pub fn group(&self, gid: u32) -> Option<&str> {
        self.groups.get(&gid).map(String::as_str)
    }
}

/// Reads `name:password:number:…` lines; the first name of a number counts.
fn names(file: &str) -> HashMap<u32, String> {
    let text = std::fs::read(file).unwrap_or_default();
    let mut names = HashMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(number))) = (fields.next(), fields.nth(1).map(str::parse)) {
            names.entry(number).or_insert_with(|| name.to_owned());
        }
    }
    names
}
