//! Tokens of an issuer that is made here, good ones and every kind of bad one.

use std::io::Write;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://login.example.org";
const SERVER: &str = "https://files.example.org";

/// Base64 as tokens have it.
fn base64(bytes: impl AsRef<[u8]>) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.as_ref().chunks(3) {
        let number = three
            .iter()
            .fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            text.push(LETTERS[(number >> (18 - 6 * place)) as usize & 63] as char);
        }
    }
    text
}

struct Issuer {
    key: EcdsaKeyPair,
    edwards: Ed25519KeyPair,
}

impl Issuer {
    fn new() -> Issuer {
        let random = SystemRandom::new();
        let own = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Issuer {
            key: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, own.as_ref(), &random)
                .unwrap(),
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap(),
        }
    }

    fn document(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({"keys": [
            {"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": base64(&point[1..33]), "y": base64(&point[33..])},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": base64(self.edwards.public_key())},
        ]})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            base64(header.to_string()),
            base64(claims.to_string())
        );
        let signature = match header["alg"].as_str() {
            Some("EdDSA") => self.edwards.sign(message.as_bytes()).as_ref().to_vec(),
            _ => {
                let random = SystemRandom::new();
                self.key
                    .sign(&random, message.as_bytes())
                    .unwrap()
                    .as_ref()
                    .to_vec()
            }
        };
        format!("{message}.{}", base64(signature))
    }
}

fn server(issuer: &Issuer) -> ResourceServer {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}", issuer.document()).unwrap();
    let text = format!(
        "auth: {{oauth: {{issuer: {ISSUER}, public_url: {SERVER}/, audience: [api], jwks_file: {:?}}}}}",
        file.path()
    );
    let partial = crate::settings::config_file::parse(&text, std::path::Path::new("/")).unwrap();
    ResourceServer::open(&partial.oauth.flatten().unwrap(), &[]).unwrap()
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": SERVER, "sub": "alice", "exp": now() + 600, "scope": "a b"})
}

fn header() -> Value {
    json!({"alg": "ES256", "kid": "ec", "typ": "at+jwt"})
}

/// A value with one key changed, or removed by `null`.
fn with(mut value: Value, key: &str, new: Value) -> Value {
    let map = value.as_object_mut().unwrap();
    match new {
        Value::Null => drop(map.remove(key)),
        new => drop(map.insert(key.to_owned(), new)),
    }
    value
}

async fn judged(token: &str) -> impl AsyncFn(&ResourceServer) -> Result<TokenClaims, OAuthRefusal> {
    let token = token.to_owned();
    async move |server: &ResourceServer| {
        server
            .judge(&token, &["/mcp".to_owned(), "/mcp/workspace".to_owned()])
            .await
    }
}

async fn fault(issuer: &Issuer, header: &Value, claims: &Value) -> Option<OAuthRefusal> {
    let token = issuer.sign(header, claims);
    judged(&token).await(&server(issuer)).await.err()
}

#[tokio::test]
async fn a_good_token_tells_who_holds_it() {
    let issuer = Issuer::new();
    let server = server(&issuer);
    for header in [header(), json!({"alg": "EdDSA", "kid": "ed"})] {
        let token = issuer.sign(&header, &claims());
        let judged = judged(&token).await(&server).await.unwrap();
        assert_eq!(judged.subject, "alice");
        assert_eq!(judged.scopes, ["a", "b"]);
    }
    let audiences = [
        json!("https://files.example.org/"),
        json!("HTTPS://Files.example.org"),
        json!("https://files.example.org/mcp"),
        json!(["other", "https://files.example.org/mcp/workspace"]),
        json!("api"),
    ];
    for audience in audiences {
        assert_eq!(
            fault(&issuer, &header(), &with(claims(), "aud", audience.clone())).await,
            None,
            "{audience}"
        );
    }
}

#[tokio::test]
async fn owners_are_subjects_of_an_issuer() {
    let issuer = Issuer::new();
    let server = server(&issuer);
    let owner = async |claims: Value| {
        let token = issuer.sign(&header(), &claims);
        judged(&token).await(&server).await.unwrap().owner
    };
    let alice = owner(claims()).await;
    assert_eq!(alice, owner(with(claims(), "scope", json!("c"))).await);
    assert_ne!(alice, owner(with(claims(), "sub", json!("bob"))).await);
    let program = with(
        with(claims(), "sub", Value::Null),
        "client_id",
        json!("alice"),
    );
    assert_ne!(
        alice,
        owner(program).await,
        "a program is not the person of the same name"
    );
}

