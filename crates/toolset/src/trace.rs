//! The trace that a call belongs to according to its client (W3C Trace Context), for the log and the record.

/// The most characters of `tracestate` that the standard wants passed on.
const STATE_MAX: usize = 512;
/// The lengths of the fields of `traceparent`: version, trace, parent, flags.
const FIELDS: [usize; 4] = [2, 32, 16, 2];

/// A trace, and the work in it that a call is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

impl TraceContext {
    /// Reads both values; `None` if they do not follow the standard. A client's mistake here fails no call.
    #[must_use]
    pub fn new(traceparent: Option<&str>, tracestate: Option<&str>) -> Option<TraceContext> {
        let parent = traceparent.filter(|parent| is_parent(parent))?;
        let state = tracestate.filter(|state| is_state(state));
        Some(TraceContext {
            parent: parent.to_owned(),
            state: state.map(str::to_owned),
        })
    }

    /// `traceparent`.
    #[must_use]
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// `tracestate`.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

fn is_parent(text: &str) -> bool {
    let is_hex = |field: &str| {
        let mut bytes = field.bytes();
        bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let fields: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = fields.iter().map(|field| field.len()).collect();
    lengths == FIELDS && fields.iter().all(|field| is_hex(field))
}

fn is_state(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    (1..=STATE_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn what_is_no_trace_context_is_left_out() {
        let own = TraceContext::new(Some(PARENT), Some("vendor=1")).unwrap();
        assert_eq!(own.parent(), PARENT);
        assert_eq!(own.state(), Some("vendor=1"));
        let odd = TraceContext::new(Some(PARENT), Some("a\nb")).unwrap();
        assert_eq!(odd.state(), None);
        for bad in [
            "",
            "00-1-2-01",
            &PARENT.to_uppercase(),
            &PARENT.replace('f', "\n"),
        ] {
            assert_eq!(TraceContext::new(Some(bad), None), None, "{bad}");
        }
        assert_eq!(TraceContext::new(None, Some("vendor=1")), None);
    }
}
