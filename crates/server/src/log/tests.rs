use super::queue::tests::SharedBuffer;
use super::*;

/// Runs `work` with a log of its own and gives back what was written.
pub(crate) fn logged(format: LineFormat, level: LogLevel, work: impl FnOnce()) -> String {
    let output = SharedBuffer::default();
    let queue = LineQueue::start(output.clone(), format, OnFull::Drop).unwrap();
    let log = Log {
        queue: queue.clone(),
        audit: None,
    };
    let lines = LineLayer { queue, format }.with_filter(targets(level));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), work);
    drop(log);
    output.text()
}

#[test]
fn a_line_is_one_flat_object() {
    let log = logged(LineFormat::Json, LogLevel::Info, || {
        let code: Option<&str> = None;
        tracing::info!(
            tool = "read_file",
            duration_ms = 1.5,
            size = 3_u64,
            code,
            "call"
        );
    });
    let line: serde_json::Value = serde_json::from_str(log.trim_end()).unwrap();
    let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 6, "{log}");
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["message"].as_str(), Some("call"));
    assert_eq!(line["size"].as_u64(), Some(3));
    assert!(log.starts_with(r#"{"timestamp":"2"#), "{log}");
    line["timestamp"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap();
}

#[test]
fn arguments_are_json_in_json_and_text_in_text() {
    let arguments = br#"{"path":"a\"b"}"#.as_slice();
    for (format, wanted) in [
        (LineFormat::Json, r#","arguments":{"path":"a\"b"}}"#),
        (LineFormat::Text, r#" arguments="{\"path\":\"a\\\"b\"}""#),
    ] {
        let log = logged(format, LogLevel::Info, || tracing::info!(arguments, "call"));
        assert!(log.trim_end().ends_with(wanted), "{log}");
        // Text of this name is no object.
        let text = "{";
        let log = logged(format, LogLevel::Info, || {
            tracing::info!(arguments = text, "call")
        });
        assert!(log.contains(r#""{""#), "{log}");
    }
}

#[test]
fn no_value_can_forge_a_line_or_flood_the_log() {
    for format in [LineFormat::Json, LineFormat::Text] {
        let log = logged(format, LogLevel::Info, || {
            let path = format!("a\nb\u{1b}[31m{}", "é".repeat(100_000));
            tracing::warn!(path, other = ?path, "refused {path}");
        });
        assert_eq!(log.lines().count(), 1);
        assert!(log.len() < 4 * line::MAX_VALUE, "{}", log.len());
        assert!(!log.trim_end().contains(char::is_control));
    }
}

#[test]
fn what_steers_terminals_or_readers_is_escaped() {
    let path = "\u{9b}31m\u{2028}{\u{202e}\u{85}ä";
    let log = logged(LineFormat::Json, LogLevel::Info, || {
        tracing::info!(path, "call");
    });
    let escaped = r#""path":"\u009b31m\u2028{\u202e\u0085ä""#;
    assert!(log.contains(escaped), "{log}");
    let line: serde_json::Value = serde_json::from_str(log.trim_end()).unwrap();
    assert_eq!(line["path"], path, "it is still the same text");
}

#[test]
fn libraries_are_quiet_at_info() {
    let log = logged(LineFormat::Text, LogLevel::Info, || {
        tracing::info!(target: "hyper::proto", "theirs");
        tracing::info!(target: "toolset::dispatch", "ours");
        tracing::debug!(target: "toolset::dispatch", "too much");
    });
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" INFO ours"), "{log}");
}
