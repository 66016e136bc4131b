//! What the interleaving test plays with: trees, an attacker's moves, ways to write a path, operations.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::support::{change, locate, locate_itself, rename_as, stage, write};
use crate::syscall;
use crate::{
    Change, ContentCopy, CopyStep, Dir, Durability, Error, LinkTarget, Metadata, Name, OnExisting,
    OnFault, Parents, RelPath, Root, Sharing, WalkOptions, Walker,
};

/// The content of every file outside; nothing that is read may hold it.
pub(super) const SECRET: &[u8] = b"SECRET";
/// A name in every directory outside; no listing may show it.
pub(super) const SECRET_NAME: &str = "secret-name";
/// What an attacker moved out of the root, or will move into it: not outside in the sense of the test.
pub(super) const EXEMPT: [&str; 2] = ["moved", "twin"];
/// How deep the deep tree is: deeper than the directories a walk keeps open.
const LEVELS: usize = 20;

/// A tree, the moves against it, and what is done in it.
pub(super) struct Scene {
    /// Makes what is outside, which no run may change.
    pub(super) build_outside: fn(&Path),
    /// Makes what is inside, before each run.
    pub(super) build: fn(&Path),
    pub(super) moves: &'static [Move],
    pub(super) shapes: &'static [Shape],
    pub(super) operations: &'static [(&'static str, Operation)],
}

pub(super) type Operation = fn(&Root, &Shape, &mut Seen) -> Result<(), Error>;

/// What an attacker does in one step, and undoes in one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    Swap(&'static str, &'static str),
    Rename(&'static str, &'static str),
}

impl Move {
    pub(super) fn make(self, base: &Path) {
        match self {
            Move::Swap(a, b) => rename(base, a, b, RenameFlags::EXCHANGE),
            Move::Rename(from, to) => rename(base, from, to, RenameFlags::NOREPLACE),
        }
    }

    pub(super) fn undo(self, base: &Path) {
        match self {
            Move::Swap(a, b) => rename(base, a, b, RenameFlags::EXCHANGE),
            Move::Rename(from, to) => rename(base, to, from, RenameFlags::NOREPLACE),
        }
    }
}

/// A move that is not possible any more, because the operation removed its object, is none.
fn rename(base: &Path, from: &str, to: &str, flags: RenameFlags) {
    let _ = renameat_with(CWD, base.join(from), CWD, base.join(to), flags);
}

/// A way to write the path of the directory and of the file in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) dir: &'static str,
    pub(super) file: &'static str,
}

/// What an operation learnt.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    pub(super) names: Vec<String>,
    pub(super) inodes: Vec<u64>,
}

impl Seen {
    fn file(&mut self, metadata: &Metadata) {
        self.inodes.push(metadata.inode);
    }

    fn content(&mut self, mut file: &fs::File) {
        file.read_to_end(&mut self.bytes).unwrap();
        self.file(&syscall::stat_unchecked(file.as_fd()).unwrap());
    }

    fn dir(&mut self, dir: &Dir) -> Result<(), Error> {
        self.file(&dir.metadata()?);
        for entry in dir.entries()? {
            self.names.push(entry.name.shown().into_owned());
            if let Ok(metadata) = dir.stat(&entry.name) {
                self.file(&metadata);
            }
        }
        Ok(())
    }
}

