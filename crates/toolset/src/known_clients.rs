//! What is known about clients from the name they give themselves (`clientInfo.name`).
//!
//! A client can call itself anything, so nothing that protects files depends on this table.

/// A client that shows its model only `structuredContent`, as escaped JSON, if a result has both halves.
struct TextDropper {
    /// What its name begins with.
    name: &'static str,
    /// The source for this; a test requires one for each.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and the test"))]
    source: &'static str,
}

/// The clients that drop the text. Claude.ai, ChatGPT, Goose, Kimi and Amazon Q do the opposite and need both halves.
const TEXT_DROPPERS: &[TextDropper] = &[
    TextDropper {
        name: "claude-code",
        source: "https://github.com/anthropics/claude-code/issues/79944",
    },
    // `codex-mcp-client`, and what else Codex calls itself.
    TextDropper {
        name: "codex",
        source: "https://github.com/openai/codex/issues/38287",
    },
    TextDropper {
        name: "opencode",
        source: "https://github.com/anomalyco/opencode/pull/32074",
    },
    // Also `Visual Studio Code - Insiders`.
    TextDropper {
        name: "Visual Studio Code",
        source: "https://github.com/microsoft/vscode/issues/290063",
    },
];

/// Whether a client of this name hands its model only the structured half.
pub(crate) fn drops_text(client: &str) -> bool {
    let mut known = TEXT_DROPPERS.iter();
    known.any(|known| client.starts_with(known.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_of_the_table_has_a_source() {
        for known in TEXT_DROPPERS {
            assert!(known.source.starts_with("https://"), "{}", known.name);
        }
    }

    #[test]
    fn clients_are_known_by_the_beginning_of_their_name() {
        for name in [
            "claude-code",
            "codex-mcp-client",
            "Visual Studio Code - Insiders",
        ] {
            assert!(drops_text(name), "{name}");
        }
        for name in ["", "claude-ai", "Claude-Code", "my codex", "mcp"] {
            assert!(!drops_text(name), "{name}");
        }
    }
}
