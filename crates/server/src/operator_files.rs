//! The operator's own files, outside every root: the config, tokens, certificates, the audit file.
//!
//! Only these files are opened by a path string, and no client ever names one.
#![expect(
    clippy::disallowed_methods,
    reason = "the operator's files are outside every root, so the sandbox does not apply"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The largest size that such a file may have.
const MAX_SIZE: u64 = 1024 * 1024;

/// The directories in which this server may keep persistent state, the first choice first.
pub(crate) fn state_directories() -> Vec<PathBuf> {
    // Tests leave the user's own directory alone.
    if cfg!(test) {
        return vec![std::env::temp_dir().join("mcp-filesystem-tests-state")];
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    // systemd gives several with colons between them.
    let given = variable("STATE_DIRECTORY");
    let given = given.and_then(|all| std::env::split_paths(&all).next());
    let of_user = variable("XDG_STATE_HOME").map(PathBuf::from);
    let of_home = variable("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let own = of_user
        .or(of_home)
        .map(|state| state.join("mcp-filesystem"));
    given
        .into_iter()
        .chain(own)
        .filter(|path| path.is_absolute())
        .collect()
}

/// The user's home directory, which clients call `~`.
pub(crate) fn home_directory() -> Option<String> {
    let home = std::env::var("HOME").ok()?;
    let home = home.trim_end_matches('/');
    home.starts_with('/').then(|| home.to_owned())
}

/// Reads a regular file of at most 1 MiB of UTF-8. Returns its text and its mode bits.
pub(crate) fn read(path: &Path) -> io::Result<(String, u32)> {
    let (bytes, mode) = read_bytes(path)?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((text, mode))
}

/// Reads a regular file of at most 1 MiB. Returns its bytes and its mode bits.
pub(crate) fn read_bytes(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    // Check the type first: opening a FIFO would block.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other(format!("larger than {MAX_SIZE} bytes")));
    }
    Ok((bytes, metadata.mode() & 0o7777))
}

/// The real path and the mode bits of a file.
pub(crate) fn look_at(path: &Path) -> io::Result<(PathBuf, u32)> {
    let real_path = std::fs::canonicalize(path)?;
    Ok((real_path, std::fs::metadata(path)?.mode() & 0o7777))
}

/// Tells whether there is a directory.
pub(crate) fn is_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_dir())
}

/// The user that this process runs as.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Tells whether this process runs as root, which permission bits do not bind.
pub(crate) fn is_superuser() -> bool {
    own_user() == 0
}

/// Opens a regular file of any size for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Check the type first: opening a FIFO would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// Opens a regular file for appending and reading. A missing file is created, readable by its owner only.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    options.create(true).mode(0o600).open(path)
}

/// Tells whether a file could be opened by [`append`], without making it.
pub(crate) fn may_append(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => {
            let mut options = OpenOptions::new();
            options.read(true).append(true).open(path).map(drop)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => may_make_files(directory_of(path)),
        Err(error) => Err(error),
    }
}

fn may_make_files(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, directory, wanted, AtFlags::EACCESS)?;
    Ok(())
}

/// Opens a file in `/proc/self` by its name; `None` if there is no `/proc`.
pub(crate) fn open_own_proc(name: &str) -> Option<File> {
    File::open(Path::new("/proc/self").join(name)).ok()
}

/// Reads at most `length` bytes from a position on.
pub(crate) fn read_from(file: &File, position: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = file;
    // Lines are appended, so the position is not shared.
    file.seek(SeekFrom::Start(position))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Locks a file against other processes that lock it. False if the file system has no locks.
pub(crate) fn lock(file: &File) -> bool {
    file.lock().is_ok()
}

/// Ends [`lock`].
pub(crate) fn unlock(file: &File) {
    // It also ends with the process.
    let _ = file.unlock();
}

/// Reserves room for `length` bytes from a position on, without making the file longer. If the file system cannot do
/// that, a full disk is found on writing.
pub(crate) fn keep_room(file: &File, position: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::KEEP_SIZE, position, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(()),
        kept => Ok(kept?),
    }
}

/// The files that looking up a host's name reads, as far as they exist. A file that programs replace from time to time is
/// named by its directory, unless that is `/etc` with everything in it.
pub(crate) fn resolver_files() -> Vec<PathBuf> {
    let names = [
        "resolv.conf",
        "hosts",
        "nsswitch.conf",
        "host.conf",
        "gai.conf",
    ];
    let etc = Path::new("/etc");
    let files = names
        .iter()
        .filter_map(|name| std::fs::canonicalize(etc.join(name)).ok());
    let files = files.map(|file| match file.parent() {
        Some(directory) if directory != etc => directory.to_owned(),
        _ => file,
    });
    files.collect()
}

/// The directory of a file. It has to stay reachable if the file may be replaced by a new one.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The system's message, without the error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string().lines().collect::<Vec<_>>().join(" "),
    }
}
