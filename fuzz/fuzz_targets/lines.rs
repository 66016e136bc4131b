//! Lines of any bytes: counted, sought and edited in blocks of any size as in one piece.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ops::text::edit::{insert_before, replace_unique};
use ops::text::encoding::{Utf8Check, trim_end, trim_start};
use ops::text::lines::{LineCounter, LineSeeker, Sought, count, find_last_lines, find_line_start};
use ops::text::reader;
use ops::text::string_search::occurrences;

#[derive(Debug, Arbitrary)]
struct Input {
    bytes: Vec<u8>,
    block: u8,
    line: u16,
    text: String,
    wanted: String,
}

/// Lines as the plainest code would have them.
fn plain(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn counted(input: &Input) {
    let lines = plain(&input.bytes);
    assert_eq!(count(&input.bytes), lines.len() as u64);
    let (mut counter, mut check) = (LineCounter::default(), Utf8Check::default());
    for block in input.bytes.chunks(usize::from(input.block).max(1)) {
        counter.feed(block);
        check.feed(block);
    }
    assert_eq!(counter.lines(), lines.len() as u64);
    assert_eq!(check.is_valid(), std::str::from_utf8(&input.bytes).is_ok());
}

fn sought(input: &Input) {
    let lines = plain(&input.bytes);
    let wanted = usize::from(input.line);
    let before: usize = lines.iter().take(wanted).map(|line| line.len()).sum();
    let mut read = reader(&input.bytes);
    let found = find_line_start(&mut read, wanted as u64).unwrap();
    if wanted < lines.len() {
        assert_eq!(found, Sought::At(before as u64));
    }
    let mut seeker = LineSeeker::new(wanted as u64);
    for block in input.bytes.chunks(usize::from(input.block).max(1)) {
        if seeker.feed(block).is_some() {
            break;
        }
    }
    let mut read = reader(&input.bytes);
    find_last_lines(&mut read, input.bytes.len() as u64, wanted as u64).unwrap();
}

fn edited(input: &Input) {
    let mut read = reader(input.text.as_bytes());
    let found = occurrences(&mut read, &input.wanted);
    let expected = input.text.matches(&input.wanted).count();
    if let (Ok(found), false) = (found, input.wanted.is_empty()) {
        assert!(found.count >= expected as u64);
    }
    let mut read = reader(input.text.as_bytes());
    if let Ok(splice) = replace_unique("f", &mut read, &input.wanted, "new") {
        let replaced = splice.applied(input.text.as_bytes());
        // Where lines end in both ways, one is found by the other.
        if input.text.contains('\r') || input.wanted.contains('\r') {
            return;
        }
        assert_eq!(
            replaced,
            input.text.replacen(&input.wanted, "new", 1).as_bytes()
        );
    }
    let mut read = reader(input.text.as_bytes());
    if let Ok(splice) = insert_before("f", &mut read, i64::from(input.line), &input.wanted) {
        let after = splice.applied(input.text.as_bytes());
        assert!(after.len() >= input.text.len() && std::str::from_utf8(&after).is_ok());
    }
}

fuzz_target!(|input: Input| {
    counted(&input);
    sought(&input);
    edited(&input);
    for cut in [trim_end, trim_start] {
        assert!(cut(&input.bytes).len() <= input.bytes.len());
    }
});
