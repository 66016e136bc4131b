//! The content of compressed files, decompressed as it is read.
//!
//! A small file can unfold to any size and can be made to break a decoder. So nothing here holds more than a decoder's
//! window, callers bound what they read, and a decoder that panics is a damaged file.

use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sandbox::OpenFile;

use crate::context::Context;
use crate::error::{Error, Result};

/// The most bytes that are decompressed into memory.
pub(crate) const UNFOLDED_MAX: u64 = 64 * 1024 * 1024;
/// The largest window of a zstd frame: the size that the format recommends every decoder to support.
const WINDOW_MAX: u64 = 8 * 1024 * 1024;
/// How much is read between two checks of the deadline.
const STEP: usize = 1024 * 1024;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// By the end of a file's name.
    pub(crate) fn by_name(name: &[u8]) -> Option<Compression> {
        let extension = name.rsplit(|&byte| byte == b'.').next()?;
        if extension.eq_ignore_ascii_case(b"gz") {
            Some(Compression::Gzip)
        } else if extension.eq_ignore_ascii_case(b"zst") {
            Some(Compression::Zstd)
        } else {
            None
        }
    }

    /// By the first bytes of a file.
    fn by_content(beginning: &[u8]) -> Option<Compression> {
        match beginning {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Compression::Zstd),
            // A skippable frame: some programs begin a file with one.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// The decompressed content.
    pub(crate) fn reader(self, file: &OpenFile) -> Box<dyn Read + '_> {
        let source = BufReader::new(FileCursor { file, position: 0 });
        match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(source)),
            Compression::Zstd => Box::new(ZstdFrames::new(source)),
        }
    }
}

/// Replaces the content of a compressed file by its decompressed content; any other file stays as it is.
pub(crate) fn decompressed(file: OpenFile, context: &Context) -> Result<OpenFile> {
    let mut beginning = [0; 4];
    let length = crate::read_at::read_at(&file, &mut beginning, 0)?;
    match Compression::by_content(beginning.get(..length).unwrap_or_default()) {
        Some(compression) => {
            let content = unfold(&file, compression, context)?;
            Ok(file.with_content(content))
        }
        None => Ok(file),
    }
}

fn unfold(file: &OpenFile, compression: Compression, context: &Context) -> Result<Vec<u8>> {
    let mut reader = compression.reader(file);
    let mut content = Vec::new();
    loop {
        context.cancel.check_and_give_way()?;
        let before = content.len();
        let read = reader.by_ref().take(STEP as u64).read_to_end(&mut content);
        read.map_err(|error| Error::Io {
            operation: "decompress",
            path: file.path.clone(),
            reason: error.to_string(),
        })?;
        if content.len() as u64 > UNFOLDED_MAX {
            return Err(Error::Unfolds {
                path: file.path.clone(),
                most: UNFOLDED_MAX,
            });
        }
        if content.len() == before {
            return Ok(content);
        }
        context.take_room((content.len() - before) as u64)?;
    }
}

/// A file that is read from its beginning on.
struct FileCursor<'a> {
    file: &'a OpenFile,
    position: u64,
}

impl Read for FileCursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// The frames of a zstd file one after the other. The library reads one frame.
struct ZstdFrames<R> {
    decoder: FrameDecoder,
    source: R,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> ZstdFrames<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX);
        ZstdFrames {
            decoder,
            source,
            is_in_frame: false,
        }
    }

    fn read_on(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.enter_frame()? {
                return Ok(0);
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if self.decoder.is_finished() {
                self.leave_frame()?;
            } else {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.source, one)
                    .map_err(io::Error::other)?;
            }
        }
    }

    /// Tells whether there is another frame.
    fn enter_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = &mut self.source.by_ref().take(u64::from(length));
                    io::copy(skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn leave_frame(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        let said = self.decoder.get_checksum_from_data();
        if said.is_some() && said != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("the checksum does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Security: a program that can write a file must not be able to end a search by it.
        let read = catch_unwind(AssertUnwindSafe(|| self.read_on(buffer)));
        read.unwrap_or_else(|_| Err(io::Error::other("the file breaks the decoder")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Wanted;
    use crate::testing::{Tree, context};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(bytes, level)
    }

    fn content(stored: &[u8]) -> Result<Vec<u8>> {
        let tree = Tree::new();
        tree.file("a", stored);
        let open = tree.place("a").open_file(Wanted::File)?;
        let open = decompressed(open, &context())?;
        let most = usize::try_from(open.metadata.size).unwrap();
        let mut bytes = vec![0; most];
        let read = open.read_at(&mut bytes, 0).unwrap();
        assert_eq!(read, most);
        Ok(bytes)
    }

    #[test]
    fn members_and_frames_are_put_together() {
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        for stored in [
            [gzip(b"one "), gzip(b""), gzip(b"two")].concat(),
            [zstd(b"one "), skipped.clone(), zstd(b"two")].concat(),
            [skipped, zstd(b"one two")].concat(),
        ] {
            assert_eq!(content(&stored).unwrap(), b"one two");
        }
        assert_eq!(content(b"plain").unwrap(), b"plain");
        assert_eq!(content(b"").unwrap(), b"");
    }

    #[test]
    fn bombs_are_refused_and_hold_little() {
        let zeros = vec![0; UNFOLDED_MAX as usize + 1];
        for stored in [gzip(&zeros), zstd(&zeros)] {
            assert!(stored.len() < 1024 * 1024);
            let refused = content(&stored).unwrap_err();
            assert!(matches!(refused, Error::Unfolds { .. }), "{refused}");
        }
        // A frame that asks for a window of 128 MiB.
        let wide = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00];
        let refused = content(&wide).unwrap_err().to_string();
        assert!(refused.contains("window"), "{refused}");
    }

    #[test]
    fn names_tell_the_compression() {
        for (name, expected) in [
            ("a.log.gz", Some(Compression::Gzip)),
            ("a.GZ", Some(Compression::Gzip)),
            ("b.zst", Some(Compression::Zstd)),
            ("agz", None),
            ("a.gz.txt", None),
        ] {
            assert_eq!(Compression::by_name(name.as_bytes()), expected, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_damaged_is_an_error_or_the_content(
            text in proptest::collection::vec(any::<u8>(), 0..4000),
            at in any::<proptest::sample::Index>(),
            by in 1_u8..,
            kept in any::<proptest::sample::Index>(),
        ) {
            for whole in [gzip(&text), zstd(&text)] {
                prop_assert_eq!(&content(&whole).unwrap(), &text);
                let mut damaged = whole.clone();
                damaged[at.index(whole.len())] ^= by;
                // What is in the header's comment or name may change nothing. Nothing here may panic.
                let _ = content(&damaged);
                let cut = &whole[..kept.index(whole.len())];
                if let Ok(content) = content(cut) {
                    prop_assert!(cut.len() < 4 && content == cut);
                }
            }
        }
    }
}