#[tokio::test]
async fn every_bad_claim_is_refused() {
    use TokenFault::{Audience, Claims, Expired, Issuer as OtherIssuer, NotYet, Unchecked};
    let issuer = Issuer::new();
    let bad = [
        ("exp", json!(now() - 120), Expired),
        ("exp", Value::Null, Claims),
        ("exp", json!("soon"), Claims),
        ("nbf", json!(now() + 120), NotYet),
        ("nbf", json!("now"), Claims),
        ("iss", json!("https://evil.example"), OtherIssuer),
        ("iss", json!("https://login.example.org/"), OtherIssuer),
        ("iss", json!([ISSUER]), OtherIssuer),
        ("iss", Value::Null, Claims),
        ("aud", json!("https://other.example.org"), Audience),
        (
            "aud",
            json!("https://files.example.org.evil.example"),
            Audience,
        ),
        (
            "aud",
            json!("https://files.example.org/mcp/guide"),
            Audience,
        ),
        ("aud", json!([]), Audience),
        ("aud", Value::Null, Claims),
        ("sub", Value::Null, Claims),
        ("sub", json!(""), Claims),
        ("sub", json!(7), Claims),
        ("cnf", json!({"jkt": "x"}), Unchecked),
    ];
    for (name, value, expected) in bad {
        let found = fault(&issuer, &header(), &with(claims(), name, value.clone())).await;
        assert_eq!(found, Some(OAuthRefusal::Bad(expected)), "{name}: {value}");
    }
}

#[tokio::test]
async fn every_bad_header_is_refused() {
    use TokenFault::{Algorithm, Kind, NotAToken, TooLong, Unchecked, UnknownKey};
    let issuer = Issuer::new();
    let bad = [
        ("alg", json!("none"), Algorithm),
        ("alg", json!("HS256"), Algorithm),
        ("alg", json!("RS256"), UnknownKey),
        ("alg", json!("ES384"), UnknownKey),
        ("alg", json!("ES512"), Algorithm),
        ("alg", Value::Null, Algorithm),
        ("kid", json!("other"), UnknownKey),
        ("kid", json!("../../etc/passwd"), UnknownKey),
        ("kid", json!("' or 1=1 --\u{0}\n\"\\"), UnknownKey),
        ("kid", json!(["ec"]), Algorithm),
        ("typ", json!("dpop+jwt"), Kind),
        ("crit", json!(["exp"]), Unchecked),
        ("x", json!("x".repeat(20_000)), TooLong),
    ];
    for (name, value, expected) in bad {
        let found = fault(&issuer, &with(header(), name, value.clone()), &claims()).await;
        assert_eq!(found, Some(OAuthRefusal::Bad(expected)), "{name}: {value}");
    }
    let server = server(&issuer);
    for text in ["", "x", "a.b", "a.b.c", "..", "a.b.c.d", "é.é.é"] {
        let found = judged(text).await(&server).await.err();
        assert_eq!(found, Some(OAuthRefusal::Bad(NotAToken)), "{text}");
    }
}

#[tokio::test]
async fn a_changed_token_and_a_stranger_s_are_refused() {
    let issuer = Issuer::new();
    let server = server(&issuer);
    let token = issuer.sign(&header(), &claims());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (head, _) = message.split_once('.').unwrap();
    let other = base64(with(claims(), "sub", json!("root")).to_string());
    let stranger = Issuer::new().sign(&header(), &claims());
    // The header names a key of its own, which nobody may follow.
    let own_key = with(header(), "jwk", Issuer::new().document()["keys"][0].clone());
    let own_key = Issuer::new().sign(&own_key, &claims());
    for token in [
        format!("{head}.{other}.{signature}"),
        format!("{message}."),
        stranger,
        own_key,
    ] {
        let found = judged(&token).await(&server).await.err();
        assert_eq!(
            found,
            Some(OAuthRefusal::Bad(TokenFault::Signature)),
            "{token}"
        );
    }
}

/// The public key as the secret of an HMAC: what works against verifiers that go by the token's algorithm.
#[tokio::test]
async fn the_public_key_is_no_secret() {
    let issuer = Issuer::new();
    let header = with(header(), "alg", json!("HS256"));
    let message = format!(
        "{}.{}",
        base64(header.to_string()),
        base64(claims().to_string())
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, issuer.key.public_key().as_ref());
    let token = format!(
        "{message}.{}",
        base64(ring::hmac::sign(&key, message.as_bytes()))
    );
    let found = judged(&token).await(&server(&issuer)).await.err();
    assert_eq!(found, Some(OAuthRefusal::Bad(TokenFault::Algorithm)));
}

