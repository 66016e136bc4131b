//! Special files never block and are refused at once.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use sandbox::{Error, FileKind, Name, OnExisting, Parents, RelPath, Root, WalkOptions, Walker};

use crate::everywhere;
use crate::support::{change, locate, locate_itself, rename_as, stage};

/// Long enough for a slow machine, and still the end of a test that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fails instead of hanging where a call waits for somebody who never comes.
fn without_waiting(body: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if finished.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("a call waits for a special file");
    }
    worker.join().unwrap();
}

/// Makes one of each kind that this process may make.
fn make_special_files(dir: &Path) -> Vec<(&'static str, FileKind)> {
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, dir.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    drop(UnixListener::bind(dir.join("socket")).unwrap());
    let mut made = vec![("fifo", FileKind::Fifo), ("socket", FileKind::Socket)];
    let null = makedev(1, 3);
    if mknodat(
        CWD,
        dir.join("device"),
        FileType::CharacterDevice,
        mode,
        null,
    )
    .is_ok()
    {
        made.push(("device", FileKind::CharDevice));
    }
    made
}

fn refuses(root: &Root, name: &str, kind: FileKind) {
    let refused = |result: Result<(), Error>| {
        let right = matches!(&result, Err(Error::NotAFile { kind: found, .. }) if *found == kind);
        assert!(right, "{name}: {result:?}");
    };
    let place = locate(root, name).unwrap();
    refused(place.open_file().map(drop));
    refused(stage(&place).map(drop));
    refused(change().append(&place, b"x", Parents::Require).map(drop));
    refused(place.open_to_edit().map(drop));
    let path = RelPath::parse(name).unwrap();
    refused(root.open_file(&path).map(drop));
    assert!(root.try_open_inline(&path).is_none());
    let top = locate(root, "").unwrap().open_dir().unwrap();
    refused(
        top.open_file(&Name::new(name.as_bytes()).unwrap())
            .map(drop),
    );
    assert!(matches!(place.open_dir(), Err(Error::NotADirectory { .. })));
    assert!(matches!(
        locate(root, &format!("{name}/x")),
        Err(Error::NotADirectory { .. })
    ));
}

#[test]
fn special_files_are_refused_at_once() {
    without_waiting(|| {
        everywhere(|root, inside, _| {
            for (name, kind) in make_special_files(inside) {
                refuses(root, name, kind);
            }
        });
    });
}

#[test]
fn special_files_are_walked_renamed_and_removed_unopened() {
    without_waiting(|| {
        everywhere(|root, inside, _| {
            fs::create_dir(inside.join("tree")).unwrap();
            let made = make_special_files(&inside.join("tree"));
            let top = locate(root, "tree").unwrap().open_dir().unwrap();
            let mut walker = Walker::new(top, WalkOptions::default());
            let mut kinds = Vec::new();
            while let Some(item) = walker.next(&mut |_| true) {
                let item = item.unwrap();
                kinds.push((item.name.shown().into_owned(), item.kind));
            }
            assert_eq!(kinds.len(), made.len());
            for (name, kind) in &made {
                assert!(kinds.contains(&((*name).to_owned(), *kind)), "{name}");
            }
            let fifo = locate_itself(root, "tree/fifo").unwrap();
            rename_as(
                &fifo,
                &locate_itself(root, "moved").unwrap(),
                OnExisting::Fail,
            )
            .unwrap();
            change()
                .unlink(&locate_itself(root, "moved").unwrap())
                .unwrap();
            let tree = locate_itself(root, "tree").unwrap();
            change()
                .remove_tree(&tree, &|| false, sandbox::OnFault::Stop, &|_| {})
                .unwrap();
            assert_eq!(fs::read_dir(inside).unwrap().count(), 0);
        });
    });
}
