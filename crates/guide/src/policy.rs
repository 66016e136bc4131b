//! Which of the agent's paths may be named at all: first by their text, then by where links would lead them.
//!
//! Nothing is opened here. Links are looked up through the sandbox, by descriptor, where the path exists under the
//! project root on this host; elsewhere only the text can be judged.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sandbox::{Follow, RelPath, Root};

use crate::error::{Error, FormatFault, PolicyViolation, Result};

/// The longest path.
const PATH_MAX: usize = 4095;
/// The longest name.
const NAME_MAX: usize = 255;
/// How much of a bad path an error repeats.
const SHOWN_MAX: usize = 256;
/// The whole project.
const WHOLE: &str = ".";

/// A path that the policy allows: relative to the project root, without `.`, `..` or doubled slashes. It is the cache key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectPath(Arc<str>);

impl ProjectPath {
    /// The path as text; `.` is the project root itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn unchecked(path: &str) -> ProjectPath {
        ProjectPath(path.into())
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The directories of the project that may be named; everything else is denied.
#[derive(Debug, Clone, Default)]
pub struct SecurityPolicy {
    allowed: Vec<Allowed>,
}

#[derive(Debug, Clone)]
struct Allowed {
    /// Its normal form.
    path: String,
    /// Where it really lies, which differs where it is a link; its normal form where nothing is there.
    resolved: String,
    exists: bool,
}

/// An allowed path that cannot be one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{path:?} cannot be allowed: {error}")]
pub struct AllowedFault {
    /// Its number in the list.
    pub index: usize,
    /// The path as it was given.
    pub path: String,
    /// What is wrong with it.
    pub error: Error,
}

impl SecurityPolicy {
    /// What is allowed unless the operator says otherwise.
    pub const DEFAULT: [&'static str; 5] = ["docs", "src", "tests", ".guide", ".todo"];

    /// The allowed directories in their normal form.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().map(|allowed| allowed.path.as_str())
    }

    /// The allowed directories that do not exist: worth a warning.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.allowed.iter().filter(|allowed| !allowed.exists);
        missing.map(|allowed| allowed.path.as_str())
    }

    fn allows(&self, path: &str) -> bool {
        self.allowed
            .iter()
            .any(|allowed| is_within(path, &allowed.path))
    }

    fn allows_resolved(&self, path: &str) -> bool {
        self.allowed
            .iter()
            .any(|allowed| is_within(path, &allowed.resolved))
    }
}

/// Judges paths for everything that names one.
#[derive(Debug)]
pub struct PathValidator {
    root: Root,
    /// The absolute spellings of the project root that agents may put before a path.
    spellings: Vec<String>,
    policy: SecurityPolicy,
}

