//! Any text as a glob or an expression: it is refused or searches a tree to its end, and finds nothing twice.
#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ops::{
    Cancel, ChangeNotes, Consent, Context, Glob, GlobOrder, IgnoreRules, Kinds, Limits, Operation,
    PathPattern, Place, Root, Users,
};
use tempfile::TempDir;

#[derive(Debug, Arbitrary)]
struct Input {
    text: String,
    as_glob: bool,
    depth: u8,
}

fn root() -> Arc<Root> {
    static ROOT: OnceLock<(Arc<Root>, TempDir)> = OnceLock::new();
    let (root, _) = ROOT.get_or_init(|| {
        let temp = tempfile::tempdir().unwrap();
        for path in [
            "a",
            "b.txt",
            "ä.txt",
            "dir/a",
            "dir/sub/日本.txt",
            "dir/[x]",
            "{",
            "\\",
        ] {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        (Arc::new(Root::open(temp.path()).unwrap()), temp)
    });
    Arc::clone(root)
}

fn users() -> &'static Arc<Users> {
    static USERS: OnceLock<Arc<Users>> = OnceLock::new();
    USERS.get_or_init(|| Arc::new(Users::load()))
}

fuzz_target!(|input: Input| {
    let pattern = match input.as_glob {
        true => PathPattern::Glob(input.text.clone()),
        false => PathPattern::Regex(input.text.clone()),
    };
    let glob = Glob {
        place: Place::new(root(), ".").unwrap(),
        pattern,
        kinds: Kinds::All,
        max_results: 100,
        timeout: Duration::from_secs(60),
        max_depth: (input.depth > 0).then_some(usize::from(input.depth)),
        ignore_rules: IgnoreRules::Disregard,
        order: GlobOrder::Path,
        exclude: Vec::new(),
    };
    let context = Context {
        limits: Arc::new(Limits::for_tests()),
        users: Arc::clone(users()),
        line_index_cache: Arc::default(),
        search_memory: Arc::default(),
        change_notes: ChangeNotes::default(),
        consent: Consent::default(),
        cancel: Cancel::never(),
        room: None,
    };
    let Ok(found) = glob.run(&context) else {
        return;
    };
    assert!(!found.timed_out && !found.truncated);
    let paths: Vec<&str> = found
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert!(
        paths.is_sorted_by(|one, next| one.as_bytes() < next.as_bytes()),
        "{paths:?}"
    );
    if input.as_glob && input.text == "**/*" && input.depth == 0 {
        assert_eq!(paths.len(), 10);
    }
});
