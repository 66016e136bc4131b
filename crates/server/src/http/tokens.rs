//! The bearer tokens that let clients in. Only their digests are kept, and no message ever shows a token.

use std::hint::black_box;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

use crate::settings::{ClientSettings, MIN_TOKEN, TokenDigest, digest_of};

/// The tokens that let clients in, each with the name of its client.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    known: Vec<KnownToken>,
}

#[derive(Clone)]
struct KnownToken {
    digest: TokenDigest,
    client: Arc<str>,
    is_named: bool,
}

/// The client that holds a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    /// The operator's name for the client, or one made of the digest for a token of a file.
    pub(crate) client: Arc<str>,
    /// Whether the settings name the client.
    pub(crate) is_named: bool,
    /// Identifies the token.
    pub(crate) digest: TokenDigest,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// It has no token.
    Missing,
    /// Its token is not one of ours.
    Wrong,
}

impl Tokens {
    /// Reads one token a line; `#` begins a comment line. A token is named by the first digits of its digest, so that
    /// it keeps its name when other lines are added or removed.
    pub(crate) fn parse(text: &str) -> Result<Tokens, String> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let known = lines.map(|(token, number)| known_token(token, number));
        let known: Vec<KnownToken> = known.collect::<Result<_, _>>()?;
        if known.is_empty() {
            return Err("there is no token in it".to_owned());
        }
        Ok(Tokens { known })
    }

    /// Adds the tokens of the clients that the settings name.
    pub(crate) fn with_clients(mut self, clients: &[ClientSettings]) -> Result<Tokens, String> {
        for client in clients {
            let name: Arc<str> = client.name.as_str().into();
            for digest in &client.tokens {
                if self.known.iter().any(|known| known.digest == *digest) {
                    return Err(format!(
                        "a token of the client {name} is in it too; a token is one client's alone"
                    ));
                }
                self.known.push(KnownToken {
                    digest: *digest,
                    client: Arc::clone(&name),
                    is_named: true,
                });
            }
        }
        Ok(self)
    }

    /// The number of tokens.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    /// The keys of the settings that the tokens come from.
    pub(crate) fn sources(&self) -> &'static str {
        let has = |is_named| self.known.iter().any(|known| known.is_named == is_named);
        match (has(false), has(true)) {
            (false, true) => "clients in the configuration",
            (true, true) => "server.bearer_tokens_file, or of clients in the configuration",
            (_, false) => "server.bearer_tokens_file",
        }
    }

    /// The holder of each token.
    pub(crate) fn holders(&self) -> Vec<TokenHolder> {
        let known = self.known.iter();
        known.map(KnownToken::holder).collect()
    }

    /// Finds the holder of the token that a request carries. Security: a wrong token takes as long as a right one.
    pub(crate) fn holder(&self, headers: &HeaderMap) -> Result<TokenHolder, TokenRefusal> {
        let digest = digest_of(bearer_token(headers)?);
        let mut found = None;
        for known in &self.known {
            if same(&known.digest, &digest) {
                found = Some(known);
            }
        }
        found.map(KnownToken::holder).ok_or(TokenRefusal::Wrong)
    }
}

impl KnownToken {
    fn holder(&self) -> TokenHolder {
        TokenHolder {
            client: Arc::clone(&self.client),
            is_named: self.is_named,
            digest: self.digest,
        }
    }
}

fn known_token(token: &str, line: usize) -> Result<KnownToken, String> {
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "line {line}: a token has no spaces and only ASCII characters"
        ));
    }
    if token.len() < MIN_TOKEN {
        return Err(format!(
            "line {line}: a token has at least {MIN_TOKEN} characters; `mcp-filesystem token NAME` makes one"
        ));
    }
    let digest = digest_of(token);
    let [a, b, c, d, ..] = digest;
    Ok(KnownToken {
        digest,
        client: format!("token {a:02x}{b:02x}{c:02x}{d:02x}").into(),
        is_named: false,
    })
}

/// The token that a request carries.
pub(super) fn bearer_token(headers: &HeaderMap) -> Result<&str, TokenRefusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(TokenRefusal::Missing)?;
    if values.next().is_some() {
        return Err(TokenRefusal::Wrong);
    }
    let token = value.to_str().ok().and_then(bearer);
    token.ok_or(TokenRefusal::Wrong)
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}

/// Compares in constant time: it does not stop at the first difference.
fn same(one: &TokenDigest, other: &TokenDigest) -> bool {
    let difference = one.iter().zip(other);
    let difference = difference.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# comment\n\n first-token-of-two \r\nsecond-token-of-two\n";

    fn holder(headers: &[&str]) -> Result<String, TokenRefusal> {
        let tokens = Tokens::parse(FILE).unwrap();
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, value.parse().unwrap());
        }
        tokens.holder(&map).map(|holder| holder.client.to_string())
    }

    #[test]
    fn a_token_of_the_file_keeps_its_name_when_others_go() {
        let first = holder(&["Bearer first-token-of-two"]).unwrap();
        let second = holder(&["bearer  second-token-of-two"]).unwrap();
        assert!(first.starts_with("token ") && first != second, "{first}");
        let left = Tokens::parse("second-token-of-two").unwrap();
        let mut map = HeaderMap::new();
        map.append(AUTHORIZATION, "Bearer second-token-of-two".parse().unwrap());
        assert_eq!(*left.holder(&map).unwrap().client, *second);
    }

    #[test]
    fn nothing_else_does() {
        assert_eq!(holder(&[]), Err(TokenRefusal::Missing));
        for value in [
            "Bearer first-token-of-tw",
            "Bearer first-token-of-two2",
            "Bearer",
            "Bearer ",
            "Basic first-token-of-two",
            "first-token-of-two",
            "Bearer # comment",
        ] {
            assert_eq!(holder(&[value]), Err(TokenRefusal::Wrong), "{value}");
        }
        let twice = ["Bearer first-token-of-two", "Bearer first-token-of-two"];
        assert_eq!(holder(&twice), Err(TokenRefusal::Wrong));
    }

    #[test]
    fn a_mistake_in_a_file_shows_nothing_of_it() {
        assert!(Tokens::parse("# none\n\n").is_err());
        for (wrong, reason) in [("not good at all, no", "spaces"), ("fifteen-letters", "16")] {
            let text = format!("a-good-token-of-ours\n{wrong}");
            let fault = Tokens::parse(&text).err().unwrap();
            assert!(
                fault.starts_with("line 2:") && fault.contains(reason),
                "{fault}"
            );
            assert!(!fault.contains(wrong), "{fault}");
        }
    }
}
