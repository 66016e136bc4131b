//! The files every comparison works on, made from a seed and kept for the next run.
//!
//! `tree` is a source-like tree in four groups of different size, `names` holds empty files, `flat-*` are large
//! directories and `logs` large files. A finished corpus has a mark; one without is made anew.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::random::Random;

/// A version of the corpus's form, so that an outdated corpus is not reused.
const VERSION: u32 = 2;
const SEED: u64 = 0x5EED_0007;
const MEGABYTE: u64 = 1_000_000;

/// The literal of few lines.
pub(crate) const RARE: &str = "zyzzyva_marker";
/// The literal of many lines.
pub(crate) const COMMON: &str = "shared_handle";
/// The literal of some thousand lines.
pub(crate) const FREQUENT: &str = "retry_budget";
/// The string that a log holds once, in its last tenth.
pub(crate) const ONCE: &str = "needle-0000";

/// How large a corpus is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// The full size, which the published figures use.
    Full,
    /// A tenth, for a look in between.
    Quick,
}

impl Scale {
    fn word(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Quick => "quick",
        }
    }

    fn divisor(self) -> usize {
        match self {
            Scale::Full => 1,
            Scale::Quick => 10,
        }
    }
}

/// One group of a tree: a directory with a known number of files.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) files: usize,
}

/// Where everything is.
#[derive(Debug, Clone)]
pub(crate) struct Corpus {
    /// The directory that the server serves.
    pub(crate) root: PathBuf,
    /// The groups of `tree`, smallest first.
    pub(crate) tree: Vec<Group>,
    /// The groups of `names`, smallest first.
    pub(crate) names: Vec<Group>,
    /// The sizes of `logs/SIZE.log` in bytes, smallest first.
    pub(crate) logs: Vec<u64>,
    /// How many entries the directories `flat-N` have.
    pub(crate) flat: Vec<usize>,
    /// How many times smaller everything is than at full size.
    pub(crate) divisor: usize,
}

impl Corpus {
    /// Finds a finished corpus below a directory or makes it.
    pub(crate) fn ready(base: &Path, scale: Scale) -> Result<Corpus> {
        let corpus = Corpus::plan(base, scale);
        let mark = base.join(format!("corpus-{}-{VERSION}.done", scale.word()));
        if !mark.exists() {
            if corpus.root.exists() {
                fs::remove_dir_all(&corpus.root).context("removing an unfinished corpus")?;
            }
            corpus.make().context("making the corpus")?;
            fs::write(mark, "")?;
        }
        corpus.add_small()?;
        Ok(corpus)
    }

    /// Finds or makes a corpus of only `tree` and the small file.
    pub(crate) fn sources(base: &Path, scale: Scale) -> Result<Corpus> {
        let corpus = Corpus {
            root: base.join(format!("sources-{}", scale.word())),
            ..Corpus::plan(base, scale)
        };
        let mark = base.join(format!("sources-{}-{VERSION}.done", scale.word()));
        if !mark.exists() {
            if corpus.root.exists() {
                fs::remove_dir_all(&corpus.root).context("removing an unfinished corpus")?;
            }
            let mut random = Random::new(SEED);
            let words = Words::new(&mut random);
            corpus.make_tree(&words, &mut random)?;
            fs::write(mark, "")?;
        }
        corpus.add_small()?;
        Ok(corpus)
    }

    fn add_small(&self) -> io::Result<()> {
        let line = "sixty-three bytes of text and a newline make four KiB of it..\n";
        fs::write(self.root.join("small.txt"), line.repeat(65))
    }

    fn plan(base: &Path, scale: Scale) -> Corpus {
        let divisor = scale.divisor();
        let groups = |prefix: &str, sizes: [usize; 4]| {
            let named = sizes.iter().enumerate().map(|(number, files)| Group {
                name: format!("{prefix}{number}"),
                files: files / divisor,
            });
            named.collect()
        };
        let largest = 1000 / divisor as u64;
        let sizes = [1, 10, 100, 1000].into_iter();
        Corpus {
            divisor,
            root: base.join(format!("corpus-{}", scale.word())),
            tree: groups("group", [1_000, 5_000, 10_000, 34_000]),
            names: groups("area", [2_000, 8_000, 40_000, 150_000]),
            logs: sizes
                .filter(|size| *size <= largest)
                .map(|size| size * MEGABYTE)
                .collect(),
            flat: match scale {
                Scale::Full => vec![10_000, 100_000],
                Scale::Quick => vec![10_000],
            },
        }
    }

