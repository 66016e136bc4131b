//! One path for one directory, whichever way roots lead to it.
//!
//! Places of two roots are compared by their paths on the host. A bind mount gives one directory two of them, so a root
//! that is opened on a directory that another root has open already is known by the path of that one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use crate::metadata::Metadata;

/// Device and inode of a directory.
type DirectoryId = (u64, u64);

static OPEN: LazyLock<Mutex<HashMap<DirectoryId, Weak<Path>>>> = LazyLock::new(Mutex::default);

/// The path by which the directory of a root is compared with others, for as long as some root has it open.
pub(crate) fn of(directory: &Metadata, real_path: &Path) -> Arc<Path> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, path| path.strong_count() > 0);
    let id = (directory.device, directory.inode);
    if let Some(known) = open.get(&id).and_then(Weak::upgrade) {
        return known;
    }
    let path: Arc<Path> = real_path.into();
    open.insert(id, Arc::downgrade(&path));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;

    #[test]
    fn a_directory_has_one_path_while_it_is_open() {
        let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = Root::open(temp.path()).unwrap();
        let top = root.metadata().unwrap();
        let elsewhere = Path::new("/mnt/elsewhere");
        let path = of(&top, elsewhere);
        assert_eq!(&*path, root.real_path());
        let unlike = Root::open(other.path()).unwrap();
        assert_eq!(
            unlike.host_path("a"),
            format!("{}/a", unlike.real_path().display())
        );
        drop((root, path));
        assert_eq!(&*of(&top, elsewhere), elsewhere);
    }
}
