//! Writes JSON exactly as `serde_json` does, at a third of the cost where most of it is text.
//!
//! Replies are mostly the text of files. `serde_json` looks at such text byte by byte; [`escape`] looks at sixteen bytes at
//! once. Numbers are left to `serde_json`.

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::{Error, Result};

/// A word with one in every byte, and with the highest bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
/// How many bytes are looked at together.
const BLOCK: usize = 16;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a value as JSON.
pub(crate) fn to_string(value: &impl Serialize) -> Result<String> {
    let mut out = Vec::new();
    value.serialize(JsonWriter(&mut out))?;
    // Only whole characters are written, so this never fails.
    String::from_utf8(out).map_err(ser::Error::custom)
}

/// Writes a text as the inside of a JSON string.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some((plain, behind)) = rest.split_at_checked(plain_length(rest)) {
        out.extend_from_slice(plain);
        let Some((special, after)) = behind.split_first() else {
            return;
        };
        push_escaped(*special, out);
        rest = after;
    }
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

/// How many bytes at the beginning stand for themselves. Bytes that need an escape are ASCII, so no character is cut.
fn plain_length(bytes: &[u8]) -> usize {
    let mut plain = 0;
    for block in bytes.as_chunks::<BLOCK>().0 {
        // Without a branch for each byte, so that the compiler compares all of them at once.
        if block
            .iter()
            .fold(false, |any, byte| any | is_special(*byte))
        {
            break;
        }
        plain += BLOCK;
    }
    let (words, tail) = bytes.get(plain..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return plain + specials.trailing_zeros() as usize / 8;
        }
        plain += 8;
    }
    let special = tail.iter().position(|byte| is_special(*byte));
    plain + special.unwrap_or(tail.len())
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Marks the special bytes of a word by their highest bit. The lowest mark is right; a borrow can only disturb those above.
fn specials(word: u64) -> u64 {
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH
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
        serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8]
    );

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

/// Implements the traits of things that have items.
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

/// Implements the traits of things that have named fields.
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
        let key = serde_json::to_value(key)?;
        self.comma();
        match key.as_str() {
            Some(text) => JsonWriter(self.out).string(text),
            // Numbers can be keys as their text.
            None => JsonWriter(self.out).string(&key.to_string()),
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
        to_string(value).unwrap() == serde_json::to_string(value).unwrap()
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
        assert!(agrees(&whole), "{}", to_string(&whole).unwrap());
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
        }
    }
}
