//! The types of settings: how each is read from the file, and how it is written there.

use std::net::SocketAddr;
use std::ops::{Deref, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::choices::WordValue;
use super::config_file::Field;
use super::network::{NETWORK, Network};
use super::{RootSettings, SettingsError, StateDir};

/// The bounds of a number.
pub(crate) type Bounds = RangeInclusive<u64>;

/// A value that was read, or the mistake in it.
pub(crate) type Reading<T> = Result<T, SettingsError>;

/// A type that a setting can have.
pub(crate) trait SettingValue: Sized {
    /// The kind of value, in a few words.
    fn kind() -> String;

    /// The allowed words and what each means, for types of a few words.
    fn words() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The value as written in the file.
    fn in_yaml(&self) -> String;

    /// Reads the value from the file.
    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Self>;
}

/// The context for reading a value.
#[derive(Debug, Clone)]
pub(crate) struct ReadContext<'a> {
    /// Where relative paths start from.
    pub(crate) directory: &'a Path,
    /// The roots that were read before.
    pub(crate) roots: &'a [RootSettings],
    /// The bounds of the setting.
    pub(crate) bounds: Option<Bounds>,
}

impl ReadContext<'_> {
    /// A path of the file, absolute.
    pub(crate) fn path(&self, field: &Field<'_>) -> Reading<PathBuf> {
        field.text().map(|text| self.directory.join(text))
    }

    fn number<N: TryFrom<u64>>(&self, field: &Field<'_>) -> Reading<N> {
        let bounds = self.bounds();
        let number = field.number(bounds.clone())?;
        N::try_from(number).map_err(|_| field.out_of(&bounds))
    }

    fn bounds(&self) -> Bounds {
        self.bounds.clone().unwrap_or(0..=u64::MAX)
    }

    /// Reads a size that is kept in memory.
    pub(crate) fn memory_size(&self, field: &Field<'_>) -> Reading<usize> {
        let bounds = self.bounds();
        let size = field.size(bounds.clone())?;
        usize::try_from(size).map_err(|_| field.out_of(&bounds))
    }
}

/// Types that are one value: what the reference calls it, how it is written, how it is read.
macro_rules! one_value {
    ($($type:ty, $kind:literal, $in_yaml:expr, $read:expr;)*) => {$(
        impl SettingValue for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn in_yaml(&self) -> String {
                $in_yaml(self)
            }

            fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<$type> {
                let read: fn(&Field<'_>, &ReadContext<'_>) -> Reading<$type> = $read;
                read(field, context)
            }
        }
    )*};
}

one_value! {
    u16, "number", u16::to_string, |field, context| context.number(field);
    StateDir, "path", |place: &StateDir| match place {
            StateDir::InRoot => "null".to_owned(),
            StateDir::At(path) => path.in_yaml(),
        },
        |field, context| context.path(field).map(StateDir::At);
    // All settings of this type are sizes.
    u64, "bytes, also `10MB` or `1GiB`", u64::to_string, |field, context| field.size(context.bounds());
    usize, "number", usize::to_string, |field, context| context.number(field);
    Duration, "seconds, also `90m` or `7d`", |time: &Duration| time.as_secs().to_string(),
        |field, context| field.seconds(context.bounds()).map(Duration::from_secs);
    bool, "`true` or `false`", bool::to_string, |field, _| field.boolean();
    String, "text", String::clone, |field, _| field.text().map(str::to_owned);
    PathBuf, "path", |path: &PathBuf| path.display().to_string(), |field, context| context.path(field);
    Host, "text", |host: &Host| host.0.clone(),
        |field, _| field.text()?.parse().map_err(|_| field.unexpected(HOST));
    SocketAddr, "address and port", SocketAddr::to_string,
        |field, _| field.text()?.parse().map_err(|_| field.unexpected("an IP address and a port, such as 127.0.0.1:8092"));
    Network, "addresses", Network::to_string,
        |field, _| field.text()?.parse().map_err(|()| field.unexpected(NETWORK));
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

    fn read(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<T> {
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

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Option<T>> {
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

    fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Vec<T>> {
        field.list_of(|item| T::read(item, context))
    }
}

/// The address to listen on: an IP address, or a name that may resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host(String);

/// The expected form of a host.
const HOST: &str = "an IP address or a host name, without a port";

impl Host {
    /// The address that means every interface.
    pub(crate) fn every_interface() -> Host {
        Host("0.0.0.0".to_owned())
    }

    /// The address that only this machine reaches.
    pub(crate) fn this_machine() -> Host {
        Host("127.0.0.1".to_owned())
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
