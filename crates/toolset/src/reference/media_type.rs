//! What a file is by the end of its name, and how a URI names it.

use std::fmt::Write as _;

/// The MIME type that the end of a name stands for.
pub(super) fn by_name(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    // A leading dot marks a hidden name, not an extension.
    let ending = name.rsplit_once('.').filter(|(front, _)| !front.is_empty());
    let ending = ending.map(|(_, ending)| ending.to_lowercase());
    match ending.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("bmp") => "image/bmp",
        Some("svg") => "image/svg+xml",
        Some("mp3") => "audio/mpeg",
        Some("wav") => "audio/wav",
        Some("ogg") => "audio/ogg",
        Some("flac") => "audio/flac",
        _ => "application/octet-stream",
    }
}

/// The URI of a file on the host.
pub(super) fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'#'
                    | b'%'
                    | b'<'
                    | b'>'
                    | b'?'
                    | b'['
                    | b']'
                    | b'`'
                    | b'{'
                    | b'}'
                    | b'|'
                    | b'~'
                    | b'^'
                    | b'\\'
            );
        if is_plain {
            uri.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        for (path, kind) in [
            ("/a/b.PNG", "image/png"),
            ("/a.png/b", "application/octet-stream"),
            ("/a/.png", "application/octet-stream"),
            ("/a/x.tar.ogg", "audio/ogg"),
        ] {
            assert_eq!(by_name(path), kind, "{path}");
        }
    }

    #[test]
    fn a_uri_has_no_blanks() {
        assert_eq!(file_uri("/a b/é%?.bin"), "file:///a%20b/%C3%A9%25%3F.bin");
    }
}