pub(super) const SHALLOW: Scene = Scene {
    build_outside: build_shallow_outside,
    build: build_shallow,
    moves: &[
        Move::Swap("inside/dir", "inside/spare/outside"),
        Move::Swap("inside/dir/sub", "inside/spare/outside-sub"),
        Move::Swap("inside/dir/sub", "inside/spare/relative"),
        Move::Swap("inside/dir/sub", "inside/spare/real"),
        Move::Swap("inside/dir/sub", "elsewhere/twin"),
        Move::Swap("inside/dir/sub/deep", "inside/spare/outside-sub"),
        Move::Swap("inside/dir/sub/file", "inside/spare/outside-file"),
        Move::Swap("inside/dir/sub/file", "inside/spare/outside-new"),
        Move::Swap("inside/dir/sub/file", "inside/spare/outside-sub"),
        Move::Swap("inside/link", "inside/spare/outside-sub"),
        Move::Swap("inside/link", "inside/spare/dangling"),
        Move::Rename("inside/dir", "elsewhere/moved"),
        Move::Rename("inside/dir/sub", "elsewhere/moved"),
        Move::Rename("inside/dir/sub/deep", "elsewhere/moved"),
        Move::Rename("inside/dir/sub/file", "elsewhere/moved"),
        Move::Rename("inside/dir/sub/file", "inside/spare/hidden"),
        Move::Rename("inside/spare/outside-file", "inside/dir/sub/new"),
        Move::Rename("inside/spare/outside-new", "inside/dir/sub/new"),
        Move::Rename("inside/spare/outside-sub", "inside/dir/sub/made"),
    ],
    shapes: &[
        Shape {
            dir: "dir/sub",
            file: "dir/sub/file",
        },
        Shape {
            dir: "link",
            file: "link/file",
        },
        Shape {
            dir: "absolute",
            file: "filelink",
        },
        Shape {
            dir: "dir/sub/../sub",
            file: "dir/sub/../sub/file",
        },
        Shape {
            dir: "dir/sub/deep/..",
            file: "dir/sub/deep/../../sub/file",
        },
        Shape {
            dir: "zz/../dir/sub",
            file: "zz/yy/../../dir/sub/file/../file",
        },
        Shape {
            dir: "up",
            file: "up/file",
        },
        Shape {
            dir: "../inside/dir/sub/",
            file: "../inside/dir/./sub//file",
        },
    ],
    operations: &[
        ("read", read),
        ("open", open),
        ("entry", entry),
        ("list", list),
        ("in memory", in_memory),
        ("stat", stat),
        ("create", create),
        ("create only", create_only),
        ("replace", replace),
        ("append", append),
        ("append new", append_new),
        ("mkdir", mkdir),
        ("rename from", rename_from),
        ("rename to", rename_to),
        ("rename directory", rename_directory),
        ("unlink", unlink),
        ("remove tree", remove_tree),
        ("walk", walk),
        ("link target", link_target),
        ("copy", copy),
        ("make link", make_link),
        ("replace by a link", replace_by_link),
        ("stage a tree", stage_tree),
        ("hide a tree", hide_tree),
        ("sweep", sweep),
    ],
};

/// The same with `..` on the way only.
pub(super) const GOING_UP: Scene = Scene {
    shapes: &[Shape {
        dir: "dir/sub/../sub",
        file: "dir/sub/../sub/file",
    }],
    ..SHALLOW
};

pub(super) const DEEP: Scene = Scene {
    build_outside: build_deep_outside,
    build: build_deep,
    moves: &[
        Move::Rename("inside/deep/d1/d2", "elsewhere/moved"),
        Move::Rename("inside/deep/d1", "elsewhere/moved"),
        Move::Swap("inside/deep/d1/b-victim", "inside/outside-victim"),
    ],
    shapes: &[Shape {
        dir: "deep",
        file: "deep/d1",
    }],
    operations: &[("remove tree", remove_tree), ("walk", walk)],
};

fn make_dirs(base: &Path, dirs: &[&str]) {
    for dir in dirs {
        fs::create_dir(base.join(dir)).unwrap();
    }
}

fn make_files(base: &Path, files: &[&str], content: &[u8]) {
    for file in files {
        fs::write(base.join(file), content).unwrap();
    }
}

fn build_shallow_outside(base: &Path) {
    let dirs = [
        "outside",
        "outside/sub",
        "outside/sub/deep",
        "elsewhere",
        "elsewhere/sub",
    ];
    let files = [
        "outside/secret-name",
        "outside/file",
        "outside/x",
        "outside/sub/secret-name",
        "outside/sub/file",
        "outside/sub/mine",
        "outside/sub/deep/x",
        "outside/sub/deep/secret-name",
        "elsewhere/secret-name",
        "elsewhere/file",
        "elsewhere/sub/file",
        "elsewhere/sub/secret-name",
    ];
    make_dirs(base, &dirs);
    make_files(base, &files, SECRET);
}

