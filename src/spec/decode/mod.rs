//! From TOML text to a draft: each value valid in itself, or a fault.
//!
//! Text comes in; a draft and all faults of the text go out. What one value
//! says about another is not looked at here: that is `check`.

mod fields;
mod leaf;
mod parts;
mod reserved;
mod values;
pub(super) mod words;

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeArray as Array, DeTable as Tree, DeValue};

use super::draft::{Draft, VerifyDraft};
use super::fault::{Code, Fault, Span};
use super::keys;
use super::model::MinBandwidth;
use super::quantity;
use fields::Fields;

type Value<'t> = Spanned<DeValue<'t>>;

/// The version of the format that this selvedge reads.
pub const VERSION: i64 = 1;

/// The text being read, and what was found wrong with it so far.
struct Decoder<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

fn place<T>(spanned: &Spanned<T>) -> Span {
    spanned.span().into()
}

/// What came of a text.
pub(super) struct Decoded {
    pub(super) draft: Draft,
    pub(super) faults: Vec<Fault>,
    /// Whether the draft is that of a text of this version without syntax
    /// faults: in any other, what seems missing may only have been unreadable.
    pub(super) whole: bool,
}

pub(super) fn decode(text: &str) -> Decoded {
    let (tree, errors) = Tree::parse_recoverable(text);
    let mut syntax: Vec<_> = errors.iter().map(|e| syntax_fault(text, e)).collect();
    drop_keys_of_a_second_table(&mut syntax, text);
    let mut d = Decoder { text, faults: Vec::new() };
    let tree = tree.into_inner();
    let Some(draft) = version(&mut d, &tree).then(|| document(&mut d, &tree)) else {
        d.faults.extend(syntax);
        return Decoded { draft: Draft::default(), faults: d.faults, whole: false };
    };
    let whole = syntax.is_empty();
    if !whole {
        drop_echoes(&mut d.faults, &syntax, text);
        d.faults.extend(syntax);
    }
    Decoded { draft, faults: d.faults, whole }
}

fn syntax_fault(text: &str, e: &toml::de::Error) -> Fault {
    let span = e.span().map_or_else(|| Span { start: text.len(), end: text.len() }, Span::from);
    let message = e.message().lines().collect::<Vec<_>>().join("; ");
    let help = match () {
        () if message.contains("duplicate key") => "a key, and a table, stands once",
        () if message.contains("array table") => "an array of tables has two brackets at each end: `[[nodes]]`",
        () if ["string", "float", "integer", "value", "date", "bool"].iter().any(|word| message.contains(word)) => {
            "a text, an address and a quantity with its unit are written in quotes, on one line: `cidr = \"10.0.0.0/16\"`"
        }
        () => "a line is a table's header, `[networks.compute]`, or a key and its value, `mtu = 2044`",
    };
    Fault::new(Code::Syntax, span, format!("this is not TOML: {message}")).help(help)
}

/// Where a table's header stands twice, its keys are reported as standing twice too: the header is the mistake.
fn drop_keys_of_a_second_table(syntax: &mut Vec<Fault>, text: &str) {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1));
    let is_header =
        |start: &usize| text.get(*start..).is_some_and(|line| line.trim_start_matches([' ', '\t']).starts_with('['));
    let headers: Vec<usize> = starts.filter(is_header).collect();
    // The header that the place is in or below, and whether it is in it.
    let header_of = |at: usize| {
        let above = headers.partition_point(|start| *start <= at);
        let start = *headers.get(above.checked_sub(1)?)?;
        Some((start, !text.get(start..at)?.contains('\n')))
    };
    let duplicates = syntax.iter().filter(|fault| is_duplicate(fault));
    let twice: BTreeSet<usize> = duplicates
        .filter_map(|fault| header_of(fault.span.start).filter(|(_, within)| *within).map(|(start, _)| start))
        .collect();
    if twice.is_empty() {
        return;
    }
    let is_echo =
        |fault: &Fault| header_of(fault.span.start).is_some_and(|(header, within)| !within && twice.contains(&header));
    syntax.retain(|fault| !(is_duplicate(fault) && is_echo(fault)));
}

