//! Images and sound, which clients show to models that can see or hear.

use rmcp::model::{JsonObject, MetaObject};
use serde_json::Value;

/// A block of a reply that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Its MIME type.
    pub mime_type: &'static str,
    /// Its bytes as base64.
    pub data: String,
    /// What names it, if it is sent as an embedded resource.
    pub uri: Option<String>,
}

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// To be seen.
    Image,
    /// To be heard.
    Audio,
}

/// Bytes that look like an image or sound from their beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MediaFacts {
    /// What it is.
    pub(crate) kind: MediaKind,
    /// Its MIME type.
    pub(crate) mime_type: &'static str,
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Width and height of an image.
    pub(crate) pixels: Option<(u32, u32)>,
}

/// Tells what image or sound bytes are; nothing if they are neither.
pub(crate) fn recognized(bytes: &[u8]) -> Option<MediaFacts> {
    let image = |mime_type, name, pixels| MediaFacts {
        kind: MediaKind::Image,
        mime_type,
        name,
        pixels,
    };
    let audio = |mime_type, name| MediaFacts {
        kind: MediaKind::Audio,
        mime_type,
        name,
        pixels: None,
    };
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => {
            image("image/png", "PNG", png_pixels(bytes))
        }
        [0xff, 0xd8, 0xff, ..] => image("image/jpeg", "JPEG", jpeg_pixels(bytes)),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => {
            image("image/gif", "GIF", gif_pixels(bytes))
        }
        _ if is_riff(bytes, b"WEBP") => image("image/webp", "WebP", webp_pixels(bytes)),
        _ if is_riff(bytes, b"WAVE") => audio("audio/wav", "WAV"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => audio("audio/mpeg", "MP3"),
        [b'O', b'g', b'g', b'S', ..] => audio("audio/ogg", "Ogg"),
        [b'f', b'L', b'a', b'C', ..] => audio("audio/flac", "FLAC"),
        _ => return None,
    })
}

/// Whether bytes are a RIFF container of this kind.
fn is_riff(bytes: &[u8], kind: &[u8; 4]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(kind)
}

fn png_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((big_endian(bytes, 16, 4)?, big_endian(bytes, 20, 4)?))
}

fn gif_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((little_endian(bytes, 6, 2)?, little_endian(bytes, 8, 2)?))
}

/// The size stands in the first frame header; segments before it are skipped by their lengths.
fn jpeg_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let (height, width) = (big_endian(bytes, at + 5, 2)?, big_endian(bytes, at + 7, 2)?);
            return Some((width, height));
        }
        let length = big_endian(bytes, at + 2, 2)?.max(2);
        at = at.checked_add(2 + length as usize)?;
    }
}

fn webp_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((
            little_endian(bytes, 24, 3)? + 1,
            little_endian(bytes, 27, 3)? + 1,
        )),
        b"VP8L" => {
            let packed = little_endian(bytes, 21, 4)?;
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => Some((
            little_endian(bytes, 26, 2)? & 0x3fff,
            little_endian(bytes, 28, 2)? & 0x3fff,
        )),
        _ => None,
    }
}

fn big_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(length)?)?;
    Some(
        digits
            .iter()
            .fold(0, |sum, byte| (sum << 8) | u32::from(*byte)),
    )
}

fn little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(length)?)?;
    let digits = digits.iter().rev();
    Some(digits.fold(0, |sum, byte| (sum << 8) | u32::from(*byte)))
}

/// The `_meta` of a tool whose replies can be large: Claude Code writes results over 50,000 characters to a file unless
/// it is told to expect more.
pub(crate) fn large_replies() -> MetaObject {
    let most = Value::from(500_000);
    let key = "anthropic/maxResultSizeChars".to_owned();
    MetaObject(JsonObject::from_iter([(key, most)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_of_images_are_read_from_their_beginning() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 2, 128, 0, 0, 1, 224, 8, 2]);
        let gif = b"GIF89a\x80\x02\xe0\x01".to_vec();
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x01\xe0\x02\x80".to_vec();
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0x7f, 2, 0, 0xdf, 1, 0]);
        for (bytes, name) in [(png, "PNG"), (gif, "GIF"), (jpeg, "JPEG"), (webp, "WebP")] {
            let facts = recognized(&bytes).expect(name);
            assert_eq!(facts.name, name);
            assert_eq!(facts.pixels, Some((640, 480)));
        }
        assert_eq!(
            recognized(b"RIFF\0\0\0\0WAVEfmt ").map(|facts| facts.kind),
            Some(MediaKind::Audio)
        );
        assert_eq!(recognized(b"plain text"), None);
    }

    proptest! {
        #[test]
        fn no_beginning_is_too_odd(
            kind in 0usize..5,
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let starts: [&[u8]; 5] = [
                b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"RIFF....WEBPVP8L", b"",
            ];
            let bytes = [starts[kind], rest.as_slice()].concat();
            let _ = recognized(&bytes);
        }
    }
}
