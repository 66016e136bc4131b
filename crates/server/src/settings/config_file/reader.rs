//! Reads typed values out of the tree and knows each value's place in the file, for messages.
//!
//! A map is read key by key and then closed: a key that was not read is unknown.

use ops::text::near_names::nearest;

use super::yaml::YamlValue;
use crate::settings::choices::WordValue;
use crate::settings::error::{KeyPath, SettingsError, quoted};
use crate::settings::table::InnerKey;
use crate::settings::units;
use crate::settings::value::{Bounds, Reading};

/// One value and its place in the file.
#[derive(Debug, Clone)]
pub(crate) struct Field<'n> {
    path: KeyPath,
    node: &'n YamlValue,
    secrecy: Secrecy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Open,
    Secret,
}

impl<'n> Field<'n> {
    /// The whole file.
    pub(crate) fn top(node: &'n YamlValue) -> Field<'n> {
        Field {
            path: KeyPath::default(),
            node,
            secrecy: Secrecy::Open,
        }
    }

    /// This value's place in the file.
    pub(crate) fn path(&self) -> &KeyPath {
        &self.path
    }

    /// The same value, but messages will not show it: people paste secrets where a file name belongs.
    pub(crate) fn secret(&self) -> Field<'n> {
        Field {
            secrecy: Secrecy::Secret,
            ..self.clone()
        }
    }

    /// The error that something else was expected here.
    pub(crate) fn unexpected(&self, expected: impl Into<String>) -> SettingsError {
        let found = match self.secrecy {
            Secrecy::Open => self.node.to_string(),
            Secrecy::Secret => "something else (not shown)".to_owned(),
        };
        SettingsError::Unexpected {
            path: self.path.clone(),
            expected: expected.into(),
            found,
        }
    }

    /// Reads text that is not empty and has no control characters.
    pub(crate) fn text(&self) -> Reading<&'n str> {
        match self.node {
            YamlValue::Text(text) if is_sound(text) => Ok(text),
            YamlValue::Text(_) => {
                Err(self.unexpected("text that is not empty and has no control characters"))
            }
            YamlValue::Integer(_) | YamlValue::Fraction(_) | YamlValue::Boolean(_) => {
                Err(self.unexpected("text (in quotes)"))
            }
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => {
                Err(self.unexpected("text"))
            }
        }
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&self) -> Reading<bool> {
        match self.node {
            YamlValue::Boolean(value) => Ok(*value),
            _ => Err(self.unexpected("true or false")),
        }
    }

    /// Reads a whole number within a range.
    pub(crate) fn number(&self, range: Bounds) -> Reading<u64> {
        let number = match self.node {
            YamlValue::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| self.out_of(&range))
    }

    /// Reads a size in bytes within a range, with or without a unit.
    pub(crate) fn size(&self, range: Bounds) -> Reading<u64> {
        self.with_unit(range, units::bytes, units::SIZE)
    }

    /// Reads a time in seconds within a range, with or without a unit.
    pub(crate) fn seconds(&self, range: Bounds) -> Reading<u64> {
        self.with_unit(range, units::seconds, units::TIME)
    }

    fn with_unit(
        &self,
        range: Bounds,
        read: fn(&str) -> Option<u64>,
        expected: &str,
    ) -> Reading<u64> {
        let YamlValue::Text(text) = self.node else {
            return self.number(range);
        };
        let number = read(text).ok_or_else(|| self.unexpected(expected))?;
        let number = Some(number).filter(|number| range.contains(number));
        number.ok_or_else(|| self.out_of(&range))
    }

    /// The error that a number is out of its bounds.
    pub(crate) fn out_of(&self, bounds: &Bounds) -> SettingsError {
        let (low, high) = (bounds.start(), bounds.end());
        self.unexpected(format!("a whole number from {low} to {high}"))
    }

    /// Reads one of a few words.
    pub(crate) fn word<T: WordValue>(&self) -> Reading<T> {
        let YamlValue::Text(text) = self.node else {
            return Err(self.unexpected(format!("one of {}", T::all_words().join(", "))));
        };
        let allowed = T::all_words().into_iter().map(str::to_owned);
        T::named(text).ok_or_else(|| self.unknown(T::WHAT, text, allowed.collect()))
    }

    /// The error that `value` is none of the allowed words.
    pub(crate) fn unknown(
        &self,
        what: &'static str,
        value: &str,
        allowed: Vec<String>,
    ) -> SettingsError {
        let nearest = nearest(value, &allowed).cloned();
        SettingsError::UnknownWord {
            path: self.path.clone(),
            what,
            value: quoted(value),
            allowed,
            nearest,
        }
    }

    /// Reads a list.
    pub(crate) fn list(&self) -> Reading<Vec<Field<'n>>> {
        let YamlValue::List(nodes) = self.node else {
            return Err(self.unexpected("a list"));
        };
        let item = |(index, node)| Field {
            path: self.path.item(index),
            node,
            ..self.clone()
        };
        Ok(nodes.iter().enumerate().map(item).collect())
    }

    /// Reads a list, item by item.
    pub(crate) fn list_of<T>(&self, read: impl Fn(&Field<'n>) -> Reading<T>) -> Reading<Vec<T>> {
        self.list()?.iter().map(read).collect()
    }

    /// Reads a map whose keys are not settings but names.
    pub(crate) fn entries(&self) -> Reading<Vec<(&'n str, Field<'n>)>> {
        let section = self.section()?;
        let entries = section.entries.iter();
        let entries = entries.map(|(name, node)| (name.as_str(), section.field(name, node)));
        Ok(entries.collect())
    }

    /// Tells whether the value was left empty.
    pub(crate) fn is_null(&self) -> bool {
        *self.node == YamlValue::Null
    }

    /// Reads a map. A key with nothing under it (all commented out) is an empty map.
    pub(crate) fn section(&self) -> Reading<Section<'n>> {
        let entries: &[(String, YamlValue)] = match self.node {
            YamlValue::Map(entries) => entries,
            YamlValue::Null => &[],
            _ => return Err(self.unexpected("a map")),
        };
        Ok(Section {
            path: self.path.clone(),
            entries,
            asked: Vec::new(),
        })
    }
}

