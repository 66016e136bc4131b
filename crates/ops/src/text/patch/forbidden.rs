//! What a patch can ask for besides changing lines, which is refused by name.

use memchr::memchr;

use crate::text::excerpt;

/// What git's extended headers ask for beyond changing lines, in words.
pub(super) fn forbidden(line: &[u8]) -> Option<String> {
    const PREFIXES: [(&[u8], &str); 12] = [
        (b"rename from ", "a rename (`rename from`)"),
        (b"rename to ", "a rename (`rename to`)"),
        (b"copy from ", "a copy (`copy from`)"),
        (b"copy to ", "a copy (`copy to`)"),
        (b"old mode ", "a change of mode (`old mode`)"),
        (b"new mode ", "a change of mode (`new mode`)"),
        (
            b"deleted file mode ",
            "deleting the file (`deleted file mode`)",
        ),
        (b"GIT binary patch", "binary content (`GIT binary patch`)"),
        (b"Binary files ", "binary content (`Binary files … differ`)"),
        (b"diff --cc ", "a combined diff (`diff --cc`)"),
        (
            b"*** Delete File",
            "deleting a file (`*** Delete File`; use remove_file)",
        ),
        (b"*** Move to", "a rename (`*** Move to`; use move)"),
    ];
    let named = PREFIXES.iter().find(|(prefix, _)| line.starts_with(prefix));
    named
        .map(|(_, name)| (*name).to_owned())
        .or_else(|| forbidden_mode(line))
}

/// A mode that is not that of a plain file, as in `new file mode 120000` or `index 1234..5678 120000`.
fn forbidden_mode(line: &[u8]) -> Option<String> {
    let mode = match line.strip_prefix(b"new file mode ") {
        Some(mode) => mode,
        None => line.strip_prefix(b"index ").and_then(mode_of_index)?,
    };
    match mode.trim_ascii() {
        b"100644" | b"100755" => None,
        b"120000" => Some("a symbolic link (mode 120000)".to_owned()),
        other => Some(format!("mode {}", excerpt(other, 20))),
    }
}

/// The mode in `<hash>..<hash> <mode>`.
fn mode_of_index(rest: &[u8]) -> Option<&[u8]> {
    let space = memchr(b' ', rest.trim_ascii_end())?;
    let (hashes, mode) = rest.split_at_checked(space)?;
    memchr::memmem::find(hashes, b"..").map(|_| mode)
}
