//! The manual pages: made from the arguments' own help, with sections of their own on the main one.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use super::args::{Arguments, Man};
use super::{Outcome, Stop, exit, write_out};

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
    let failed = |error| Stop::failed(format!("cannot write the pages to {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    // Pages of subcommands that are hidden are left out, and so is that of `help`.
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    let main = main_page(Arguments::command().disable_help_subcommand(true))?;
    fs::write(folder.join("selvedge.1"), main).map_err(failed)
}

fn main_page(command: clap::Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Stop::failed(format!("cannot make the page: {error}")))?;
    page.extend_from_slice(SECTIONS.as_bytes());
    Ok(page)
}
