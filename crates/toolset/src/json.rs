//! Writes JSON exactly as `serde_json` does, at a quarter of the cost if most of it is text.
//!
//! Replies are mostly the text of files. `serde_json` looks at such text byte by byte; [`escape`] looks at thirty-two bytes
//! at once. Numbers are left to `serde_json`.

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::{Error, Result};

/// How many bytes are examined at once.
const BLOCK: usize = 32;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The bytes that a reply has besides the content of a file, more or less.
const BESIDES_CONTENT: usize = 512;

/// Writes a value as JSON of about so many bytes. These are bytes because looking for mistakes in text that is right takes
/// as long as writing it. Room that is never written to costs no memory; a buffer that grows leaves smaller ones behind.
pub(crate) fn to_vec(value: &impl Serialize, expected: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(expected.max(BESIDES_CONTENT));
    value.serialize(JsonWriter(&mut out))?;
    if expected > BESIDES_CONTENT {
        out.shrink_to_fit();
    }
    Ok(out)
}

/// Writes a text as the inside of a JSON string.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    escape_bytes(text.as_bytes(), out, |_, _| {});
}

/// Writes the bytes of a text as the inside of a JSON string. `escaped` is told each byte that was escaped, and where its
/// escape ends.
pub(crate) fn escape_bytes(text: &[u8], out: &mut Vec<u8>, mut escaped: impl FnMut(u8, usize)) {
    let mut written = 0;
    each_special(text, |place, special| {
        out.extend_from_slice(text.get(written..place).unwrap_or_default());
        push_escaped(special, out);
        escaped(special, out.len());
        written = place + 1;
    });
    out.extend_from_slice(text.get(written..).unwrap_or_default());
}

/// How many bytes a text has as the inside of a JSON string.
pub(crate) fn escaped_length(text: &str) -> usize {
    let mut length = text.len();
    each_special(text.as_bytes(), |_, special| {
        length += match special {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            _ => 5,
        };
    });
    length
}

