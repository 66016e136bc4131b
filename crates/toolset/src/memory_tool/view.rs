//! `view`: a file with line numbers, an image, or a directory two levels deep.

use ops::text::encoding::to_base64;
use ops::{
    Body, Detail, Error, FileKind, Hidden, List, ListEntry, Operation, Oversize, Place, Read,
    ReadRange, StoredForm, TextPolicy, Totals, WHOLE_FILE_MAX,
};

use super::commands::path;
use super::memory::{Arguments, Reply};
use super::paths::place;
use crate::media::{Media, MediaKind};
use crate::text_form::{in_one_line, in_units};
use crate::tool::Call;

/// The most characters of a reply.
const CHARACTERS_MAX: usize = 16_000;
/// The most lines of a file that is shown.
const LINES_MAX: usize = 999_999;
/// The room for the last line of a listing that is cut.
const LEFT_OUT_ROOM: usize = 150;
/// What is left out of a listing besides hidden entries.
const LEFT_OUT: &str = "node_modules";

pub(super) fn run(arguments: &Arguments, call: &Call) -> ops::Result<Reply> {
    let path = path(arguments)?;
    let place = place(call, path)?;
    let is_directory = place.resolved_directory().is_ok();
    // A client's own store is created with its first file.
    let is_empty_store = super::paths::is_top(path) && !is_directory;
    if is_empty_store || is_directory {
        return directory(&place, path, is_empty_store, call);
    }
    if let Some(mime_type) = image_type(path) {
        return image(place, mime_type, call);
    }
    let text = text(place, path, call)?;
    file(&text, path, arguments.view_range.as_deref()).map(Reply::from)
}

fn image_type(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    match ending?.to_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        _ => None,
    }
}

fn request(place: Place, text: TextPolicy) -> Read {
    Read {
        place,
        range: ReadRange::Whole,
        max_bytes: None,
        oversize: Oversize::Refuse {
            over: WHOLE_FILE_MAX,
        },
        text,
        totals: Totals::Skip,
        form: StoredForm::AsStored,
    }
}

fn image(place: Place, mime_type: &'static str, call: &Call) -> ops::Result<Reply> {
    let contents = request(place, TextPolicy::Never).run(&call.context)?;
    Ok(Reply {
        text: String::new(),
        image: Some(Media {
            kind: MediaKind::Image,
            mime_type,
            data: to_base64(contents.body.as_bytes()),
            uri: None,
        }),
    })
}

fn text(place: Place, path: &str, call: &Call) -> ops::Result<String> {
    match request(place, TextPolicy::Utf8).run(&call.context)?.body {
        Body::Text(text) => Ok(text),
        Body::Bytes(bytes) => Err(Error::NotText {
            path: path.to_owned(),
            seems: ops::text::encoding::likely_encoding(&bytes),
        }),
    }
}

fn file(text: &str, path: &str, range: Option<&[i64]>) -> ops::Result<String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LINES_MAX {
        return Err(Error::InvalidArgument {
            argument: "path",
            reason: format!("File {path} exceeds maximum line limit of 999,999 lines."),
        });
    }
    let (first, last) = chosen(range, lines.len())?;
    let mut shown = format!("Here's the content of {path} with line numbers:");
    let mut characters = shown.chars().count();
    for (number, line) in (1..).zip(&lines).take(last).skip(first - 1) {
        let line = format!("\n{number:>6}\t{line}");
        characters += line.chars().count();
        if characters > CHARACTERS_MAX {
            return Ok(cut(shown, &line, number, lines.len()));
        }
        shown.push_str(&line);
    }
    Ok(shown)
}

