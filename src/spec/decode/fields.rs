//! A table of the file, seen through its key table.
//!
//! TOML values come in; values with their places go out, and a fault for each
//! key that is unknown, missing, or not a table where one should be.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::{Decoder, Tree, Value, leaf, place};
use crate::name::NameError;
use crate::spec::draft::{Named, Read, Rows};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::keys::{Need, Table};
use crate::spec::nearest::did_you_mean;

/// One table: its values, and the keys it may have.
pub(super) struct Fields<'a, 't> {
    values: &'a Tree<'t>,
    table: &'static Table,
    /// Where a missing key is reported: the table's name or header.
    at: Span,
}

impl<'a, 't> Fields<'a, 't> {
    /// Takes the table apart, and reports the keys that it does not have.
    pub(super) fn open(d: &mut Decoder<'t>, values: &'a Tree<'t>, at: Span, table: &'static Table) -> Self {
        for key in values.keys().filter(|key| table.key(key.get_ref()).is_none()) {
            let name = key.get_ref();
            d.faults.push(
                Fault::new(Code::UnknownKey, place(key), format!("{} has no key {}", table.title, leaf::quote(name)))
                    .label("unknown key")
                    .help(did_you_mean(name, table.keys.iter().map(|key| key.name), "its keys are")),
            );
        }
        Self { values, table, at }
    }

    /// The same, for a value that should be a table.
    pub(super) fn of(d: &mut Decoder<'t>, value: &'a Value<'t>, at: Span, table: &'static Table) -> Option<Self> {
        let values = leaf::table(d, value)?;
        Some(Self::open(d, values, at, table))
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value<'t>> {
        debug_assert!(self.table.key(key).is_some(), "{key} is not in the key table of {}", self.table.title);
        self.values.get(key)
    }

    /// Whether the key is left out and may be.
    fn may_lack(&self, key: &str) -> bool {
        let required = self.table.key(key).is_some_and(|key| matches!(key.need, Need::Required));
        self.get(key).is_none() && !required
    }

    /// A key that may be left out.
    pub(super) fn optional<T>(
        &self,
        d: &mut Decoder<'t>,
        key: &str,
        read: impl FnOnce(&mut Decoder<'t>, &'a Value<'t>) -> Option<T>,
    ) -> Read<T> {
        let value = self.get(key)?;
        Some(Located { value: read(d, value)?, span: place(value) })
    }

    /// A key that is `default` when it is left out.
    pub(super) fn or<T>(
        &self,
        d: &mut Decoder<'t>,
        key: &str,
        default: T,
        read: impl FnOnce(&mut Decoder<'t>, &'a Value<'t>) -> Option<T>,
    ) -> Read<T> {
        match self.get(key) {
            Some(_) => self.optional(d, key, read),
            None => Some(Located { value: default, span: self.at }),
        }
    }

    /// A key that must be there.
    pub(super) fn required<T>(
        &self,
        d: &mut Decoder<'t>,
        key: &str,
        read: impl FnOnce(&mut Decoder<'t>, &'a Value<'t>) -> Option<T>,
    ) -> Read<T> {
        if self.get(key).is_none() {
            let doc = self.table.key(key).map_or("", |key| key.doc);
            d.faults.push(
                Fault::new(Code::MissingKey, self.at, format!("{} needs the key `{key}`", self.table.title))
                    .label(format!("`{key}` is missing"))
                    .help(format!("{key}: {doc}")),
            );
        }
        self.optional(d, key, read)
    }

    /// Tables by name: `[key.NAME]`. A bad name is reported, and what it names is read for its own faults.
    pub(super) fn named<N, T>(
        &self,
        d: &mut Decoder<'t>,
        key: &str,
        table: &'static Table,
        read: impl Fn(&mut Decoder<'t>, &Fields<'a, 't>, Span) -> T,
    ) -> Named<N, T>
    where
        N: FromStr<Err = NameError> + Ord,
    {
        let mut named = Named { all: BTreeMap::new(), whole: self.may_lack(key) };
        let Some(values) = self.get(key).and_then(|value| leaf::table(d, value)) else { return named };
        for (name, value) in values {
            let at = place(name);
            let parsed = leaf::name_at::<N>(d, name.get_ref(), at);
            let Some(fields) = Fields::of(d, value, at, table) else { continue };
            let entry = read(d, &fields, at);
            if let Some(name) = parsed {
                named.all.insert(name, entry);
            }
        }
        named.whole = named.all.len() == values.len();
        named
    }

    /// An array of tables: `[[key]]`.
    pub(super) fn rows<T>(
        &self,
        d: &mut Decoder<'t>,
        key: &str,
        table: &'static Table,
        read: impl Fn(&mut Decoder<'t>, &Fields<'a, 't>, Span) -> T,
    ) -> Rows<T> {
        let Some(rows) = self.get(key).and_then(|value| leaf::array(d, value)) else {
            return Rows { all: Vec::new(), whole: self.may_lack(key) };
        };
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            if let Some(fields) = Fields::of(d, row, place(row), table) {
                all.push(read(d, &fields, place(row)));
            }
        }
        let whole = all.len() == rows.len();
        Rows { all, whole }
    }
}
