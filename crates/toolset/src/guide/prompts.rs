//! The set's words for success: prompts to the agent, messages, warnings.

use guide::{AgentQuestion, ContentShape, LEVELS_MAX, Lack, StoreStatus, Subject, Warning};
use serde_json::{Value, json};

/// The upper bound for the length of an answer: no model writes more at once.
const TOKENS_MAX: u64 = 100_000;
/// The length that every answer may have: failures and small files fit.
const TOKENS_MIN: u64 = 1024;
/// How long the content of a file of unknown size may be.
const TOKENS_OF_FILE: u64 = 16_384;
/// How long the listing of one directory may be.
const TOKENS_OF_DIRECTORY: u64 = 8192;

/// The role of the agent.
pub(super) const SYSTEM_PROMPT: &str = "You have access to the project's files and pass them on exactly as they are. Reply \
    with what was asked for and nothing else: no introduction, no comment, no code fence. If you cannot read the project's \
    files, say so; never make up content.";

/// The question in words.
pub(super) fn prompt(question: &AgentQuestion, number: u32) -> String {
    match question.lack {
        Some(lack) => format!(
            "{}\nWhat was handed over just now will not do: {}.",
            first_prompt(question, number),
            lacking(lack)
        ),
        None => first_prompt(question, number),
    }
}

/// The question for callbacks that are programs.
pub(super) fn meta(question: &AgentQuestion, number: u32) -> Value {
    let mut meta = match &question.subject {
        Subject::File { shape, encoding } => json!({
            "operation": "read_file",
            "encoding": encoding.name(),
            "binary": *shape == ContentShape::Bytes,
        }),
        Subject::Directory { recursive, pattern } => json!({
            "operation": "list_directory",
            "recursive": recursive,
            "pattern": pattern,
        }),
    };
    meta["path"] = question.path.as_str().into();
    meta["marker"] = marker(question, number).into();
    if let Some(lack) = question.lack {
        meta["lacking"] = lacking(lack).into();
    }
    meta
}

/// How long the answer may be, in tokens. A token is two bytes of text at least, and one of base64.
pub(super) fn max_tokens(question: &AgentQuestion) -> u32 {
    let (tokens, usual) = match &question.subject {
        Subject::File { shape, .. } => {
            let by_size = question.size.map(|size| match shape {
                ContentShape::Text => size / 2,
                ContentShape::Bytes => size.saturating_mul(4) / 3,
            });
            (by_size, TOKENS_OF_FILE)
        }
        Subject::Directory { recursive, .. } => {
            let levels = if *recursive { 4 } else { 1 };
            (None, TOKENS_OF_DIRECTORY * levels)
        }
    };
    let tokens = tokens.map_or(usual, |tokens| tokens.saturating_add(TOKENS_MIN));
    u32::try_from(tokens.min(TOKENS_MAX)).unwrap_or(u32::MAX)
}

/// The text that the answer has to begin with.
pub(super) fn marker(question: &AgentQuestion, number: u32) -> String {
    let word = match question.subject {
        Subject::File { .. } => "FILE",
        Subject::Directory { .. } => "DIRECTORY",
    };
    format!("{word} {number:08x} {}", quoted(question.path.as_str()))
}

/// The answer if there is no such file or directory.
pub(super) fn not_found(question: &AgentQuestion) -> String {
    let what = match question.subject {
        Subject::File { .. } => "File",
        Subject::Directory { .. } => "Directory",
    };
    format!("{what} not found: {}", quoted(question.path.as_str()))
}

/// The answer if the agent may not read it.
pub(super) fn denied(question: &AgentQuestion) -> String {
    format!("Permission denied: {}", quoted(question.path.as_str()))
}

/// The answer if the file is not text.
pub(super) fn not_text(question: &AgentQuestion) -> String {
    format!("Encoding error: {}", quoted(question.path.as_str()))
}

/// Quotes a client's text in a prompt, so that it cannot pass for an instruction of ours.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What is missing from a hand-over.
pub(super) fn lacking(lack: Lack) -> &'static str {
    match lack {
        Lack::Children => "directories came without their children",
        Lack::Files => "only files that match another pattern came",
        Lack::Changes => "its mtime is older than the one that was asked for",
        Lack::Bytes => "it came as text that cannot be turned back into the file's bytes",
    }
}

fn first_prompt(question: &AgentQuestion, number: u32) -> String {
    let path = quoted(question.path.as_str());
    let marker = marker(question, number);
    let failures = format!(
        "If it does not exist, reply with this line alone:\n{}\nIf you may not read it, reply with this line alone:\n{}",
        not_found(question),
        denied(question)
    );
    let begin = format!(
        "Begin your reply with this line, exactly as it is:\n{marker}\nAppend mtime=SECONDS (since the epoch) and size=BYTES \
         of the file to that line if you know them."
    );
    match &question.subject {
        Subject::File {
            shape: ContentShape::Bytes,
            ..
        } => format!(
            "Read the file {path} of the project. {begin} On the next line write its bytes in standard base64, without line \
             breaks.\n{failures}"
        ),
        Subject::File { encoding, .. } => {
            let tried: Vec<String> = encoding.with_fallbacks().map(|one| one.name()).collect();
            let encodings = tried.join(", then ");
            format!(
                "Read the file {path} of the project as text ({encodings}). {begin} On the lines after it write exactly the \
                 file's content. You may instead hand it over, with its mtime and size, by the tool guide_cache_file or \
                 guide_read_file.\n{failures}\n\
                 If it is not text in any of these encodings, reply with this line alone:\n{}",
                not_text(question)
            )
        }
        Subject::Directory { recursive, pattern } => {
            let pattern = pattern.as_deref();
            listing_prompt(&path, &marker, *recursive, pattern, &failures)
        }
    }
}

fn listing_prompt(
    path: &str,
    marker: &str,
    recursive: bool,
    pattern: Option<&str>,
    failures: &str,
) -> String {
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
        "List the directory {path} of the project{depth}. Begin your reply with this line, exactly as it is:\n{marker}\n\
         On the next line write a JSON array of {{\"name\", \"type\": \"file\"|\"directory\"|\"symlink\", \"size\", \"mtime\"}} without other fields, size in bytes, \
         mtime in seconds since the epoch. A name is one name without slashes and comes once in its directory. Leave out links \
         that lead outside.{filter} You may instead hand it over by the tool guide_list_directory.\n{failures}"
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
        Warning::BytesUnknown { path, encoding } => format!(
            "{path}: the bytes of text in {} are not known here, so size and content_hash are those of the text in UTF-8; hand \
             the file over with binary: true if you need its own",
            encoding.name()
        ),
        Warning::NotRechecked { age } => format!(
            "it was handed over {} seconds ago without mtime, and nobody can be asked whether it has changed: hand it over again \
             if it has",
            age.as_secs()
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