/// The text as far as it fits, with how to go on.
fn cut(mut shown: String, next: &str, number: usize, all: usize) -> String {
    let mut kept = shown.chars().count();
    if shown.lines().count() == 1 {
        // A line that is longer than a reply is shown in part.
        let note = cut_line(number, all);
        let room = CHARACTERS_MAX.saturating_sub(kept + note.chars().count());
        shown.extend(next.chars().take(room));
        shown.push_str(&note);
        return shown;
    }
    let going_on = |from: usize| {
        format!("\n[cut at 16000 characters: view again with view_range [{from}, {all}]]")
    };
    let room = CHARACTERS_MAX.saturating_sub(going_on(number).chars().count());
    let mut from = number;
    while kept > room {
        let end = shown.rfind('\n').unwrap_or(0);
        kept -= shown.get(end..).map_or(0, |line| line.chars().count());
        shown.truncate(end);
        from -= 1;
    }
    shown.push_str(&going_on(from.min(all)));
    shown
}

/// The note for a line that is longer than a reply: its rest cannot be viewed, the following lines can.
fn cut_line(number: usize, all: usize) -> String {
    let next = number + 1;
    let going_on = if number < all {
        format!(": view what follows it with view_range [{next}, {all}]")
    } else {
        " and is the last".to_owned()
    };
    format!("\n[line {number} is cut at 16000 characters{going_on}]")
}

/// The first and the last line to show, from 1.
fn chosen(range: Option<&[i64]>, lines: usize) -> ops::Result<(usize, usize)> {
    let Some(range) = range else {
        return Ok((1, lines));
    };
    let &[first, last] = range else {
        return Err(Error::InvalidArgument {
            argument: "view_range",
            reason: "Error: Invalid `view_range` parameter: it should be a list of two integers: [first line, last line]; \
                     -1 is the end"
                .to_owned(),
        });
    };
    let bounded = |line: i64| usize::try_from(line).unwrap_or(1).clamp(1, lines.max(1));
    let last = if last == -1 { lines } else { bounded(last) };
    Ok((bounded(first), last))
}

fn directory(place: &Place, path: &str, is_empty: bool, call: &Call) -> ops::Result<Reply> {
    let shown = path.trim_end_matches('/');
    let mut text = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    );
    let (entries, has_more) = match is_empty {
        true => (Vec::new(), false),
        false => listed(place, call)?,
    };
    let total = if is_empty { 0 } else { size_of(place, call)? };
    text.push_str(&format!("\n{}\t{shown}", readable_size(total)));
    let top = place.resolved()?;
    let lines = entries.iter().map(|entry| entry_line(entry, &top, shown));
    let left_out = add_as_many_as_fit(&mut text, lines);
    if left_out > 0 || has_more {
        text.push_str(&entries_left_out(left_out, has_more));
    }
    Ok(text.into())
}

/// Adds lines to a listing; returns how many do not fit.
fn add_as_many_as_fit(text: &mut String, lines: impl ExactSizeIterator<Item = String>) -> usize {
    let (mut characters, all) = (text.chars().count(), lines.len());
    for (told, line) in lines.enumerate() {
        characters += line.chars().count();
        if characters > CHARACTERS_MAX - LEFT_OUT_ROOM {
            return all - told;
        }
        text.push_str(&line);
    }
    0
}

/// An entry below `top`, which the client calls `shown`.
fn entry_line(entry: &ListEntry, top: &str, shown: &str) -> String {
    let below = match top {
        "." => &entry.path,
        top => entry.path.strip_prefix(top).unwrap_or(&entry.path),
    };
    let name = in_one_line(below.trim_start_matches('/'));
    let size = readable_size(entry.facts.size);
    let end = match entry.facts.kind {
        FileKind::Directory => "/",
        _ => "",
    };
    format!("\n{size}\t{shown}/{name}{end}")
}

/// The last line of a listing that does not fit.
fn entries_left_out(number: usize, has_more: bool) -> String {
    let number = match has_more {
        true => format!("more than {number}"),
        false => number.to_string(),
    };
    format!(
        "\n[cut at 16000 characters, {number} entries are left out: view a directory further down]"
    )
}