impl PathValidator {
    /// Takes the project root, the path it was configured with, and the allowed directories.
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
        validator.policy.allowed = allowed.collect::<Result<_, _>>()?;
        Ok(validator)
    }

    fn allow(&self, index: usize, path: &str) -> Result<Allowed, AllowedFault> {
        let fault = |error| AllowedFault {
            index,
            path: path.to_owned(),
            error,
        };
        let normal = self.normalize(path).map_err(fault)?;
        let located = self.locate(&normal).map_err(fault)?;
        Ok(Allowed {
            path: normal,
            resolved: located.path,
            exists: located.exists,
        })
    }

    /// The project root.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// What is allowed.
    #[must_use]
    pub fn policy(&self) -> &SecurityPolicy {
        &self.policy
    }

    /// The normal form of a path that is allowed; every other path is an error, and a violation where it tries to leave.
    pub fn validate(&self, path: &str) -> Result<ProjectPath> {
        self.judged(path)
            .map_err(|error| error.allowing(self.policy.allowed()))
    }

    fn judged(&self, path: &str) -> Result<ProjectPath> {
        let normal = self.normalize(path)?;
        let refused = |violation, leads_to| Error::Violation {
            path: shortened(path),
            violation,
            leads_to,
            allowed: Vec::new(),
        };
        if !self.policy.allows(&normal) {
            return Err(refused(PolicyViolation::NotAllowed, Some(normal)));
        }
        let located = self.locate(&normal)?;
        // Security: a link inside the project must not open a directory that was not allowed.
        if !self.policy.allows_resolved(&located.path) {
            return Err(refused(PolicyViolation::LinkNotAllowed, Some(located.path)));
        }
        Ok(ProjectPath(normal.into()))
    }

    /// The same for a path that content is handed over for: one that is spelled as a directory's is a mistake.
    pub fn validate_file(&self, path: &str) -> Result<ProjectPath> {
        let file = self.validate(path)?;
        let is_directory = path.ends_with('/') || path.ends_with("/.") || file.as_str() == WHOLE;
        match is_directory {
            true => Err(Error::Format {
                path: shortened(path),
                fault: FormatFault::Directory,
            }),
            false => Ok(file),
        }
    }

    /// The directory above a path, where it may be named too.
    #[must_use]
    pub fn above(&self, path: &ProjectPath) -> Option<String> {
        let (above, _) = path.as_str().rsplit_once('/')?;
        self.policy.allows(above).then(|| above.to_owned())
    }

    /// The path of a listed name, which has to be one name.
    pub fn validate_entry(&self, directory: &ProjectPath, name: &str) -> Result<ProjectPath> {
        if name.contains('/') || matches!(name, "" | "." | "..") {
            return Err(Error::Violation {
                path: shortened(&joined(directory.as_str(), name)),
                violation: PolicyViolation::NotAName,
                leads_to: None,
                allowed: self.policy.allowed().map(str::to_owned).collect(),
            });
        }
        self.validate(&joined(directory.as_str(), name))
    }

    /// The form by text alone: relative to the project root, `..` taken away.
    fn normalize(&self, path: &str) -> Result<String> {
        check_format(path)?;
        let spelled = self.spellings.iter();
        // An absolute path is one under the project root: spelled out, or with the project root as `/`.
        let inside = spelled
            .filter_map(|root| path.strip_prefix(root.as_str()))
            .find(|rest| rest.is_empty() || rest.starts_with('/'));
        without_dots(inside.unwrap_or(path)).ok_or_else(|| Error::Violation {
            path: shortened(path),
            violation: PolicyViolation::Traversal,
            leads_to: None,
            allowed: Vec::new(),
        })
    }

    /// Where a path leads on this host, without opening anything.
    fn locate(&self, normal: &str) -> Result<Location> {
        let refused = |violation, leads_to| Error::Violation {
            path: shortened(normal),
            violation,
            leads_to,
            allowed: Vec::new(),
        };
        let located = RelPath::parse(normal).and_then(|path| self.root.locate(&path, Follow::Last));
        match located {
            Ok(located) => Ok(Location {
                path: located.path(),
                exists: located.is_root() || located.metadata().is_some(),
            }),
            Err(sandbox::Error::Outside { leads_to, .. }) => {
                Err(refused(PolicyViolation::LinkLeaves, Some(leads_to)))
            }
            Err(sandbox::Error::Loop { .. }) => Err(refused(PolicyViolation::LinkLoop, None)),
            // A file stands where the agent has a directory: here is nothing to follow.
            Err(sandbox::Error::NotADirectory { .. } | sandbox::Error::NotFound { .. }) => {
                Ok(Location {
                    path: normal.to_owned(),
                    exists: false,
                })
            }
            // Security: what cannot be looked at is not let through.
            Err(error) => Err(Error::Unverifiable {
                path: shortened(normal),
                reason: error.to_string(),
            }),
        }
    }
}

struct Location {
    path: String,
    exists: bool,
}

fn check_format(path: &str) -> Result<()> {
    if path.contains('\0') {
        return Err(Error::Violation {
            path: shortened(path),
            violation: PolicyViolation::NulByte,
            leads_to: None,
            allowed: Vec::new(),
        });
    }
    let fault = if path.is_empty() {
        FormatFault::Empty
    } else if path.len() > PATH_MAX {
        FormatFault::TooLong
    } else if path.split('/').any(|name| name.len() > NAME_MAX) {
        FormatFault::NameTooLong
    } else if path.chars().any(char::is_control) {
        FormatFault::ControlCharacter
    } else {
        return Ok(());
    };
    Err(Error::Format {
        path: shortened(path),
        fault,
    })
}