    /// The largest log.
    pub(crate) fn log(&self) -> String {
        format!("logs/{}.log", self.logs.last().copied().unwrap_or_default())
    }

    /// The log that edits work on.
    pub(crate) fn edited_log(&self) -> String {
        let size = self
            .logs
            .iter()
            .rfind(|size| **size <= 100 * MEGABYTE)
            .copied();
        format!("logs/{}.log", size.unwrap_or_default())
    }

    fn make_tree(&self, words: &Words, random: &mut Random) -> io::Result<()> {
        for group in &self.tree {
            let directory = self.root.join("tree").join(&group.name);
            make_sources(&directory, group.files, words, random)?;
        }
        Ok(())
    }

    fn make(&self) -> io::Result<()> {
        let mut random = Random::new(SEED);
        let words = Words::new(&mut random);
        fs::create_dir_all(self.root.join("scratch"))?;
        self.make_tree(&words, &mut random)?;
        if let Some(last) = self.tree.last() {
            let directory = self.root.join("tree").join(&last.name);
            let size = 2 * MEGABYTE * last.files as u64 / 680;
            make_log(&directory.join("trace.txt"), size, &words, &mut random)?;
            make_log(&directory.join("events.txt"), size, &words, &mut random)?;
        }
        for group in &self.names {
            make_names(
                &self.root.join("names").join(&group.name),
                group.files,
                &mut random,
            )?;
        }
        for entries in &self.flat {
            make_flat(&self.root.join(format!("flat-{entries}")), *entries)?;
        }
        fs::create_dir_all(self.root.join("logs"))?;
        for size in &self.logs {
            let path = self.root.join(format!("logs/{size}.log"));
            make_log(&path, *size, &words, &mut random)?;
        }
        Ok(())
    }
}

/// The vocabulary of the sources.
struct Words(Vec<String>);

impl Words {
    fn new(random: &mut Random) -> Words {
        let syllables = [
            "re", "con", "ta", "ver", "li", "mo", "fi", "gen", "pro", "sa", "ter", "un", "de",
            "par",
        ];
        let word = |random: &mut Random| {
            let count = 2 + random.below(3);
            let parts: String = (0..count)
                .filter_map(|_| random.choose(&syllables).copied())
                .collect();
            match random.below(4) {
                0 => format!("{parts}_id"),
                1 => capitalised(&parts),
                _ => parts,
            }
        };
        Words((0..3_000).map(|_| word(random)).collect())
    }

    fn any(&self, random: &mut Random) -> &str {
        random.choose(&self.0).map_or("word", String::as_str)
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_ascii_uppercase())
        .into_iter();
    first.chain(letters).collect()
}

/// A tree with about sixteen files a directory.
fn make_sources(
    directory: &Path,
    files: usize,
    words: &Words,
    random: &mut Random,
) -> io::Result<()> {
    let extensions = [
        "rs", "go", "py", "ts", "md", "toml", "json", "txt", "h", "c",
    ];
    for number in 0..files {
        let section = directory
            .join(format!("module_{:02}", number / 256))
            .join(format!("part_{:02}", number / 16 % 16));
        if number % 16 == 0 {
            fs::create_dir_all(&section)?;
        }
        let extension = random.choose(&extensions).copied().unwrap_or("txt");
        let path = section.join(format!("file_{number:05}.{extension}"));
        make_source(&path, number, words, random)?;
    }
    Ok(())
}

