//! Text as the inside of a JSON string, eight bytes at a time.
//!
//! A reply's text is escaped once more than its structured half, so this is most of what a large reply costs;
//! `serde_json`, which looks at every byte, takes several times as long.

/// A word with one in every byte, and with the highest bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Writes a text as the inside of a JSON string, with the very escapes of `serde_json`.
pub(crate) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        // Bytes that need an escape are ASCII, so this never cuts a character.
        let (plain, behind) = rest.split_at(plain_length(rest.as_bytes()));
        out.push_str(plain);
        let mut characters = behind.chars();
        let Some(special) = characters.next() else {
            return;
        };
        push_escaped(special, out);
        rest = characters.as_str();
    }
}

fn push_escaped(special: char, out: &mut String) {
    let short = match special {
        '"' => '"',
        '\\' => '\\',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        control => {
            let code = u32::from(control);
            let digit = |value| char::from_digit(value, 16).unwrap_or_default();
            out.push_str("\\u00");
            out.extend([digit(code >> 4), digit(code & 0xf)]);
            return;
        }
    };
    out.extend(['\\', short]);
}

/// How many bytes at the beginning stand for themselves.
fn plain_length(bytes: &[u8]) -> usize {
    let words = bytes
        .chunks_exact(8)
        .map_while(|chunk| chunk.try_into().ok());
    let plain = words
        .map(u64::from_le_bytes)
        .take_while(|word| !has_special(*word));
    let checked = plain.count() * 8;
    let behind = bytes.get(checked..).unwrap_or_default();
    let special = behind.iter().position(|byte| is_special(*byte));
    checked + special.unwrap_or(behind.len())
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Tells whether some byte of a word is special. A borrow can only disturb the bytes above one that is.
fn has_special(word: u64) -> bool {
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(text: &str) -> bool {
        let mut own = String::new();
        escape(text, &mut own);
        format!("\"{own}\"") == serde_json::to_string(text).unwrap()
    }

    #[test]
    fn every_character_of_ascii_is_written_as_serde_json_does() {
        for byte in 0..=0x7f_u8 {
            for around in 0..9 {
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
