//! Tables in Markdown, and a line about the machine that does not reveal whose it is.

use std::fmt::Write as _;
use std::fs;

use crate::pair::Compared;

/// What the figures are, and how many goals they meet.
pub(crate) fn opening(rows: &[Compared]) -> String {
    let judged = rows.iter().filter(|row| !row.goals.are_none());
    let (met, judged) = (
        judged.clone().filter(|row| row.is_met()).count(),
        judged.count(),
    );
    format!(
        "# Results\n\n`make bench` writes this file. Each row is one tool call of the release server, warm, over stdio, \
         JSON included, beside a program that does the same work, in turn in one run; below 1 we are faster. Programs \
         include their start, and write into a pipe that is read. Ours returns matches in path order, with line numbers \
         or size and time, as JSON twice (text and structured). Medians; spread is half the distance of the quartiles. \
         A goal without a word is for the wall; a row is met if all its goals are.\n\nThe goals of {met} of {judged} rows are met.\n"
    )
}

/// The table of one part.
pub(crate) fn table(rows: &[&Compared]) -> String {
    let mut text = String::from(
        "| work | beside | wall | CPU | goal | | ours | theirs | spread | rounds | peak memory, ours / theirs |\n\
         |---|---|--:|--:|--:|---|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let met = match row.is_met() {
            _ if row.goals.are_none() => "",
            true => "met",
            false => "**missed**",
        };
        let ratios = row.ratios();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {met} | {} | {} | ±{:.0} %, ±{:.0} % | {} | {} / {} |",
            row.name,
            row.peer_name,
            ratio(ratios.wall, row.peer.wall()),
            ratio(ratios.cpu, row.peer.cpu()),
            row.goals.told(),
            time(row.subject.wall()),
            time(row.peer.wall()),
            row.subject.spread() * 100.0,
            row.peer.spread() * 100.0,
            row.subject.len(),
            memory(row.subject.peak()),
            memory(row.peer.peak()),
        );
    }
    text
}

/// A ratio; nothing if the other side has no such figure.
fn ratio(ratio: f64, other: f64) -> String {
    if other > 0.0 {
        format!("{ratio:.2}")
    } else {
        "–".to_owned()
    }
}

/// A time in the unit that fits it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

/// Memory given in KiB.
pub(crate) fn memory(kibibytes: u64) -> String {
    format!("{}.{} MiB", kibibytes / 1024, kibibytes % 1024 * 10 / 1024)
}

/// The kind of machine: processor, cores, memory, kernel, file system.
pub(crate) fn machine(directory: &std::path::Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |rest| rest.trim_start_matches(['\t', ':', ' ']));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
    let memory = read("/proc/meminfo");
    let memory = memory
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(1));
    let gibibytes = memory.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024 / 1024;
    let kernel = read("/proc/sys/kernel/osrelease");
    vec![
        format!("processor: {model}, {cores} cores"),
        format!("memory: {gibibytes} GiB"),
        format!("kernel: Linux {}", kernel.trim()),
        format!(
            "file system: {}",
            file_system(directory).unwrap_or_default()
        ),
    ]
}

fn file_system(directory: &std::path::Path) -> Option<String> {
    let output = std::process::Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(directory)
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        assert_eq!(time(1.5), "1.50 s");
        assert_eq!(time(0.0123), "12.3 ms");
        assert_eq!(time(0.000_045), "45 µs");
        assert_eq!(memory(1536), "1.5 MiB");
    }
}