/// A map that is being read.
#[derive(Debug)]
pub(crate) struct Section<'n> {
    path: KeyPath,
    entries: &'n [(String, YamlValue)],
    asked: Vec<&'static str>,
}

impl<'n> Section<'n> {
    /// Tells whether a key is there, whatever its value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, _)| key == name)
    }

    /// Reads the value of the key with this name, if it is there.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Field<'n>) -> Reading<T>,
    ) -> Reading<Option<T>> {
        self.asked.push(key);
        let entry = self.entries.iter().find(|(name, _)| name == key);
        entry
            .map(|(name, node)| read(&self.field(name, node)))
            .transpose()
    }

    /// Reads the value of a key, if it is there.
    pub(crate) fn find<T>(
        &mut self,
        key: &InnerKey,
        read: impl FnOnce(&Field<'n>) -> Reading<T>,
    ) -> Reading<Option<T>> {
        self.read(key.name(), read)
    }

    /// Reads the value of a key, or takes the default if it is not there.
    pub(crate) fn find_or<T>(
        &mut self,
        key: &InnerKey,
        default: T,
        read: impl FnOnce(&Field<'n>) -> Reading<T>,
    ) -> Reading<T> {
        Ok(self.find(key, read)?.unwrap_or(default))
    }

    /// Reads the value of a key that has to be there.
    pub(crate) fn require<T>(
        &mut self,
        key: &InnerKey,
        read: impl FnOnce(&Field<'n>) -> Reading<T>,
    ) -> Reading<T> {
        let path = self.path.key(key.name());
        let value = self.find(key, read)?;
        // A misspelt key may be the one that is missing.
        value.ok_or_else(|| {
            self.unknown_key(&key.siblings())
                .unwrap_or_else(|| SettingsError::Missing {
                    path,
                    expected: key.expected().to_owned(),
                })
        })
    }

    /// Closes the map: any key that was not read is unknown.
    pub(crate) fn finish(self) -> Reading<()> {
        self.unknown_key(&self.asked).map_or(Ok(()), Err)
    }

    /// The mistake that a key of the map is none of the allowed ones.
    fn unknown_key(&self, allowed: &[&'static str]) -> Option<SettingsError> {
        let mut names = self.entries.iter().map(|(name, _)| name);
        let name = names.find(|name| !allowed.contains(&name.as_str()))?;
        Some(SettingsError::UnknownKey {
            path: self.path.key(name),
            nearest: nearest(name, allowed).map(|near| (*near).to_owned()),
            allowed: allowed.to_vec(),
        })
    }

    fn field(&self, name: &str, node: &'n YamlValue) -> Field<'n> {
        Field {
            path: self.path.key(name),
            node,
            secrecy: Secrecy::Open,
        }
    }
}

fn is_sound(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}