/// Takes `.` and `..` away by text; nothing where `..` leads above the start.
fn without_dots(path: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for piece in path.split('/') {
        match piece {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(match names.is_empty() {
        true => WHOLE.to_owned(),
        false => names.join("/"),
    })
}

fn is_within(path: &str, directory: &str) -> bool {
    // Security: `docs-private` does not lie in `docs`.
    let rest = path.strip_prefix(directory);
    directory == WHOLE || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A name in a directory.
pub(crate) fn joined(directory: &str, name: &str) -> String {
    match directory {
        WHOLE => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", text.split_at(end).0),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests make links that the validator looks at"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct TestProject {
        directory: tempfile::TempDir,
        validator: PathValidator,
    }

    fn project(allowed: &[&str], prepare: impl FnOnce(&Path)) -> TestProject {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let root = Root::open(directory.path()).unwrap();
        let validator = PathValidator::new(root, directory.path(), allowed).unwrap();
        TestProject {
            directory,
            validator,
        }
    }

    fn plain() -> TestProject {
        project(&SecurityPolicy::DEFAULT, |_| {})
    }

    fn violation(validator: &PathValidator, path: &str) -> Option<PolicyViolation> {
        match validator.validate(path) {
            Err(Error::Violation { violation, .. }) => Some(violation),
            _ => None,
        }
    }

    fn normal(validator: &PathValidator, path: &str) -> String {
        validator.validate(path).unwrap().to_string()
    }

    #[test]
    fn allowed_paths_come_back_in_their_normal_form() {
        let project = plain();
        for (given, expected) in [
            ("docs", "docs"),
            ("docs/", "docs"),
            ("./docs//a/./b.md", "docs/a/b.md"),
            ("docs/x/../a.md", "docs/a.md"),
            ("src/../docs/a.md", "docs/a.md"),
            ("/docs/a.md", "docs/a.md"),
            (".guide/notes", ".guide/notes"),
            ("docs/%2e%2e/a", "docs/%2e%2e/a"),
        ] {
            assert_eq!(normal(&project.validator, given), expected, "{given}");
        }
    }

    #[test]
    fn a_path_under_the_spelled_out_project_root_is_relative_to_it() {
        let project = plain();
        let root = project.directory.path().to_str().unwrap();
        let given = format!("{root}/docs/a.md");
        assert_eq!(normal(&project.validator, &given), "docs/a.md");
        let twin = format!("{root}-twin/docs/a.md");
        assert_eq!(
            violation(&project.validator, &twin),
            Some(PolicyViolation::NotAllowed)
        );
    }

    #[test]
    fn what_is_not_allowed_is_denied() {
        let project = plain();
        for path in [".", "/", "secret", "docs-private/a", "doc", "/etc/passwd"] {
            assert_eq!(
                violation(&project.validator, path),
                Some(PolicyViolation::NotAllowed),
                "{path}"
            );
        }
        for path in ["..", "docs/../..", "../docs/a", "/../docs", "a/../../docs"] {
            assert_eq!(
                violation(&project.validator, path),
                Some(PolicyViolation::Traversal),
                "{path}"
            );
        }
        assert_eq!(
            violation(&project.validator, "docs/a\0"),
            Some(PolicyViolation::NulByte)
        );
    }

    #[test]
    fn malformed_paths_are_a_matter_of_form() {
        let project = plain();
        let fault = |path: &str| match project.validator.validate(path) {
            Err(Error::Format { fault, .. }) => fault,
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(""), FormatFault::Empty);
        assert_eq!(fault("docs/a\nb"), FormatFault::ControlCharacter);
        let long_name = format!("docs/{}", "n".repeat(256));
        assert_eq!(fault(&long_name), FormatFault::NameTooLong);
        assert_eq!(fault(&"docs/".repeat(900)), FormatFault::TooLong);
    }

    #[test]
    fn links_are_judged_by_where_they_lead() {
        let project = project(&SecurityPolicy::DEFAULT, |path| {
            for directory in ["docs/real", "secret", "src"] {
                fs::create_dir_all(path.join(directory)).unwrap();
            }
            symlink("real", path.join("docs/inside")).unwrap();
            symlink("../src", path.join("docs/code")).unwrap();
            symlink("../secret", path.join("docs/closed")).unwrap();
            symlink("/etc", path.join("docs/out")).unwrap();
            symlink("loop", path.join("docs/loop")).unwrap();
        });
        let validator = &project.validator;
        assert_eq!(
            normal(validator, "docs/inside/new.md"),
            "docs/inside/new.md"
        );
        assert_eq!(normal(validator, "docs/code/a.rs"), "docs/code/a.rs");
        for (path, expected) in [
            ("docs/closed", PolicyViolation::LinkNotAllowed),
            ("docs/closed/new/file", PolicyViolation::LinkNotAllowed),
            ("docs/out/passwd", PolicyViolation::LinkLeaves),
            ("docs/loop/a", PolicyViolation::LinkLoop),
        ] {
            assert_eq!(violation(validator, path), Some(expected), "{path}");
        }
    }

    #[test]
    fn an_allowed_directory_may_be_a_link_inside_the_project() {
        let project = project(&["docs"], |path| {
            fs::create_dir(path.join("documentation")).unwrap();
            symlink("documentation", path.join("docs")).unwrap();
        });
        assert_eq!(normal(&project.validator, "docs/a"), "docs/a");
        assert_eq!(
            violation(&project.validator, "documentation/a"),
            Some(PolicyViolation::NotAllowed)
        );
    }

    #[test]
    fn allowed_paths_are_normalized_and_missing_ones_are_known() {
        let project = project(&["./docs//", "/src/", "gone"], |path| {
            fs::create_dir(path.join("docs")).unwrap();
            fs::create_dir(path.join("src")).unwrap();
        });
        let policy = project.validator.policy();
        assert_eq!(
            policy.allowed().collect::<Vec<_>>(),
            ["docs", "src", "gone"]
        );
        assert_eq!(policy.missing().collect::<Vec<_>>(), ["gone"]);
    }

    #[test]
    fn an_allowed_path_outside_the_project_is_a_mistake() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(directory.path()).unwrap();
        let fault = PathValidator::new(root, directory.path(), &["docs", "../x"]).unwrap_err();
        assert_eq!((fault.index, fault.path.as_str()), (1, "../x"));
    }

    #[test]
    fn the_whole_project_can_be_allowed() {
        let project = project(&["."], |_| {});
        assert_eq!(
            normal(&project.validator, "anything/at/all"),
            "anything/at/all"
        );
        assert_eq!(
            violation(&project.validator, "../x"),
            Some(PolicyViolation::Traversal)
        );
    }

    #[test]
    fn a_listed_name_is_one_name() {
        let project = plain();
        let docs = project.validator.validate("docs").unwrap();
        let entry = |name| project.validator.validate_entry(&docs, name);
        assert_eq!(entry("a.md").unwrap().as_str(), "docs/a.md");
        for name in ["", ".", "..", "a/b", "../src/a"] {
            let is_refused = matches!(
                entry(name),
                Err(Error::Violation {
                    violation: PolicyViolation::NotAName,
                    ..
                })
            );
            assert!(is_refused, "{name}");
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("docs".to_owned()),
            Just("..".to_owned()),
            Just(".".to_owned()),
            Just(String::new()),
            "[a-z .%\\\\~-]{1,6}",
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.join("/"))
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_normal_and_allowed(path in prop_oneof![pieces(), ".{0,40}"]) {
            let project = plain();
            if let Ok(accepted) = project.validator.validate(&path) {
                let text = accepted.as_str();
                prop_assert!(SecurityPolicy::DEFAULT.iter().any(|one| is_within(text, one)));
                prop_assert!(text.split('/').all(|name| !matches!(name, "" | "." | "..")));
                prop_assert_eq!(normal(&project.validator, text), text);
            }
        }
    }
}
