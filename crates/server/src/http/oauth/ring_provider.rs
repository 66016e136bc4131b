//! Signatures of access tokens, checked by ring: TLS has it in the tree already.
//!
//! Only algorithms with a public and a private key are here. What a token says about HMAC or `none` finds no verifier.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    // For keys that are written; here they are only read.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes this the provider of the process. Doing it again changes nothing.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// The check that belongs to an algorithm.
enum Check {
    Rsa(&'static RsaParameters),
    Plain(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let (family, check) =
        check_of(*algorithm).ok_or_else(|| Error::from(ErrorKind::UnsupportedAlgorithm))?;
    // Security: a key is only ever used for its own kind of algorithm.
    if key.family() != family {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        check,
        key: key.clone(),
    }))
}

fn check_of(algorithm: Algorithm) -> Option<(AlgorithmFamily, Check)> {
    use AlgorithmFamily::{Ec, Ed, Rsa};
    Some(match algorithm {
        Algorithm::RS256 => (Rsa, Check::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
        Algorithm::RS384 => (Rsa, Check::Rsa(&RSA_PKCS1_2048_8192_SHA384)),
        Algorithm::RS512 => (Rsa, Check::Rsa(&RSA_PKCS1_2048_8192_SHA512)),
        Algorithm::PS256 => (Rsa, Check::Rsa(&RSA_PSS_2048_8192_SHA256)),
        Algorithm::PS384 => (Rsa, Check::Rsa(&RSA_PSS_2048_8192_SHA384)),
        Algorithm::PS512 => (Rsa, Check::Rsa(&RSA_PSS_2048_8192_SHA512)),
        Algorithm::ES256 => (Ec, Check::Plain(&ECDSA_P256_SHA256_FIXED)),
        Algorithm::ES384 => (Ec, Check::Plain(&ECDSA_P384_SHA384_FIXED)),
        Algorithm::EdDSA => (Ed, Check::Plain(&ED25519)),
        _ => return None,
    })
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (&self.check, self.key.kind()) {
            (Check::Rsa(check), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(check, message, signature)
            }
            (Check::Rsa(check), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*check, key).verify(message, signature)
            }
            (Check::Plain(check), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*check, key).verify(message, signature)
            }
            (Check::Plain(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                Err(ring::error::Unspecified)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
