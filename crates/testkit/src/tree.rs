//! A temporary directory with the files that a test needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// How much of a big file is written at once.
const BLOCK: usize = 64 * 1024;

/// A temporary directory that is removed when it is dropped.
#[derive(Debug)]
pub struct Tree {
    directory: TempDir,
    path: PathBuf,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Makes an empty directory.
    pub fn new() -> Tree {
        Tree::in_directory(&std::env::temp_dir())
    }

    /// The directory's own name: what a root is called that is given on the command line.
    pub fn name(&self) -> &str {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.expect("a temporary directory has a name")
    }

    /// Makes an empty directory in memory if possible, for tests that change many files.
    pub fn in_memory() -> Tree {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Tree::in_directory(memory)
        } else {
            Tree::new()
        }
    }

    fn in_directory(place: &Path) -> Tree {
        let directory = tempfile::Builder::new()
            .prefix("tree-")
            .tempdir_in(place)
            .expect("a temp dir");
        let path = directory.path().canonicalize().expect("its real path");
        Tree { directory, path }
    }

    /// The directory's real path on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The host path of something in the tree.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.join(path)
    }

    /// Adds a file; its parents are made.
    #[must_use]
    pub fn file(self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Tree {
        self.write(path, content);
        self
    }

    /// Adds a directory; its parents are made.
    #[must_use]
    pub fn dir(self, path: impl AsRef<Path>) -> Tree {
        fs::create_dir_all(self.join(path)).expect("make a directory");
        self
    }

    /// Adds a symbolic link with exactly this text.
    #[must_use]
    pub fn link(self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> Tree {
        symlink(target, self.with_parents(path)).expect("make a link");
        self
    }

    /// Adds another name for an existing file.
    #[must_use]
    pub fn hard_link(self, path: impl AsRef<Path>, existing: impl AsRef<Path>) -> Tree {
        let existing = self.join(existing);
        fs::hard_link(existing, self.with_parents(path)).expect("make a hard link");
        self
    }

    /// Sets the mode of an existing entry.
    #[must_use]
    pub fn mode(self, path: impl AsRef<Path>, mode: u32) -> Tree {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.join(path), mode).expect("set the mode");
        self
    }

    /// Adds a file of `size` bytes whose content differs from block to block.
    #[must_use]
    pub fn big(self, path: impl AsRef<Path>, size: u64) -> Tree {
        let mut file = File::create(self.with_parents(path)).expect("make a big file");
        let mut rest = size;
        for number in 0_u64.. {
            let block = number.to_le_bytes().repeat(BLOCK / 8);
            let part = usize::try_from(rest).map_or(BLOCK, |rest| rest.min(BLOCK));
            file.write_all(&block[..part]).expect("write a big file");
            rest -= part as u64;
            if rest == 0 {
                break;
            }
        }
        self
    }

    /// Adds a file that has a size and no content on disk; reading it gives NUL bytes.
    #[must_use]
    pub fn sparse(self, path: impl AsRef<Path>, size: u64) -> Tree {
        let file = File::create(self.with_parents(path)).expect("make a sparse file");
        file.set_len(size).expect("set its size");
        self
    }

    /// Extends an existing file to this size with a hole.
    #[must_use]
    pub fn stretched(self, path: impl AsRef<Path>, size: u64) -> Tree {
        let file = File::options().write(true).open(self.join(path));
        let file = file.expect("open a file to stretch");
        file.set_len(size).expect("set its size");
        self
    }

    /// Adds directories one inside the other, each called `directory`, with a file in the innermost: more than 400 are
    /// deeper than a path can name.
    #[must_use]
    pub fn deep(self, path: impl AsRef<Path>, levels: usize, content: &str) -> Tree {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let top = self.join(path);
        fs::create_dir_all(&top).expect("make a directory");
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut current = rustix::fs::open(&top, flags, Mode::empty()).expect("open it");
        for _ in 0..levels {
            mkdirat(&current, "directory", Mode::RWXU).expect("make a directory");
            current = openat(&current, "directory", flags, Mode::empty()).expect("open it");
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&current, "file", flags, Mode::RUSR | Mode::WUSR).expect("make a file");
        File::from(file)
            .write_all(content.as_bytes())
            .expect("write it");
        self
    }

    /// Adds a named pipe that nobody writes to.
    #[must_use]
    pub fn pipe(self, path: impl AsRef<Path>) -> Tree {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let kind = rustix::fs::FileType::Fifo;
        let path = self.with_parents(path);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).expect("make a pipe");
        self
    }

    /// Writes a file in a tree that is already in use.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        fs::write(self.with_parents(path), content).expect("write a file");
    }

    /// Adds to the end of an existing file.
    pub fn append(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let file = File::options().append(true).open(self.join(path));
        let mut file = file.expect("open a file to append to");
        std::io::Write::write_all(&mut file, content.as_ref()).expect("append to it");
    }

    /// A file's content as text.
    pub fn text(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(self.bytes(path)).expect("text")
    }

    /// A file's content.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let path = self.join(path);
        fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// The mode of something in the tree, links not followed.
    pub fn mode_of(&self, path: impl AsRef<Path>) -> u32 {
        let metadata = fs::symlink_metadata(self.join(path)).expect("metadata");
        metadata.permissions().mode() & 0o7777
    }

    /// Tells whether an entry of this name exists, even a dangling link.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.join(path)).is_ok()
    }

    /// All entries: path and kind, with a file's content or a link's text. Equal trees have equal
    /// listings.
    pub fn listing(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        list(&self.path, "", &mut found).expect("list the tree");
        found
    }

    /// Removes the tree and returns whether that worked.
    pub fn close(self) -> io::Result<()> {
        self.directory.close()
    }

    fn with_parents(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("make parents");
        path
    }
}

/// Writes a document of the repository.
pub fn write_text(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The text of a file on the host.
pub fn text_of(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// The names in a directory on the host.
pub fn names_in(path: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(path)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", path.display()));
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

fn list(directory: &Path, prefix: &str, found: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        let word = if kind.is_dir() {
            list(&entry.path(), &format!("{name}/"), found)?;
            "directory".to_owned()
        } else if kind.is_symlink() {
            format!("link {}", fs::read_link(entry.path())?.display())
        } else if kind.is_file() {
            let mut content = Vec::new();
            File::open(entry.path())?.read_to_end(&mut content)?;
            format!("file {}", String::from_utf8_lossy(&content))
        } else {
            "special".to_owned()
        };
        found.insert(name, word);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_asked_for() {
        let tree = Tree::new()
            .file("a/b.txt", "text")
            .dir("empty")
            .link("link", "a/b.txt")
            .mode("a/b.txt", 0o640)
            .big("big", 100_000)
            .sparse("sparse", 1 << 40)
            .deep("deep", 3, "text")
            .pipe("pipe");
        assert_eq!(tree.text("deep/directory/directory/directory/file"), "text");
        assert_eq!(tree.text("link"), "text");
        assert_eq!(tree.mode_of("a/b.txt"), 0o640);
        assert_eq!(tree.bytes("big").len(), 100_000);
        assert_ne!(
            tree.bytes("big")[..BLOCK][..8],
            tree.bytes("big")[BLOCK..][..8]
        );
        assert!(tree.has("empty") && !tree.has("nothing"));
    }

    #[test]
    fn listings_tell_trees_apart() {
        let make = |content| Tree::new().file("d/f", content).link("l", "x").listing();
        assert_eq!(make("1"), make("1"));
        assert_ne!(make("1"), make("2"));
        assert_eq!(make("1")["l"], "link x");
        assert_eq!(make("1")["d"], "directory");
    }
}
