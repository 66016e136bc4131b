//! The cost of a run (wall time, processor time, peak memory), and the medians of several runs.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

/// The cost of one run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// The most memory that was resident, in KiB.
    pub(crate) peak: u64,
}

/// The costs of several runs of one thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Costs(Vec<Cost>);

impl Costs {
    pub(crate) fn push(&mut self, cost: Cost) {
        self.0.push(cost);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle wall time in seconds.
    pub(crate) fn wall(&self) -> f64 {
        median(self.walls())
    }

    /// The middle processor time in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        median(self.0.iter().map(|cost| cost.cpu.as_secs_f64()).collect())
    }

    /// The largest peak in KiB.
    pub(crate) fn peak(&self) -> u64 {
        self.0.iter().map(|cost| cost.peak).max().unwrap_or(0)
    }

    /// Half the distance between the quarters, as a part of the middle.
    pub(crate) fn spread(&self) -> f64 {
        let mut walls = self.walls();
        walls.sort_by(f64::total_cmp);
        let at = |part: usize| {
            walls
                .get((walls.len().saturating_sub(1)) * part / 4)
                .copied()
        };
        let (Some(low), Some(high)) = (at(1), at(3)) else {
            return 0.0;
        };
        (high - low) / 2.0 / self.wall().max(f64::MIN_POSITIVE)
    }

    fn walls(&self) -> Vec<f64> {
        self.0.iter().map(|cost| cost.wall.as_secs_f64()).collect()
    }
}

/// The middle of some numbers; 0 of none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let upper = numbers.get(numbers.len() / 2).copied().unwrap_or(0.0);
    match numbers.len() % 2 {
        0 => {
            (upper
                + numbers
                    .get((numbers.len() / 2).wrapping_sub(1))
                    .copied()
                    .unwrap_or(0.0))
                / 2.0
        }
        _ => upper,
    }
}

/// The number below which this part of the numbers is.
pub(crate) fn quantile(mut numbers: Vec<f64>, part: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a short list"
    )]
    let index = (numbers.len().saturating_sub(1) as f64 * part).round() as usize;
    numbers.get(index).copied().unwrap_or(0.0)
}

/// A program with its arguments and the directory it runs in.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) arguments: Vec<String>,
    pub(crate) directory: std::path::PathBuf,
}

impl Line {
    pub(crate) fn new(directory: &Path, arguments: &[&str]) -> Line {
        Line {
            arguments: arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
            directory: directory.to_owned(),
        }
    }
}

/// Runs a program through a small process of ours, which alone knows what it used, and tells what it wrote.
pub(crate) fn run(line: &Line) -> Result<(Cost, Written)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("measure")
        .args(&line.arguments)
        .current_dir(&line.directory);
    let output = command.stderr(Stdio::inherit()).output()?;
    let told: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("nothing was measured of {:?}", line.arguments))?;
    let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
    if number("status") > 1 {
        bail!("{:?} ended with {}", line.arguments, number("status"));
    }
    let cost = Cost {
        wall: Duration::from_nanos(number("wall")),
        cpu: Duration::from_micros(number("cpu")),
        peak: number("peak"),
    };
    let written = Written {
        bytes: number("bytes"),
        lines: number("lines"),
    };
    Ok((cost, written))
}

/// How much a program wrote on standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// The inner half of [`run`]: reads all the program writes, and says on standard output what it took.
pub(crate) fn measure(arguments: &[String]) -> Result<()> {
    let (program, rest) = arguments.split_first().context("no program to measure")?;
    let before = children()?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(rest)
        .stdout(Stdio::piped())
        .spawn()?;
    let written = drain(child.stdout.take())?;
    let status = child.wait()?.code().unwrap_or(255);
    let wall = begun.elapsed();
    let after = children()?;
    let told = json!({
        "wall": u64::try_from(wall.as_nanos())?,
        "cpu": after.0 - before.0,
        "peak": after.1,
        "bytes": written.bytes,
        "lines": written.lines,
        "status": status,
    });
    writeln!(io::stdout(), "{told}")?;
    Ok(())
}

/// Microseconds that ended children used, and the largest peak among them in KiB.
fn children() -> Result<(i64, i64)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = usage.user_time() + usage.system_time();
    Ok((time.num_microseconds(), usage.max_rss()))
}

fn drain(from: Option<impl Read>) -> io::Result<Written> {
    let mut written = Written { bytes: 0, lines: 0 };
    let Some(mut from) = from else {
        return Ok(written);
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        let piece = buffer.get(..read).unwrap_or_default();
        if piece.is_empty() {
            return Ok(written);
        }
        written.bytes += read as u64;
        written.lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_quantiles() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
        assert_eq!(quantile((0..101).map(f64::from).collect(), 0.99), 99.0);
    }
}