fn is_duplicate(fault: &Fault) -> bool {
    fault.message.contains("duplicate key")
}

/// Drops what may only be an echo of a syntax fault: faults on its line, and of things not found.
fn drop_echoes(faults: &mut Vec<Fault>, syntax: &[Fault], text: &str) {
    let ends: Vec<_> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| ends.partition_point(|end| *end < at);
    let broken: BTreeSet<_> = syntax.iter().map(|fault| line(fault.span.start)).collect();
    faults.retain(|fault| fault.code != Code::MissingKey && !broken.contains(&line(fault.span.start)));
}

/// Whether the text is of our version. Nothing else is judged if it is of another.
fn version(d: &mut Decoder<'_>, tree: &Tree<'_>) -> bool {
    let Some(value) = tree.get("version") else { return true };
    let DeValue::Integer(number) = value.get_ref() else { return true };
    let is_negative = number.as_str().starts_with('-');
    let number = i64::from_str_radix(number.as_str(), number.radix());
    if number == Ok(VERSION) {
        return true;
    }
    let this = env!("CARGO_PKG_VERSION");
    // One that does not fit 64 bits is far off on its side.
    let help = if number.map_or(!is_negative, |number| number > VERSION) {
        format!(
            "this selvedge {this} reads version {VERSION}: use the selvedge that the spec was written for, or a later one"
        )
    } else {
        format!("the first version is 1, and this selvedge {this} reads it: `version = 1`")
    };
    let written = leaf::as_written(d, value);
    d.faults.push(
        Fault::new(Code::UnsupportedVersion, place(value), format!("version {written} of the spec can't be read"))
            .label("not this one")
            .help(help),
    );
    false
}

fn document<'t>(d: &mut Decoder<'t>, tree: &Tree<'t>) -> Draft {
    let top = Fields::open(d, tree, Span::default(), &keys::SPEC);
    top.required(d, "version", |d, v| leaf::integer(d, v, VERSION..=VERSION));
    let cluster_name = top
        .required(d, "cluster", |d, v| {
            let cluster = Fields::of(d, v, place(v), &keys::CLUSTER)?;
            cluster.required(d, "name", leaf::name)
        })
        .map(|cluster| cluster.value);
    for key in ["fabrics", "nodes"] {
        top.required(d, key, |_, _| Some(()));
    }
    Draft {
        cluster_name,
        fabrics: top.named(d, "fabrics", &keys::FABRIC, parts::fabric),
        networks: top.named(d, "networks", &keys::NETWORK, parts::network),
        nodes: top.rows(d, "nodes", &keys::NODES, parts::group),
        hosts: top.named(d, "hosts", &keys::HOST_EXCEPTION, parts::host),
        modules: top.get("modules").map(|v| parts::modules(d, v)).unwrap_or_default(),
        verify: verify(d, &top),
    }
}

fn verify<'t>(d: &mut Decoder<'t>, top: &Fields<'_, 't>) -> VerifyDraft {
    let empty = Tree::new();
    let read = top.get("verify").map(|v| (leaf::table(d, v), place(v)));
    let (values, at) = match &read {
        Some((Some(values), at)) => (*values, *at),
        // Not a table: reported, and the defaults stand in for it.
        Some((None, at)) => (&empty, *at),
        None => (&empty, Span::default()),
    };
    let fields = Fields::open(d, values, at, &keys::VERIFY);
    VerifyDraft {
        min_bandwidth: fields.or(d, "min-bandwidth", MinBandwidth::Percent(90.0), values::bandwidth),
        max_latency: fields.or(d, "max-latency", quantity::DEFAULT_LATENCY, values::duration),
    }
}
