//! Draws the progress of a call on standard error.
//!
//! The total of a search is unknown, so a piece moves back and forth in the bar and a number counts up.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How long work runs before the bar appears.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often it is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// The width of the bar, and of the piece that moves in it.
const WIDTH: usize = 20;
const PIECE: usize = 4;
/// Clears the line that was drawn.
const CLEAR: &str = "\r\u{1b}[K";

/// Waits for the work and shows its progress on a terminal.
pub(crate) async fn shown<T>(work: impl Future<Output = T>, done: watch::Receiver<u64>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    watched(work, done, &mut std::io::stderr()).await
}

async fn watched<T>(
    work: impl Future<Output = T>,
    done: watch::Receiver<u64>,
    terminal: &mut impl Write,
) -> T {
    let start = Instant::now();
    let mut work = std::pin::pin!(work);
    if let Ok(output) = tokio::time::timeout(PATIENCE, &mut work).await {
        return output;
    }
    loop {
        // The call continues even if the terminal is closed.
        let line = line(*done.borrow(), start.elapsed());
        let _ = write!(terminal, "{CLEAR}{line}").and_then(|()| terminal.flush());
        if let Ok(output) = tokio::time::timeout(FRAME, &mut work).await {
            let _ = write!(terminal, "{CLEAR}").and_then(|()| terminal.flush());
            return output;
        }
    }
}

/// One frame: the bar, the count and the time.
fn line(done: u64, elapsed: Duration) -> String {
    let frame = (elapsed.as_millis() / FRAME.as_millis()) as usize;
    let way = WIDTH - PIECE;
    let step = frame % (2 * way);
    let before = step.min(2 * way - step);
    format!(
        "[{}{}{}] {} done, {} s",
        " ".repeat(before),
        "=".repeat(PIECE),
        " ".repeat(way - before),
        grouped(done),
        elapsed.as_secs()
    )
}

/// A number with separated thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_wanders_and_comes_back() {
        let at = |frame: u64| line(1_234_567, FRAME * u32::try_from(frame).unwrap());
        assert_eq!(at(0), "[====                ] 1,234,567 done, 0 s");
        assert_eq!(at(16), "[                ====] 1,234,567 done, 1 s");
        assert_eq!(at(31), "[ ====               ] 1,234,567 done, 3 s");
        let widths: Vec<usize> = (0..100).map(|frame| at(frame).find(']').unwrap()).collect();
        assert!(widths.iter().all(|width| *width == WIDTH + 1), "{widths:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_long_work_is_drawn_and_nothing_stays() {
        let (told, done) = watch::channel(0);
        let mut terminal = Vec::new();
        let quick = watched(async { 1 }, done.clone(), &mut terminal).await;
        assert_eq!(quick, 1);
        assert_eq!(terminal.len(), 0);
        told.send_replace(42);
        let work = tokio::time::sleep(Duration::from_secs(2));
        watched(work, done, &mut terminal).await;
        let drawn = String::from_utf8(terminal).unwrap();
        assert!(drawn.contains("42 done"), "{drawn}");
        assert!(drawn.ends_with(CLEAR), "{drawn}");
    }
}