/// A key and signatures of OpenSSL's: ring makes no keys for RSA.
#[test]
fn rsa_is_checked_too() {
    ring_provider::install();
    let key = jsonwebtoken::DecodingKey::from_rsa_components(
        "vPFdeeKw9tgfLmAVzGXkFY2laLUStPcTs49m7pwF3z4iX0DGkuEAwKhapj_O9gPkDO46Ao_Jsyc9wem095va_cq89Oy1SnLep25iGsw-m2KwLA\
         LRSmlTgin8Pei0eVGUqYCIFRNzrs1rKQmxhlm42MmCW3_QENago1fuDv22HOOp_Zt67J-_IlQiQ8yNIz8dvdMW7zaCNU7Id7GGbEpbz-A91fNa\
         5YCwQM2u8_d3TVSOPcqP3zDHAci70VtANCqc9p8mha_DF38ui7_eGy-eEvNnZk-IwjkOwKox7zsmwcI1sO_e4GcMZIcP5kCBOITiFAo9Jg_ZfK\
         JGn8zhONx3Yw",
        "AQAB",
    )
    .unwrap();
    let message = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqb2UifQ";
    let plain = "mVdwCYc9DBx83Cv72PfpqfFGmPcXfGI_HREJ6OpZT8Tcep8MqlByC896ESMr2MrHRRFSIAAci9LeUVtVvi57dFIwtT7efwlxxI2pxSH25jJZzd\
         -h3lBJQIlJvSOr-VevJVT2Bn3VrRBpT3MASD_Mmr4Nt7pMFIuMMkVNO9UHOAmn9czuTYaIeQDgM5gXakvKqbD1BFjBrv8p5876M94RdmFx_2W1\
         V36DatZ0fqcPNfuaF80VSmkFIoQM93x5ZzSi9J24KZ-B_C8vKocIMGTfE3GCT29NCa8if-WtLa3aenj7YEG2b4FgrnKAfEIZJh-g-cXe4JcKcn\
         HaoWCGhkcnKg";
    let padded = "sZ2HxXazEp_Ulp501xwroGixR8S71DN_dIZnOqUuzd6wgphICXMnsa_XYjWB01zmpcLdTANwYbp8NnYsBWZMVdMgUKfO7jy4zgbRfR8RKvgUE2\
         z0njPH5Z1WPbPjivoLJQOCuGshRY7uoYmqvUjR38oOuoGdf9JKJEe3MrjigvstJgQUytaBXeDOHLjFEuTAmROHoj-9KPKkH5GU7nKpEV596U98\
         Fm9INWsWIpdaATO87C6KoJPJM51ktJI5FRxxedmeg2lm16hvbkyZVzFnbzn_EBtgmL41LVotFXumpVB0CxP2cZhs1Q7DoR2wMJ0p1IzWMxaFXh\
         sKwxABYeaq6w";
    use jsonwebtoken::Algorithm::{PS256, PS384, RS256, RS384};
    let check = |signature: &str, message: &str, algorithm| {
        jsonwebtoken::crypto::verify(signature, message.as_bytes(), &key, algorithm).unwrap()
    };
    assert!(check(plain, message, RS256) && check(padded, message, PS256));
    assert!(!check(plain, "other", RS256) && !check(padded, "other", PS256));
    assert!(!check(plain, message, PS256) && !check(padded, message, RS256));
    assert!(!check(plain, message, RS384) && !check(padded, message, PS384));
}

#[tokio::test]
async fn a_request_without_a_good_token_is_led_to_the_metadata() {
    let issuer = Issuer::new();
    let server = server(&issuer);
    let refused = async |value: Option<&str>| {
        let mut headers = hyper::HeaderMap::new();
        if let Some(value) = value {
            headers.insert(hyper::header::AUTHORIZATION, value.parse().unwrap());
        }
        let resource = Resource {
            path: "/mcp".to_owned(),
            paths: vec!["/mcp".to_owned()],
        };
        let refused = server.holder(&headers, &resource).await.err().unwrap();
        let challenge = refused.challenge.unwrap();
        (
            refused.refusal.status.as_u16(),
            challenge.to_str().unwrap().to_owned(),
        )
    };
    let there =
        r#"resource_metadata="https://files.example.org/.well-known/oauth-protected-resource/mcp""#;
    assert_eq!(refused(None).await, (401, format!("Bearer {there}")));
    let expired = issuer.sign(&header(), &with(claims(), "exp", json!(1)));
    let (status, challenge) = refused(Some(&format!("Bearer {expired}"))).await;
    let error = r#"error="invalid_token", error_description="the token has expired""#;
    assert_eq!(status, 401);
    assert_eq!(challenge, format!("Bearer {error}, {there}"));
    let (status, challenge) = refused(Some("Basic x")).await;
    assert!(
        status == 401 && challenge.contains("invalid_token"),
        "{challenge}"
    );
    let stranger = issuer.sign(&header(), &claims());
    let (status, challenge) = refused(Some(&format!("Bearer {stranger}"))).await;
    let error = r#"error="insufficient_scope""#;
    assert_eq!(status, 403);
    assert_eq!(challenge, format!("Bearer {error}, {there}"));
}

#[test]
fn metadata_is_found_with_and_without_the_path_of_a_proxy() {
    let path = |path, prefix| metadata::resource_of(path, prefix);
    for (asked, resource) in [
        ("/.well-known/oauth-protected-resource", Some("")),
        ("/.well-known/oauth-protected-resource/", Some("")),
        (
            "/.well-known/oauth-protected-resource/mcp/guide",
            Some("/mcp/guide"),
        ),
        ("/.well-known/oauth-protected-resources", None),
        ("/mcp", None),
    ] {
        assert_eq!(path(asked, ""), resource, "{asked}");
        assert_eq!(path(asked, "/files"), resource, "{asked}");
    }
    let inside = "/.well-known/oauth-protected-resource/files/mcp";
    assert_eq!(path(inside, "/files"), Some("/mcp"));
}
