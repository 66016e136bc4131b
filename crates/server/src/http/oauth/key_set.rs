//! The keys of an issuer (a JWK Set) that can sign tokens.

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

/// The keys at one moment.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<IssuerKey>);

#[derive(Debug)]
struct IssuerKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a JWK Set. Keys that cannot sign tokens are left out; a set without any other is a mistake.
    pub(super) fn parse(text: &[u8]) -> Result<KeySet, &'static str> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|_| "it is not a JWK Set (a JSON object with `keys`)")?;
        let keys: Vec<IssuerKey> = document.keys.into_iter().filter_map(usable).collect();
        if keys.is_empty() {
            return Err("no key in it can check a signature (RSA, P-256, P-384 or Ed25519)");
        }
        Ok(KeySet(keys))
    }

    /// Whether there is no key yet.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of keys.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The key that a token says it is signed with. A token without a key's id fits if only one key does.
    pub(super) fn find(&self, header: &Header) -> Option<&DecodingKey> {
        let fits = |own: &&IssuerKey| {
            let named = header.kid.is_none() || own.id == header.kid;
            named && own.algorithms.contains(&header.alg)
        };
        let mut fitting = self.0.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Some(&only.key),
            _ => None,
        }
    }
}

fn usable(value: Value) -> Option<IssuerKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let common = &jwk.common;
    let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let operations = common.key_operations.as_ref();
    let verifies = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
    if !signs || !verifies {
        return None;
    }
    let mut algorithms = algorithms_of(&jwk.algorithm);
    if let Some(only) = common.key_algorithm {
        algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    (!algorithms.is_empty()).then(|| IssuerKey {
        id: jwk.common.key_id.clone(),
        algorithms,
        key,
    })
}

/// The algorithms a key can be used for. Security: none for shared secrets, with which every reader could sign.
fn algorithms_of(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ec(id: &str) -> Value {
        json!({"kty": "EC", "crv": "P-256", "kid": id, "x": "AA", "y": "AA"})
    }

    fn header(algorithm: Algorithm, id: Option<&str>) -> Header {
        Header {
            kid: id.map(str::to_owned),
            ..Header::new(algorithm)
        }
    }

    fn parsed(keys: Value) -> Result<KeySet, &'static str> {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes())
    }

    #[test]
    fn a_key_is_found_by_its_id_and_for_its_algorithm_only() {
        let keys = parsed(json!([ec("a"), ec("b")])).unwrap();
        assert!(keys.find(&header(Algorithm::ES256, Some("a"))).is_some());
        assert!(keys.find(&header(Algorithm::ES256, Some("c"))).is_none());
        assert!(
            keys.find(&header(Algorithm::ES256, None)).is_none(),
            "two fit"
        );
        for other in [
            Algorithm::ES384,
            Algorithm::RS256,
            Algorithm::HS256,
            Algorithm::EdDSA,
        ] {
            assert!(keys.find(&header(other, Some("a"))).is_none(), "{other:?}");
        }
        let one = parsed(json!([ec("a")])).unwrap();
        assert!(one.find(&header(Algorithm::ES256, None)).is_some());
    }

    #[test]
    fn what_cannot_sign_is_left_out() {
        let keys = json!([
            {"kty": "oct", "kid": "a", "k": "c2VjcmV0"},
            {"kty": "EC", "crv": "P-521", "kid": "a", "x": "AA", "y": "AA"},
            {"kty": "EC", "crv": "P-256", "kid": "a", "x": "AA", "y": "AA", "use": "enc"},
            {"kty": "EC", "crv": "P-256", "kid": "a", "x": "AA", "y": "AA", "alg": "RS256"},
            {"kty": "EC", "crv": "P-256", "kid": "a", "x": "AA", "y": "AA", "key_ops": ["sign"]},
            {"kty": "AKP", "kid": "a"},
            {"kid": 7},
            "text",
        ]);
        assert!(parsed(keys).is_err());
        assert!(KeySet::parse(b"[]").is_err());
        assert!(KeySet::parse(b"<html>").is_err());
        assert_eq!(parsed(json!([ec("b"), {"kid": 7}])).unwrap().count(), 1);
    }
}
