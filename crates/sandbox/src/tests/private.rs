//! A temporary file is private from the moment it has a name, whatever the umask and the directory allow.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;

use super::support::{change, fresh_dir, locate};
use crate::syscall::hook;
use crate::{OnExisting, Parents, Resolver, Root};

/// The modes of what is in a directory, but for those of finished files.
fn modes_of_temporary_files(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let temporary = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"));
    let modes = temporary.map(|entry| entry.metadata().unwrap().permissions().mode() & 0o777);
    modes.collect()
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_temporary_file_with_a_name_is_private_until_it_is_whole() {
    let temp = fresh_dir();
    fs::write(temp.path().join("usual"), "").unwrap();
    let usual = mode_of(&temp.path().join("usual"));
    let root = Root::open_with(temp.path(), Resolver::WalkWithoutProc).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (watched, directory) = (Rc::clone(&seen), temp.path().to_owned());
    let watch = move |call| {
        let modes = modes_of_temporary_files(&directory);
        watched.borrow_mut().push((call, modes));
    };
    hook::with(watch, || {
        let place = locate(&root, "secret").unwrap();
        let mut staged = change()
            .stage(&place, OnExisting::Fail, Parents::Require)
            .unwrap();
        staged.write_all(b"secret").unwrap();
        staged.commit().unwrap();
    });
    let seen = seen.take();
    let before_mode_is_set = seen.iter().take_while(|(call, _)| *call != "fchmod");
    let modes: Vec<u32> = before_mode_is_set
        .flat_map(|(_, modes)| modes.clone())
        .collect();
    assert!(!modes.is_empty(), "no temporary file was seen: {seen:?}");
    assert!(modes.iter().all(|mode| *mode == 0o600), "{seen:?}");
    // The content is whole before the mode is set, and the name is given after that.
    let order: Vec<&str> = seen.iter().map(|(call, _)| *call).collect();
    let at = |name| order.iter().rposition(|call| *call == name);
    assert!(
        at("create") < at("fchmod") && at("fchmod") < at("renameat2"),
        "{order:?}"
    );
    assert_eq!(mode_of(&temp.path().join("secret")), usual);
    assert!(modes_of_temporary_files(temp.path()).is_empty());
}