fn build_shallow(base: &Path) {
    let dirs = [
        "inside",
        "inside/dir",
        "inside/dir/sub",
        "inside/dir/sub/deep",
        "inside/spare",
        "inside/spare/real",
        "inside/spare/real/deep",
        "elsewhere/twin",
        "elsewhere/twin/deep",
    ];
    let files = [
        "inside/dir/sub/file",
        "inside/dir/sub/deep/x",
        "inside/spare/mine",
        "inside/spare/real/file",
        "elsewhere/twin/file",
        "elsewhere/twin/deep/x",
    ];
    make_dirs(base, &dirs);
    make_files(base, &files, b"inside");
    let link = |target: &Path, name: &str| symlink(target, base.join("inside").join(name)).unwrap();
    link(Path::new("dir/sub"), "link");
    link(&base.join("inside/dir/sub"), "absolute");
    link(Path::new("dir/sub/../sub"), "up");
    link(Path::new("dir/sub/file"), "filelink");
    link(&base.join("outside"), "spare/outside");
    link(&base.join("outside/sub"), "spare/outside-sub");
    link(&base.join("outside/sub/file"), "spare/outside-file");
    link(&base.join("outside/sub/new"), "spare/outside-new");
    link(Path::new("../../outside/sub"), "spare/relative");
    link(Path::new("nowhere"), "spare/dangling");
}

fn build_deep_outside(base: &Path) {
    let dirs = [
        "outside",
        "elsewhere",
        "elsewhere/a-victim",
        "elsewhere/b-victim",
    ];
    let files = [
        "outside/secret-name",
        "outside/x",
        "elsewhere/a-victim/x",
        "elsewhere/a-victim/secret-name",
        "elsewhere/b-victim/x",
        "elsewhere/b-victim/secret-name",
    ];
    make_dirs(base, &dirs);
    make_files(base, &files, SECRET);
}

fn build_deep(base: &Path) {
    // A victim made before and one made after the way down, so that one is still to be done on the way up.
    let before = [
        "inside",
        "inside/deep",
        "inside/deep/d1",
        "inside/deep/d1/a-victim",
    ];
    make_dirs(base, &before);
    let mut chain = base.join("inside/deep/d1");
    for level in 2..=LEVELS {
        chain.push(format!("d{level}"));
        fs::create_dir(&chain).unwrap();
    }
    make_dirs(base, &["inside/deep/d1/b-victim"]);
    let files = ["inside/deep/d1/a-victim/x", "inside/deep/d1/b-victim/x"];
    make_files(base, &files, b"inside");
    symlink(base.join("outside"), base.join("inside/outside-victim")).unwrap();
}

fn in_dir(shape: &Shape, name: &str) -> String {
    format!("{}/{name}", shape.dir)
}

fn read(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    let opened = locate(root, shape.file)?.open_file()?;
    seen.content(&opened.file);
    Ok(())
}

fn open(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    let opened = root.open_file(&RelPath::parse(shape.file)?)?;
    seen.content(&opened.file);
    Ok(())
}

fn in_memory(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    if let Some(mut opened) = root.try_open_inline(&RelPath::parse(shape.file)?) {
        opened.try_load_inline(1024);
        seen.content(&opened.file);
    }
    Ok(())
}

fn entry(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    let dir = locate(root, shape.dir)?.open_dir()?;
    let place = dir.locate(root, &Name::new(b"file").unwrap())?;
    seen.file(&place.require()?);
    seen.content(&place.open_file()?.file);
    Ok(())
}

fn list(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    seen.dir(&locate(root, shape.dir)?.open_dir()?)
}

fn stat(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    seen.file(&locate(root, shape.dir)?.require()?);
    seen.file(&locate(root, shape.file)?.require()?);
    seen.file(&locate_itself(root, shape.file)?.require()?);
    Ok(())
}

fn create(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    write(root, &in_dir(shape, "new"), b"ours")
}