fn push_escaped(special: u8, out: &mut Vec<u8>) {
    let short = match special {
        b'"' | b'\\' => special,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        control => {
            let digit = |value: u8| HEX.get(usize::from(value & 0xf)).copied();
            let (high, low) = (digit(control >> 4), digit(control));
            out.extend_from_slice(b"\\u00");
            out.extend(high.into_iter().chain(low));
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Finds the bytes that need an escape, in order. They are ASCII, so no character is cut.
fn each_special(bytes: &[u8], mut found: impl FnMut(usize, u8)) {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    let mut place = 0;
    let mut marks = [0; BLOCK];
    for block in blocks {
        // No branch per byte, so that the compiler can use vector instructions.
        for (mark, byte) in marks.iter_mut().zip(block) {
            *mark = u8::from(is_special(*byte));
        }
        let words = marks.as_chunks().0.iter().zip(block.as_chunks::<8>().0);
        for (marked, bytes) in words {
            let mut marked = u64::from_le_bytes(*marked);
            while marked != 0 {
                let at = marked.trailing_zeros() as usize / 8;
                found(place + at, bytes.get(at).copied().unwrap_or_default());
                marked &= marked - 1;
            }
            place += bytes.len();
        }
    }
    for (at, byte) in tail.iter().enumerate() {
        if is_special(*byte) {
            found(place + at, *byte);
        }
    }
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Writes one value.
struct JsonWriter<'out>(&'out mut Vec<u8>);

impl<'out> JsonWriter<'out> {
    fn string(self, text: &str) {
        self.0.reserve(text.len() + 2);
        self.0.push(b'"');
        escape(text, self.0);
        self.0.push(b'"');
    }

    fn open(self, start: u8, end: &'static [u8]) -> Result<Items<'out>> {
        self.0.push(start);
        Ok(Items {
            out: self.0,
            is_first: true,
            end,
        })
    }

    /// Begins an object whose one key is the name of an enum's variant.
    fn variant(self, name: &str) -> JsonWriter<'out> {
        self.0.push(b'{');
        JsonWriter(self.0).string(name);
        self.0.push(b':');
        self
    }
}

/// Leaves values without text to `serde_json`.
macro_rules! plainly {
    ($($method:ident: $kind:ty),*) => {
        $(fn $method(self, value: $kind) -> Result<()> {
            serde_json::to_writer(self.0, &value)
        })*
    };
}

impl<'out> Serializer for JsonWriter<'out> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'out>;
    type SerializeTuple = Items<'out>;
    type SerializeTupleStruct = Items<'out>;
    type SerializeTupleVariant = Items<'out>;
    type SerializeMap = Items<'out>;
    type SerializeStruct = Items<'out>;
    type SerializeStructVariant = Items<'out>;

    plainly!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char
    );

    /// Writes text that is escaped already, see [`crate::json_text`]: no reply has bytes.
    fn serialize_bytes(self, escaped: &[u8]) -> Result<()> {
        self.0.reserve(escaped.len() + BESIDES_CONTENT);
        self.0.push(b'"');
        self.0.extend_from_slice(escaped);
        self.0.push(b'"');
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<()> {
        self.string(text);
        Ok(())
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let own = self.variant(variant);
        value.serialize(JsonWriter(own.0))?;
        own.0.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'out>> {
        self.open(b'[', b"]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'out>> {
        self.open(b'[', b"]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'out>> {
        self.open(b'[', b"]")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'out>> {
        self.variant(variant).open(b'[', b"]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Items<'out>> {
        self.open(b'{', b"}")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Items<'out>> {
        self.open(b'{', b"}")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'out>> {
        self.variant(variant).open(b'{', b"}}")
    }
}

/// Writes the items of an array or the fields of an object.
struct Items<'out> {
    out: &'out mut Vec<u8>,
    is_first: bool,
    end: &'static [u8],
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.comma();
        value.serialize(JsonWriter(self.out))
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        self.comma();
        JsonWriter(self.out).string(name);
        self.out.push(b':');
        value.serialize(JsonWriter(self.out))
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn finish(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

/// Implements the traits for values with items.
macro_rules! with_items {
    ($($kind:ident: $method:ident),*) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.item(value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

/// Implements the traits for values with named fields.
macro_rules! with_fields {
    ($($kind:ident),*) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
                self.field(name, value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

with_items!(
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);
with_fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.comma();
        let start = self.out.len();
        key.serialize(JsonWriter(self.out))?;
        // Numbers can be keys as their text.
        if self.out.get(start) != Some(&b'"') {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.out.push(b':');
        value.serialize(JsonWriter(self.out))
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn agrees(value: &impl Serialize) -> bool {
        to_vec(value, 0).unwrap() == serde_json::to_vec(value).unwrap()
    }

    #[derive(Serialize)]
    enum Kind {
        Unit,
        Newtype(u8),
        Tuple(i64, String),
        Struct { float: f64, none: Option<()> },
    }

    #[derive(Serialize)]
    struct Wrapped(Vec<Kind>);

    #[derive(Serialize)]
    struct Whole {
        text: &'static str,
        letter: char,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<u8>,
        numbers: (i8, u64, f32),
        by_number: BTreeMap<u32, bool>,
        kinds: Wrapped,
        #[serde(flatten)]
        more: Value,
    }

    #[test]
    fn every_kind_of_value_is_written_as_serde_json_does() {
        let kinds = vec![
            Kind::Unit,
            Kind::Newtype(3),
            Kind::Tuple(-1, "x\n".to_owned()),
            Kind::Struct {
                float: 1e300,
                none: None,
            },
        ];
        let whole = Whole {
            text: "\u{0}\u{1f}\"é",
            letter: '"',
            skipped: None,
            numbers: (-8, u64::MAX, 0.1),
            by_number: BTreeMap::from([(1, true), (2, false)]),
            kinds: Wrapped(kinds),
            more: json!({ "a": [], "b": {}, "c\t": [null, 1.5, f64::MAX], "d": f64::NAN }),
        };
        assert!(
            agrees(&whole),
            "{}",
            to_vec(&whole, 0).unwrap().escape_ascii()
        );
        assert!(agrees(&()) && agrees(&Some("x")) && agrees(&[1, 2]));
    }

    #[test]
    fn every_character_of_ascii_is_written_as_serde_json_does() {
        for byte in 0..=0x7f_u8 {
            for around in 0..40 {
                let text = format!(
                    "{}{}{}",
                    "a".repeat(around),
                    char::from(byte),
                    "é".repeat(around)
                );
                assert!(agrees(&text), "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does(text in r#"([a-z\x00-\x7f]|["\\\n]|\PC){0,80}"#) {
            prop_assert!(agrees(&text));
            let mut escaped = Vec::new();
            escape(&text, &mut escaped);
            prop_assert_eq!(escaped_length(&text), escaped.len());
        }
    }
}
