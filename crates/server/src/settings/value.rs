//! The types that settings have: how each is read from the file, and how it reads there.

use std::ops::{Deref, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::choices::WordValue;
use super::config_file::Field;
use super::{KnownTools, RootSettings, SettingsError};

/// The bounds of a number.
pub(crate) type Bounds = RangeInclusive<u64>;

/// A type that a setting can have.
pub(crate) trait SettingValue: Sized {
    /// What can stand there, in a few words.
    fn kind() -> String;

    /// The words that can stand there and what each means, for types of a few words.
    fn words() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The value as the file would have it.
    fn in_yaml(&self) -> String;

    /// Reads the value from the file.
    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<Self, SettingsError>;
}

/// What reading a value needs besides the value itself.
#[derive(Debug, Clone)]
pub(crate) struct ReadContext<'a> {
    /// Where relative paths start from.
    pub(crate) directory: &'a Path,
    /// The tools that an allowlist may name.
    pub(crate) known: KnownTools<'a>,
    /// The roots that were read before.
    pub(crate) roots: &'a [RootSettings],
    /// The bounds of the setting.
    pub(crate) bounds: Option<Bounds>,
}

impl ReadContext<'_> {
    /// A path of the file, absolute.
    pub(crate) fn path(&self, field: &Field<'_>) -> Result<PathBuf, SettingsError> {
        field.text().map(|text| self.directory.join(text))
    }

    fn number<N: TryFrom<u64>>(&self, field: &Field<'_>, most: N) -> Result<N, SettingsError> {
        let bounds = self.bounds.clone().unwrap_or(0..=u64::MAX);
        let number = field.number(bounds)?;
        Ok(N::try_from(number).unwrap_or(most))
    }
}

/// Types of numbers.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl SettingValue for $type {
            fn kind() -> String {
                "number".to_owned()
            }

            fn in_yaml(&self) -> String {
                self.to_string()
            }

            fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<$type, SettingsError> {
                context.number(field, <$type>::MAX)
            }
        }
    )*};
}

numbers!(u16, u64, usize);

impl SettingValue for Duration {
    fn kind() -> String {
        "seconds".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.as_secs().to_string()
    }

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<Duration, SettingsError> {
        u64::read(field, context).map(Duration::from_secs)
    }
}

impl SettingValue for bool {
    fn kind() -> String {
        "`true` or `false`".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.to_string()
    }

    fn read(field: &Field<'_>, _: &ReadContext<'_>) -> Result<bool, SettingsError> {
        field.boolean()
    }
}

impl SettingValue for String {
    fn kind() -> String {
        "text".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.clone()
    }

    fn read(field: &Field<'_>, _: &ReadContext<'_>) -> Result<String, SettingsError> {
        field.text().map(str::to_owned)
    }
}

impl SettingValue for PathBuf {
    fn kind() -> String {
        "path".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.display().to_string()
    }

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<PathBuf, SettingsError> {
        context.path(field)
    }
}

impl<T: WordValue> SettingValue for T {
    fn kind() -> String {
        "word".to_owned()
    }

    fn words() -> Vec<(&'static str, &'static str)> {
        let words = T::WORDS.iter();
        words.map(|(word, _, meaning)| (*word, *meaning)).collect()
    }

    fn in_yaml(&self) -> String {
        self.word().to_owned()
    }

    fn read(field: &Field<'_>, _: &ReadContext<'_>) -> Result<T, SettingsError> {
        field.word()
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn kind() -> String {
        format!("{} or `null`", T::kind())
    }

    fn in_yaml(&self) -> String {
        self.as_ref()
            .map_or_else(|| "null".to_owned(), SettingValue::in_yaml)
    }

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<Option<T>, SettingsError> {
        if field.is_null() {
            return Ok(None);
        }
        T::read(field, context).map(Some)
    }
}

impl<T: SettingValue> SettingValue for Vec<T> {
    fn kind() -> String {
        let kind = T::kind();
        // The one kind of item that is counted.
        let plural = if kind == "word" { "s" } else { "" };
        format!("list of {kind}{plural}")
    }

    fn words() -> Vec<(&'static str, &'static str)> {
        T::words()
    }

    fn in_yaml(&self) -> String {
        let items: Vec<String> = self.iter().map(SettingValue::in_yaml).collect();
        format!("[{}]", items.join(", "))
    }

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<Vec<T>, SettingsError> {
        field.list_of(|item| T::read(item, context))
    }
}

/// The address to listen on: an IP address, or a name that may resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host(String);

/// What a host has to be.
const HOST: &str = "an IP address or a host name, without a port";

impl Host {
    /// The address that means every interface.
    pub(crate) fn every_interface() -> Host {
        Host("0.0.0.0".to_owned())
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Host, String> {
        let allowed =
            |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
        let is_name = !text.is_empty() && text.chars().all(allowed);
        if is_name || text.parse::<std::net::IpAddr>().is_ok() {
            return Ok(Host(text.to_owned()));
        }
        Err(format!("expected {HOST}"))
    }
}

impl Deref for Host {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl SettingValue for Host {
    fn kind() -> String {
        "text".to_owned()
    }

    fn in_yaml(&self) -> String {
        self.0.clone()
    }

    fn read(field: &Field<'_>, _: &ReadContext<'_>) -> Result<Host, SettingsError> {
        field.text()?.parse().map_err(|_| field.unexpected(HOST))
    }
}
