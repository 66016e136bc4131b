//! A test that starts itself once more as another process, to be killed or locked in.

use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "SANDBOX_TEST_CHILD";

/// The directory this process was started for, if it is such a child.
pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// The command that runs one test of this binary as a child for a directory.
pub(crate) fn command(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, directory);
    command
}
