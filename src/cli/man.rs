//! The manual pages: made from the arguments' own help, with sections of their own on the main one.

use std::collections::BTreeMap;
use std::path::Path;

use clap::CommandFactory;

use super::args::{Arguments, Man};
use super::out::write_below;
use super::{Outcome, Stop, exit, write_out};
use crate::state::{Blobs, FilePath, Object, State};

/// What the arguments do not say, in roff. The exit codes are in the part above.
const SECTIONS: &str = r#".SH EXAMPLES
.nf
selvedge init cluster.toml \-\-node 'node[01\-02]'
selvedge check cluster.toml
selvedge plan cluster.toml \-\-node node01
selvedge apply cluster.toml \-\-node node01 \-\-confirm 120
selvedge confirm \-\-node node01
selvedge verify cluster.toml
selvedge hosts cluster.toml
selvedge apply image.toml \-\-root /mnt \-\-node gpu01 \-\-facts node.json
.fi
.SH FILES
.TP
\fI/etc/selvedge/cluster.toml\fR
The spec where none is named.
.TP
\fI/var/lib/selvedge\fR
On each node: the journals of the applies, and the contents that they put back.
.TP
\fI/etc/netplan/60\-selvedge.yaml\fR, \fI/etc/systemd/network/*selvedge*\fR
The network as netplan or networkd keeps it.
.TP
\fI/etc/NetworkManager/system\-connections/selvedge\-*\fR, \fI/etc/NetworkManager/conf.d/selvedge\-*\fR
The network as NetworkManager keeps it.
.TP
\fI/etc/modules\-load.d\fR, \fI/etc/modprobe.d\fR, \fI/etc/udev/rules.d\fR, \fI/etc/systemd/system\fR
Files with selvedge in their names.
.TP
\fI/etc/selvedge/opensm\fR, \fI/var/cache/selvedge\-opensm\fR
The subnet managers' configuration and cache.
"#;

pub(super) fn man(args: &Man) -> Outcome {
    match &args.out {
        None => write_out(&main_page(Arguments::command())?)?,
        Some(folder) => write_all(folder)?,
    }
    Ok(exit::OK)
}

fn write_all(folder: &Path) -> Result<(), Stop> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let (mut files, mut blobs) = (BTreeMap::new(), Blobs::default());
    for (name, page) in pages(command)? {
        let path: FilePath = format!("/{name}").parse().map_err(|error| Stop::failed(format!("{name}: {error}")))?;
        files.insert(Object::File { path }, State::File { digest: blobs.insert(page), mode: 0o644 });
    }
    write_below(folder, &files, &blobs)
}

/// The page of a command and those below it, by their file names. Those that are hidden are left out.
fn pages(command: clap::Command) -> Result<Vec<(String, Vec<u8>)>, Stop> {
    let mut pages = pages_of(command)?;
    // The main page has sections of its own, and comes last.
    pages.pop();
    let main = main_page(Arguments::command().disable_help_subcommand(true))?;
    pages.push(("selvedge.1".to_owned(), main));
    Ok(pages)
}

fn pages_of(command: clap::Command) -> Result<Vec<(String, Vec<u8>)>, Stop> {
    let mut pages = Vec::new();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        pages.extend(pages_of(below)?);
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Stop::failed(format!("cannot make the page: {error}")))?;
    pages.push((page.get_filename(), text));
    Ok(pages)
}

fn main_page(command: clap::Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Stop::failed(format!("cannot make the page: {error}")))?;
    page.extend_from_slice(SECTIONS.as_bytes());
    Ok(page)
}