fn make_source(path: &Path, number: usize, words: &Words, random: &mut Random) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let wanted = 500 + random.below(2_000) * (1 + random.below(9)) * random.below(3);
    if number % 50 == 17 {
        return make_binary(&mut file, wanted, random);
    }
    if number % 500 == 77 {
        return make_long_line(&mut file, 200_000, words, random);
    }
    let mut written = 0;
    while written < wanted {
        let line = source_line(words, random);
        file.write_all(line.as_bytes())?;
        written += line.len();
    }
    if number % 4_000 == 99 {
        writeln!(file, "    let {RARE} = {number};")?;
    }
    file.flush()
}

fn make_binary(file: &mut impl Write, size: usize, random: &mut Random) -> io::Result<()> {
    file.write_all(b"\x7fBIN\0\0\0\0")?;
    for _ in 0..size / 8 {
        file.write_all(&random.next().to_le_bytes())?;
    }
    file.flush()
}

fn make_long_line(
    file: &mut impl Write,
    size: usize,
    words: &Words,
    random: &mut Random,
) -> io::Result<()> {
    let mut written = 0;
    while written < size {
        let word = words.any(random);
        write!(file, "{word},")?;
        written += word.len() + 1;
    }
    file.flush()
}

fn source_line(words: &Words, random: &mut Random) -> String {
    let indent = " ".repeat(4 * random.below(4));
    if random.once_in(200) {
        return format!(
            "{indent}let {} = {COMMON}({});\n",
            words.any(random),
            random.below(99)
        );
    }
    if random.once_in(2_000) {
        return format!("{indent}{FREQUENT}.take({})?;\n", words.any(random));
    }
    if random.once_in(4_000) {
        return format!(
            "{indent}return Err({}Error({}));\n",
            words.any(random),
            random.below(900) + 100
        );
    }
    match random.below(6) {
        0 => "\n".to_owned(),
        1 => format!(
            "{indent}// {} {} {}\n",
            words.any(random),
            words.any(random),
            words.any(random)
        ),
        2 => format!(
            "{indent}if {}.{}() {{\n",
            words.any(random),
            words.any(random)
        ),
        3 => format!("{indent}}}\n"),
        _ => format!(
            "{indent}let {} = {}.{}({}, {});\n",
            words.any(random),
            words.any(random),
            words.any(random),
            words.any(random),
            random.below(10_000)
        ),
    }
}

fn make_log(path: &Path, size: u64, words: &Words, random: &mut Random) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut written, mut marked) = (0, false);
    while written < size {
        if !marked && written >= size / 10 * 9 {
            marked = true;
            writeln!(file, "{ONCE}")?;
        }
        let line = log_line(words, random);
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    file.flush()
}

fn log_line(words: &Words, random: &mut Random) -> String {
    let (second, level) = (random.below(60), random.below(4));
    let level = ["INFO", "WARN", "DEBUG", "ERROR"]
        .get(level)
        .unwrap_or(&"INFO");
    format!(
        "2026-01-01T00:00:{second:02}Z {level} {} {} took={} {} {}\n",
        words.any(random),
        words.any(random),
        random.below(100_000),
        words.any(random),
        words.any(random)
    )
}

/// Empty files, one in ten a `.rs`, and directories `config_*` here and there.
fn make_names(directory: &Path, files: usize, random: &mut Random) -> io::Result<()> {
    let extensions = [
        "rs", "go", "py", "ts", "md", "toml", "json", "txt", "h", "c",
    ];
    let mut section = directory.to_owned();
    for number in 0..files {
        if number % 50 == 0 {
            let kind = if number % 1_000 == 0 {
                "config"
            } else {
                "package"
            };
            section = directory
                .join(format!("layer_{:03}", number / 1_000))
                .join(format!("{kind}_{number:06}"));
            fs::create_dir_all(&section)?;
        }
        let extension = random.choose(&extensions).copied().unwrap_or("txt");
        File::create(section.join(format!("name_{number:06}.{extension}")))?;
    }
    Ok(())
}

fn make_flat(directory: &Path, entries: usize) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for number in 0..entries {
        File::create(directory.join(format!("entry-{number:06}.dat")))?;
    }
    Ok(())
}
