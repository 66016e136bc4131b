//! The bearer tokens that let clients in. Only their digests are kept, and no message ever shows a token.

use std::hint::black_box;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

/// The digest of a token, which identifies it.
pub(crate) type TokenDigest = [u8; 32];

/// The tokens of one file.
#[derive(Clone)]
pub(crate) struct Tokens {
    digests: Vec<TokenDigest>,
}

/// The client that holds a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    /// The token's position in the file, from 1: how the operator identifies it.
    pub(crate) number: usize,
    /// Identifies the holder even when the file changes.
    pub(crate) digest: TokenDigest,
}

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// It carries no token.
    Missing,
    /// Its token is not one of ours.
    Wrong,
}

impl Tokens {
    /// Reads one token a line; `#` begins a comment line.
    pub(crate) fn parse(text: &str) -> Result<Tokens, String> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let mut digests = Vec::new();
        for (index, token) in lines {
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "line {}: a token has no spaces and only ASCII characters",
                    index + 1
                ));
            }
            digests.push(Sha256::digest(token).into());
        }
        if digests.is_empty() {
            return Err("there is no token in it".to_owned());
        }
        Ok(Tokens { digests })
    }

    /// The number of tokens.
    pub(crate) fn count(&self) -> usize {
        self.digests.len()
    }

    /// Finds the holder of the token that a request carries. Security: a wrong token takes as long as a right one.
    pub(crate) fn holder(&self, headers: &HeaderMap) -> Result<TokenHolder, TokenRefusal> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().ok_or(TokenRefusal::Missing)?;
        if values.next().is_some() {
            return Err(TokenRefusal::Wrong);
        }
        let token = value.to_str().ok().and_then(bearer);
        let digest: TokenDigest = Sha256::digest(token.ok_or(TokenRefusal::Wrong)?).into();
        let mut found = None;
        for (index, own) in self.digests.iter().enumerate() {
            if same(own, &digest) {
                found = Some(index + 1);
            }
        }
        let number = found.ok_or(TokenRefusal::Wrong)?;
        Ok(TokenHolder { number, digest })
    }
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

    fn holder(headers: &[&str]) -> Result<usize, TokenRefusal> {
        let tokens = Tokens::parse("# comment\n\n first-token \r\nsecond-token\n").unwrap();
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, value.parse().unwrap());
        }
        tokens.holder(&map).map(|holder| holder.number)
    }

    #[test]
    fn a_token_of_the_file_has_a_number() {
        assert_eq!(holder(&["Bearer first-token"]), Ok(1));
        assert_eq!(holder(&["bearer  second-token"]), Ok(2));
    }

    #[test]
    fn nothing_else_does() {
        assert_eq!(holder(&[]), Err(TokenRefusal::Missing));
        for value in [
            "Bearer first-toke",
            "Bearer first-token2",
            "Bearer",
            "Bearer ",
            "Basic first-token",
            "first-token",
            "Bearer # comment",
        ] {
            assert_eq!(holder(&[value]), Err(TokenRefusal::Wrong), "{value}");
        }
        let twice = ["Bearer first-token", "Bearer first-token"];
        assert_eq!(holder(&twice), Err(TokenRefusal::Wrong));
    }

    #[test]
    fn a_file_without_a_token_is_a_mistake_that_shows_nothing_of_it() {
        assert!(Tokens::parse("# none\n\n").is_err());
        let fault = Tokens::parse("good\nnot good").err().unwrap();
        assert!(
            fault.starts_with("line 2:") && !fault.contains("not good"),
            "{fault}"
        );
    }
}
