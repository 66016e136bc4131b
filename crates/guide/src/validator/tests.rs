#![expect(
    clippy::disallowed_methods,
    reason = "the tests make links that the validator looks at"
)]

use super::*;
use proptest::prelude::*;
use sandbox::is_within;
use std::fs;
use std::os::unix::fs::symlink;

/// What is allowed unless a test says otherwise.
const ALLOWED: [&str; 5] = ["docs", "src", "tests", ".guide", ".todo"];

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
    project(&ALLOWED, |_| {})
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
    let project = project(&ALLOWED, |path| {
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
    assert_eq!(fault.index, 1);
    assert_eq!(fault.path.as_str(), "../x");
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
            prop_assert!(ALLOWED.iter().any(|one| is_within(text, one)));
            prop_assert!(text.split('/').all(|name| !matches!(name, "" | "." | "..")));
            prop_assert_eq!(normal(&project.validator, text), text);
        }
    }
}
