//! `clients`: who may call, and what each client may do in each root.

use sandbox::View;
use sha2::{Digest, Sha256};
use toolset::{CallRate, Right, Rights};

use super::config_file::{Field, allowed_tools, at_least_one, distinct, rate_with};
use super::table;
use super::value::{ReadContext, Reading};
use super::{AllowedTools, Toolset};

/// The name of the client on standard input and output.
pub(crate) const STDIO_CLIENT: &str = "stdio";
/// The fewest characters a token may have.
pub(crate) const MIN_TOKEN: usize = 16;
/// The longest name of a client.
const MAX_NAME: usize = 64;
/// The prefix of a digest in the file.
const DIGEST_PREFIX: &str = "sha256:";
const DIGEST: &str =
    "a digest such as sha256:9f86d0… (64 hex digits); `mcp-filesystem token NAME` makes one";
const NAME: &str = "a name of letters, digits, dots, dashes and underscores, at most 64";

/// The SHA-256 digest of a token.
pub(crate) type TokenDigest = [u8; 32];

/// One client and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// Its name in log, audit, history and metrics.
    pub(crate) name: String,
    /// The digests of its tokens.
    pub(crate) tokens: Vec<TokenDigest>,
    /// The access tokens that are its own.
    pub(crate) oauth: Option<OAuthSelector>,
    /// The roots it may use, by name, and how.
    pub(crate) roots: Vec<(String, ClientRoot)>,
    /// The tool sets it may use; none is every set that is served.
    pub(crate) toolsets: Option<Vec<Toolset>>,
    /// How many calls it may make; none is what `limits.rate` says.
    pub(crate) rate: Option<CallRate>,
    /// How many of its calls run at once.
    pub(crate) max_calls: Option<usize>,
}

/// What a client may do in one root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientRoot {
    /// The tools, inside the root's own allowlist.
    pub(crate) tools: AllowedTools,
    /// The globs of what it can see; none means everything.
    pub(crate) paths: Vec<String>,
    /// What it may do to files.
    pub(crate) rights: Rights,
}

/// Selects the access tokens of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OAuthSelector {
    /// Those with this scope.
    Scope(String),
    /// Those of this subject.
    Subject(String),
    /// Those with this claim of this value.
    Claim(String, String),
}

impl ClientSettings {
    /// What it may do in a root, if anything.
    pub(crate) fn root(&self, name: &str) -> Option<&ClientRoot> {
        let mut roots = self.roots.iter();
        roots.find(|(own, _)| own == name).map(|(_, root)| root)
    }
}

/// The digest that identifies a token.
pub(crate) fn digest_of(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// A digest in the form of the file.
pub(crate) fn digest_text(digest: &TokenDigest) -> String {
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    format!("{DIGEST_PREFIX}{}", digits.collect::<String>())
}

/// Tells whether a text can be the name of a client.
pub(crate) fn is_client_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(allowed)
}