fn create_only(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let place = locate(root, &in_dir(shape, "new"))?;
    let mut staged = change().stage(&place, OnExisting::Fail, Parents::Create)?;
    staged.write_all(b"ours").unwrap();
    staged.commit().map(drop)
}

fn replace(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    write(root, shape.file, b"ours")
}

fn append(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let place = locate(root, shape.file)?;
    change().append(&place, b"ours", Parents::Create).map(drop)
}

fn append_new(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let place = locate(root, &in_dir(shape, "new"))?;
    change().append(&place, b"ours", Parents::Create).map(drop)
}

fn mkdir(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let place = locate(root, &in_dir(shape, "made/new"))?;
    Change::begin(Durability::Fsync).make_dirs(&place).map(drop)
}

fn rename_from(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let from = locate_itself(root, shape.file)?;
    rename_as(
        &from,
        &locate_itself(root, "spare/renamed/new")?,
        OnExisting::Fail,
    )
}

fn rename_to(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let from = locate_itself(root, "spare/mine")?;
    rename_as(
        &from,
        &locate_itself(root, &in_dir(shape, "mine"))?,
        OnExisting::Replace,
    )
}

fn rename_directory(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let from = locate(root, shape.dir)?;
    rename_as(
        &from,
        &locate_itself(root, "spare/renamed")?,
        OnExisting::Fail,
    )
}

fn unlink(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    change().unlink(&locate_itself(root, shape.file)?)
}

fn remove_tree(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let tree = locate(root, shape.dir)?;
    change()
        .remove_tree(&tree, &|| false, OnFault::Collect, &|_| {})
        .map(drop)
}

fn walk(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    let dir = locate(root, shape.dir)?.open_dir()?;
    let mut walker = Walker::new(dir, WalkOptions::default());
    while let Some(item) = walker.next(&mut |_| true) {
        let Ok(item) = item else { continue };
        seen.names.push(item.name.shown().into_owned());
        if let Ok(opened) = item.dir.open_file(&item.name) {
            seen.content(&opened.file);
        }
    }
    Ok(())
}

fn link_target(root: &Root, shape: &Shape, seen: &mut Seen) -> Result<(), Error> {
    for path in ["link", "absolute", "filelink", shape.file] {
        let place = locate_itself(root, path)?;
        if let Ok(LinkTarget::Inside { metadata, .. }) = place.link_target() {
            seen.file(&metadata);
        }
    }
    Ok(())
}

fn copy(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let source = locate(root, shape.file)?.open_file()?;
    let mut staged = stage(&locate(root, &in_dir(shape, "new"))?)?;
    staged.copy_mode(&source);
    let (mut content, sharing) = (ContentCopy::default(), Sharing::default());
    while content.step(&source, &staged, &sharing)? != CopyStep::Finished {}
    staged.commit().map(drop)
}

fn make_link(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let dir = locate(root, shape.dir)?.open_dir()?;
    change().make_link_in(&dir, &Name::new(b"new").unwrap(), b"file")
}

fn replace_by_link(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let dir = locate(root, shape.dir)?.open_dir()?;
    change().replace_by_link(&dir, &Name::new(b"file").unwrap(), b"new")
}

fn stage_tree(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let dir = locate(root, shape.dir)?.open_dir()?;
    let (name, file) = (Name::new(b"new").unwrap(), Name::new(b"inner").unwrap());
    let staging = change().stage_tree(&dir, &name, 0o755)?;
    let mut staged = change().stage_in(staging.top(), &file, OnExisting::Fail)?;
    staged
        .write_all(b"text")
        .map_err(crate::copy_content::failed)?;
    staged.commit()?;
    staging.appear_as(&name, OnExisting::Fail)
}

fn hide_tree(root: &Root, shape: &Shape, _: &mut Seen) -> Result<(), Error> {
    let hidden = change().hide_tree(&locate(root, shape.dir)?)?;
    hidden.discard(&|| false)
}

fn sweep(root: &Root, _: &Shape, _: &mut Seen) -> Result<(), Error> {
    root.sweep_leftovers(&|| false);
    Ok(())
}
