//! Decides which of the agent's paths may be named: first by their text, then by where links would lead.
//!
//! Nothing is opened here. The sandbox resolves links by descriptor if the path exists under the project root on this host;
//! otherwise only the text can be judged.

use std::path::Path;

use sandbox::{Follow, RelPath, Root};

use crate::error::{Error, FormatFault, PolicyViolation, Result};
use crate::policy::{AllowedDirectory, AllowedFault, SecurityPolicy};
use crate::project_path::{
    PROJECT_ROOT, ProjectPath, bad_format, check_format, cut_path, joined, violation, without_dots,
};

/// Checks every path that a client or an agent names.
#[derive(Debug)]
pub struct PathValidator {
    root: Root,
    /// The absolute spellings of the project root that agents may put before a path.
    spellings: Vec<String>,
    policy: SecurityPolicy,
}

impl PathValidator {
    /// Creates a validator from the project root, the path it was configured with, and the allowed directories.
    pub fn new(
        root: Root,
        configured: &Path,
        allowed: &[impl AsRef<str>],
    ) -> Result<PathValidator, AllowedFault> {
        let spellings = [root.real_path(), configured]
            .iter()
            .filter_map(|path| path.to_str())
            .map(|path| path.trim_end_matches('/').to_owned())
            .filter(|path| path.starts_with('/'))
            .collect();
        let mut validator = PathValidator {
            root,
            spellings,
            policy: SecurityPolicy::default(),
        };
        let each = allowed.iter().enumerate();
        let allowed = each.map(|(index, path)| validator.allow(index, path.as_ref()));
        validator.policy = SecurityPolicy::new(allowed.collect::<Result<_, _>>()?);
        Ok(validator)
    }

    fn allow(&self, index: usize, path: &str) -> Result<AllowedDirectory, AllowedFault> {
        let fault = |error| AllowedFault {
            index,
            path: path.to_owned(),
            error,
        };
        let normal = self.normalize(path).map_err(fault)?;
        let location = self.locate(&normal).map_err(fault)?;
        Ok(AllowedDirectory {
            path: normal,
            resolved: location.path,
            exists: location.exists,
        })
    }

    /// Returns the project root.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns what is allowed.
    #[must_use]
    pub fn policy(&self) -> &SecurityPolicy {
        &self.policy
    }

    /// Returns the normal form of a path that is allowed, and an error for every other path.
    pub fn validate(&self, path: &str) -> Result<ProjectPath> {
        self.allowed_path(path)
            .map_err(|error| error.allowing(self.policy.allowed()))
    }

    fn allowed_path(&self, path: &str) -> Result<ProjectPath> {
        let normal = self.normalize(path)?;
        if !self.policy.allows(&normal) {
            return Err(violation(path, PolicyViolation::NotAllowed, Some(normal)));
        }
        let leads_to = self.locate(&normal)?.path;
        // Security: a link inside the project must not open a directory that is not allowed.
        if !self.policy.allows_resolved(&leads_to) {
            let refused = PolicyViolation::LinkNotAllowed;
            return Err(violation(path, refused, Some(leads_to)));
        }
        Ok(ProjectPath::allowed(&normal))
    }

    /// Does the same for a path that content is handed over for, which must not be spelled as a directory.
    pub fn validate_file(&self, path: &str) -> Result<ProjectPath> {
        let file = self.validate(path)?;
        let names_root = file.as_str() == PROJECT_ROOT;
        if path.ends_with('/') || path.ends_with("/.") || names_root {
            return Err(bad_format(path, FormatFault::Directory));
        }
        Ok(file)
    }

    /// Does the same for an entry of a listing, whose name must be a single one.
    pub fn validate_entry(&self, directory: &ProjectPath, name: &str) -> Result<ProjectPath> {
        let path = joined(directory.as_str(), name);
        if name.contains('/') || matches!(name, "" | "." | "..") {
            let refused = violation(&path, PolicyViolation::NotAName, None);
            return Err(refused.allowing(self.policy.allowed()));
        }
        self.validate(&path)
    }

    /// Returns the directory above a path, if it may be named too.
    #[must_use]
    pub fn above(&self, path: &ProjectPath) -> Option<String> {
        let (above, _) = path.as_str().rsplit_once('/')?;
        self.policy.allows(above).then(|| above.to_owned())
    }

    /// Returns the normal form by text alone: relative to the project root, without `.` and `..`.
    fn normalize(&self, path: &str) -> Result<String> {
        check_format(path)?;
        let spellings = self.spellings.iter();
        // An absolute path is below the project root: spelled out, or with the project root as `/`.
        let inside = spellings
            .filter_map(|root| path.strip_prefix(root.as_str()))
            .find(|rest| rest.is_empty() || rest.starts_with('/'));
        without_dots(inside.unwrap_or(path))
            .ok_or_else(|| violation(path, PolicyViolation::Traversal, None))
    }

    /// Finds where a path leads on this host, without opening anything.
    fn locate(&self, normal: &str) -> Result<Location> {
        let located = RelPath::parse(normal).and_then(|path| self.root.locate(&path, Follow::Last));
        match located {
            Ok(located) => Ok(Location {
                path: located.path(),
                exists: located.is_root() || located.metadata().is_some(),
            }),
            Err(sandbox::Error::Outside { leads_to, .. }) => {
                let refused = PolicyViolation::LinkLeaves;
                Err(violation(normal, refused, Some(leads_to)))
            }
            Err(sandbox::Error::Loop { .. }) => {
                Err(violation(normal, PolicyViolation::LinkLoop, None))
            }
            // The agent's tree may differ from this host's: nothing is here, so there is no link to follow.
            Err(sandbox::Error::NotADirectory { .. } | sandbox::Error::NotFound { .. }) => {
                Ok(Location {
                    path: normal.to_owned(),
                    exists: false,
                })
            }
            // Security: a path that cannot be checked is refused.
            Err(error) => Err(Error::Unverifiable {
                path: cut_path(normal),
                reason: error.to_string(),
            }),
        }
    }
}

/// Where a path leads on this host.
struct Location {
    path: String,
    exists: bool,
}

#[cfg(test)]
mod tests;
