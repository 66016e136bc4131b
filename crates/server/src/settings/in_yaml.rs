//! How settings look in the file: what can stand for a type, and a value as YAML has it.
//!
//! For the reference only; reading the file is `config`'s work.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{
    Durability, Landlock, LogFormat, LogLevel, Rate, Replies, RootSettings, SessionPolicy, Tls,
    Toolset, Transport,
};

/// A type that a setting can have.
pub(crate) trait InYaml {
    /// What can stand there, in a few words.
    fn kind() -> String;

    /// The words that can stand there and what each means, for types of a few words.
    fn words() -> Vec<(String, String)> {
        Vec::new()
    }

    /// The value as the file would have it.
    fn in_yaml(&self) -> String;
}

impl<T: InYaml> InYaml for Option<T> {
    fn kind() -> String {
        format!("{} or `null`", T::kind())
    }

    fn in_yaml(&self) -> String {
        self.as_ref()
            .map_or_else(|| "null".to_owned(), InYaml::in_yaml)
    }
}

impl<T: InYaml> InYaml for Vec<T> {
    fn kind() -> String {
        format!("list of {}", T::kind())
    }

    fn words() -> Vec<(String, String)> {
        T::words()
    }

    fn in_yaml(&self) -> String {
        let items: Vec<String> = self.iter().map(InYaml::in_yaml).collect();
        format!("[{}]", items.join(", "))
    }
}

impl InYaml for Duration {
    fn kind() -> String {
        "seconds".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.as_secs().to_string()
    }
}

impl InYaml for PathBuf {
    fn kind() -> String {
        "path".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.display().to_string()
    }
}

/// Types that are written as they print.
macro_rules! plain {
    ($($type:ty: $kind:literal),*) => {$(
        impl InYaml for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn in_yaml(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain!(String: "text", bool: "`true` or `false`", u16: "number", u64: "number", usize: "number");

/// Types that are one of a few words.
macro_rules! few_words {
    ($($type:ty: $kind:literal),*) => {$(
        impl InYaml for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn words() -> Vec<(String, String)> {
                <$type>::value_variants().iter().map(word).collect()
            }

            fn in_yaml(&self) -> String {
                word(self).0
            }
        }
    )*};
}

few_words!(
    Durability: "word",
    Landlock: "word",
    LogFormat: "word",
    LogLevel: "word",
    Replies: "word",
    SessionPolicy: "word",
    Toolset: "words",
    Transport: "word"
);

fn word(value: &impl ValueEnum) -> (String, String) {
    let value = value.to_possible_value();
    let name = value.as_ref().map(|value| value.get_name().to_owned());
    let help = value.and_then(|value| value.get_help().map(ToString::to_string));
    (name.unwrap_or_default(), help.unwrap_or_default())
}

/// Types that are maps with keys of their own.
macro_rules! maps {
    ($($type:ty),*) => {$(
        impl InYaml for $type {
            fn kind() -> String {
                "map".to_owned()
            }

            /// Never asked for: no default holds one.
            fn in_yaml(&self) -> String {
                "{}".to_owned()
            }
        }
    )*};
}

maps!(Rate, RootSettings, Tls);
