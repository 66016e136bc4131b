//! What the set says when all goes well: prompts to the agent, messages, warnings.

use guide::{AgentQuestion, ContentShape, LEVELS_MAX, Lack, StoreStatus, Subject, Warning};
use serde_json::Value;

/// How long an answer may be.
pub(super) const MAX_TOKENS: u32 = 100_000;

/// The role of the agent.
pub(super) const SYSTEM_PROMPT: &str = "You have access to the project's files and pass them on exactly as they are. Reply \
    with what was asked for and nothing else: no introduction, no comment, no code fence.";

/// The question in words.
pub(super) fn prompt(question: &AgentQuestion) -> String {
    match question.lack {
        Some(lack) => format!(
            "{}\nWhat was handed over just now will not do: {}.",
            first_prompt(question),
            lacking(lack)
        ),
        None => first_prompt(question),
    }
}

/// Quotes a client's text in a prompt, so that it cannot pass for an instruction of ours.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What a hand-over lacks.
pub(super) fn lacking(lack: Lack) -> &'static str {
    match lack {
        Lack::Children => "directories came without their children",
        Lack::Files => "only files that match another pattern came",
        Lack::Changes => "its mtime is older than the one that was asked for",
        Lack::Bytes => "it came as text that cannot be turned back into the file's bytes",
    }
}

fn first_prompt(question: &AgentQuestion) -> String {
    let path = quoted(question.path.as_str());
    let failures = format!(
        "If it does not exist, reply with: File not found: {path}\n\
         If you may not read it, reply with: Permission denied: {path}"
    );
    match &question.subject {
        Subject::File {
            shape: ContentShape::Bytes,
            ..
        } => format!(
            "Read the file {path} of the project and reply with its bytes in standard base64, without line breaks.\n{failures}"
        ),
        Subject::File { encoding, .. } => {
            let tried: Vec<String> = encoding.with_fallbacks().map(|one| one.name()).collect();
            let encodings = tried.join(", then ");
            format!(
                "Read the file {path} of the project as text ({encodings}) and reply with exactly its content. \
                 You may instead hand it over with the tool guide_cache_file or guide_read_file.\n{failures}\n\
                 If it is not text in any of these encodings, reply with: Encoding error: {path}"
            )
        }
        Subject::Directory { recursive, pattern } => {
            listing_prompt(&path, *recursive, pattern.as_deref(), &failures)
        }
    }
}

fn listing_prompt(path: &str, recursive: bool, pattern: Option<&str>, failures: &str) -> String {
    let depth = match recursive {
        true => format!(
            " and everything below it, with the entries of each directory under \"children\", {LEVELS_MAX} levels at most"
        ),
        false => String::new(),
    };
    let filter = pattern.map_or_else(String::new, |pattern| {
        format!(
            " List only files that match the glob {}; directories stay.",
            quoted(pattern)
        )
    });
    format!(
        "List the directory {path} of the project{depth}. Reply with a JSON array of \
         {{\"name\", \"type\": \"file\"|\"directory\"|\"symlink\", \"size\", \"mtime\"}} without other fields, size in bytes, \
         mtime in seconds since the epoch. A name is one name without slashes and comes once in its directory. Leave out links \
         that lead outside.{filter} You may instead hand it over with the tool guide_list_directory.\n{failures}"
    )
}

/// How an entry came to be.
pub(super) fn status(status: StoreStatus) -> &'static str {
    match status {
        StoreStatus::Cached => "cached",
        StoreStatus::Updated => "updated",
    }
}

/// Tells whether a warning means that the result is not all that was asked for.
pub(super) fn is_partial(warning: &Warning) -> bool {
    !matches!(warning, Warning::Evicted(_))
}

/// Marks a message as a partial success.
pub(super) fn partial(message: &str) -> String {
    format!("Partial success, see warnings: {message}")
}

/// A warning in words.
pub(super) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::SizeDiffers { path, told, found } => format!(
            "{path}: metadata.size says {told} bytes, but the content has {found}; the content was kept. Send it again if it was cut."
        ),
        Warning::Unchecked { chunk } => format!(
            "chunk {chunk} came without chunk_hash and content_hash: it could not be checked"
        ),
        Warning::Restarted => {
            "chunk_count changed: the chunks that came before were thrown away; send all of them again".to_owned()
        }
        Warning::Expired => {
            "the upload had expired: the chunks that came before were thrown away; send all of them again".to_owned()
        }
        Warning::LeftOut { files, pattern } => {
            format!("{files} files do not match {pattern} and were left out")
        }
        Warning::Shallow => {
            "some directories came without their children: ask for those directories themselves".to_owned()
        }
        Warning::Fenced => {
            "the whole answer is one code fence, which was kept: if it is not in the file, hand the file over with guide_cache_file"
                .to_owned()
        }
        Warning::Fallback { wanted, used } => format!(
            "the content is not valid {}; it was read as {}: check the characters, or ask with binary: true",
            wanted.name(),
            used.name()
        ),
        Warning::Evicted(evicted) => format!(
            "the cache was full: {} entries with {} bytes, the least recently used, were thrown out",
            evicted.entries, evicted.bytes
        ),
    }
}

/// Says which chunks of a file to send next.
pub(super) fn chunks_missing(path: &str, received: u32, count: u32, missing: &[u32]) -> String {
    let named: Vec<String> = missing.iter().map(u32::to_string).collect();
    let more = if (count - received) as usize > missing.len() {
        ", …"
    } else {
        ""
    };
    format!(
        "{received} of {count} chunks of {path} have come; send the others (chunk_index {}{more})",
        named.join(", ")
    )
}