/// What is in a directory, and whether there is more.
fn listed(place: &Place, call: &Call) -> ops::Result<(Vec<ListEntry>, bool)> {
    let list = List {
        place: place.clone(),
        max_depth: Some(2),
        hidden: Hidden::Skip,
        pattern: None,
        detail: Detail::Metadata,
        max_entries: List::MAX_ENTRIES,
    };
    let listed = list.run(&call.context)?;
    let is_left_out = |entry: &ListEntry| entry.path.split('/').any(|name| name == LEFT_OUT);
    let mut entries: Vec<ListEntry> = listed.entries;
    entries.retain(|entry| !is_left_out(entry));
    // Depth first, by name: a directory is followed by its content.
    entries.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    Ok((entries, listed.truncated))
}

/// The size of the directory entry itself, as of those below it.
fn size_of(place: &Place, call: &Call) -> ops::Result<u64> {
    let stat = ops::Stat {
        place: place.clone(),
        content_type: ops::ContentType::Skip,
    };
    Ok(stat.run(&call.context)?.metadata.size)
}

/// A size as `du -h` writes it, with one decimal.
fn readable_size(bytes: u64) -> String {
    match in_units(bytes, ["K", "M", "G", "T"]) {
        Some((size, unit)) => format!("{size:.1}{unit}"),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1536, "1.5K"),
            (4096, "4.0K"),
            (2 << 20, "2.0M"),
        ] {
            assert_eq!(readable_size(bytes), text);
        }
    }

    #[test]
    fn lines_are_numbered_and_ranges_clamped() {
        let shown = |range: Option<&[i64]>| file("a\nb\n", "/memories/f", range).unwrap();
        let head = "Here's the content of /memories/f with line numbers:";
        assert_eq!(shown(None), format!("{head}\n     1\ta\n     2\tb"));
        for (range, text) in [
            ([2, -1], "\n     2\tb"),
            ([1, 99], "\n     1\ta\n     2\tb"),
            ([0, 1], "\n     1\ta"),
            ([2, 1], ""),
        ] {
            assert_eq!(shown(Some(&range)), format!("{head}{text}"), "{range:?}");
        }
        assert!(file("a", "/memories/f", Some(&[1])).is_err());
    }

    #[test]
    fn long_files_are_cut_and_say_how_to_go_on() {
        let text: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
        let shown = file(&text, "/memories/f", None).unwrap();
        assert!(shown.chars().count() <= CHARACTERS_MAX);
        let last = shown.lines().last().unwrap();
        let from = last.strip_prefix("[cut at 16000 characters: view again with view_range [");
        let from: usize = from.unwrap().split(',').next().unwrap().parse().unwrap();
        let before = shown.lines().rev().nth(1).unwrap();
        assert!(before.ends_with(&format!("line {}", from - 1)), "{before}");
    }

    #[test]
    fn a_line_longer_than_a_reply_is_said_to_be_cut_and_never_advised_again() {
        let long = "x".repeat(50_000);
        for (text, end) in [
            (
                long.clone(),
                "[line 1 is cut at 16000 characters and is the last]",
            ),
            (
                format!("{long}\nb\n"),
                "[line 1 is cut at 16000 characters: view what follows it with view_range [2, 2]]",
            ),
        ] {
            let shown = file(&text, "/memories/f", None).unwrap();
            assert!(shown.chars().count() <= CHARACTERS_MAX);
            assert_eq!(shown.lines().last(), Some(end));
        }
        // If other lines precede it, it is left for the next view, which cuts it.
        let text = format!("a\n{long}");
        let shown = file(&text, "/memories/f", None).unwrap();
        assert!(shown.ends_with("view_range [2, 2]]"), "{shown}");
        let shown = file(&text, "/memories/f", Some(&[2, 2])).unwrap();
        assert!(shown.ends_with("[line 2 is cut at 16000 characters and is the last]"));
    }
}