/// Reads the list of clients. No two have the same name or token.
pub(crate) fn clients(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Reading<Vec<ClientSettings>> {
    let clients = field.list_of(|item| client(item, context))?;
    let names = clients.iter().map(|client| client.name.as_str());
    distinct(names, "client name", |index| {
        field.path().item(index).key("name")
    })?;
    let tokens = clients.iter().enumerate().flat_map(|(index, client)| {
        let path = field.path().item(index).key("tokens");
        let tokens = client.tokens.iter().enumerate();
        tokens.map(move |(at, token)| (digest_text(token), path.item(at)))
    });
    let (digests, paths): (Vec<_>, Vec<_>) = tokens.unzip();
    distinct(digests.iter().map(String::as_str), "token", |index| {
        paths.get(index).cloned().unwrap_or_default()
    })?;
    Ok(clients)
}

/// Reads one client.
pub(crate) fn client(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<ClientSettings> {
    let mut section = field.section()?;
    let client = ClientSettings {
        name: section.require(&table::CLIENT_NAME, name)?,
        tokens: section.find_or(&table::CLIENT_TOKENS, Vec::new(), |field| {
            field.secret().list_of(digest)
        })?,
        oauth: section.find(&table::CLIENT_OAUTH, selector)?,
        roots: section.require(&table::CLIENT_ROOTS, |field| roots(field, context))?,
        toolsets: section.find(&table::CLIENT_TOOLSETS, |field| {
            at_least_one(field, "at least one tool set", Field::word)
        })?,
        rate: section.find(&table::CLIENT_RATE, rate)?,
        max_calls: section.find(&table::CLIENT_MAX_CALLS, max_calls)?,
    };
    section.finish()?;
    Ok(client)
}

fn rate(field: &Field<'_>) -> Reading<CallRate> {
    let keys = [&table::CLIENT_RATE_SECOND, &table::CLIENT_RATE_BURST];
    rate_with(field, keys)
}

fn max_calls(field: &Field<'_>) -> Reading<usize> {
    let most = field.number(table::CLIENT_MAX_CALLS.bounds())?;
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}

fn name(field: &Field<'_>) -> Reading<String> {
    let name = field.text()?;
    if is_client_name(name) {
        return Ok(name.to_owned());
    }
    Err(field.unexpected(NAME))
}

fn digest(field: &Field<'_>) -> Reading<TokenDigest> {
    let wrong = || field.unexpected(DIGEST);
    let digits = field
        .text()?
        .strip_prefix(DIGEST_PREFIX)
        .ok_or_else(wrong)?;
    parse_digits(digits).ok_or_else(wrong)
}

fn parse_digits(digits: &str) -> Option<TokenDigest> {
    let mut digest = [0; 32];
    if digits.len() != 2 * digest.len() || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(digest)
}

fn roots(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Vec<(String, ClientRoot)>> {
    let known = || context.roots.iter().map(|root| root.name.clone());
    let root = |(name, value): &(&str, Field<'_>)| {
        if !known().any(|own| own == *name) {
            return Err(value.unknown("root", name, known().collect()));
        }
        Ok(((*name).to_owned(), client_root(value)?))
    };
    field.entries()?.iter().map(root).collect()
}

fn client_root(field: &Field<'_>) -> Reading<ClientRoot> {
    let mut section = field.section()?;
    let root = ClientRoot {
        tools: section.find_or(&table::CLIENT_ROOT_TOOLS, AllowedTools::All, allowed_tools)?,
        paths: section.find_or(&table::CLIENT_ROOT_PATHS, Vec::new(), paths)?,
        rights: section.find_or(&table::CLIENT_ROOT_RIGHTS, Rights::ALL, rights)?,
    };
    section.finish()?;
    Ok(root)
}

/// Reads the globs of what a client can see.
fn paths(field: &Field<'_>) -> Reading<Vec<String>> {
    let globs = at_least_one(field, "at least one glob", |item| {
        item.text().map(str::to_owned)
    })?;
    match View::new(&globs, &[]) {
        Ok(_) => Ok(globs),
        Err(fault) => Err(field.unexpected(format!("globs of what exists; {fault}"))),
    }
}

/// Reads a list of rights. Without `read` a client could do nothing, because most tools look before they change.
fn rights(field: &Field<'_>) -> Reading<Rights> {
    let rights: Vec<Right> = at_least_one(field, "at least one right", Field::word)?;
    let rights = Rights::of(&rights);
    if rights.has(Right::Read) {
        return Ok(rights);
    }
    Err(field.unexpected("a list with read in it: what may be changed has to be seen"))
}

fn selector(field: &Field<'_>) -> Reading<OAuthSelector> {
    let mut section = field.section()?;
    let mut text =
        |key: &table::InnerKey| section.find(key, |field| field.text().map(str::to_owned));
    let scope = text(&table::CLIENT_OAUTH_SCOPE)?;
    let subject = text(&table::CLIENT_OAUTH_SUBJECT)?;
    let claim = section.find(&table::CLIENT_OAUTH_CLAIM, claim)?;
    section.finish()?;
    match (scope, subject, claim) {
        (Some(scope), None, None) => Ok(OAuthSelector::Scope(scope)),
        (None, Some(subject), None) => Ok(OAuthSelector::Subject(subject)),
        (None, None, Some((name, value))) => Ok(OAuthSelector::Claim(name, value)),
        _ => Err(field.unexpected("one of scope, subject and claim")),
    }
}

fn claim(field: &Field<'_>) -> Reading<(String, String)> {
    let entries = field.entries()?;
    match entries.as_slice() {
        [(name, value)] => Ok(((*name).to_owned(), value.text()?.to_owned())),
        _ => Err(field.unexpected("one claim and its value, such as {department: docs}")),
    }
}
