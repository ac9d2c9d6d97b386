//! init: writes a spec to start from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use super::args::Init;
use super::host::{Target, this};
use super::{Outcome, Stop, exit, facts, tell, write_out};
use crate::facts::by_host::{Answer, FactsByHost, NoAnswer};
use crate::init::spec_of;
use crate::spec::STARTER;

pub(super) fn init(args: &Init) -> Outcome {
    if let Some(path) = &args.path
        && !args.force
        && path.symlink_metadata().is_ok()
    {
        // Before any host is asked.
        return Err(exists(path));
    }
    let (text, code) = match found(args)? {
        None => (STARTER.to_owned(), exit::OK),
        Some(found) => {
            for (host, answer) in &found {
                if let Answer::None(NoAnswer { error }) = answer {
                    tell(&format!("{host}: no answer: {error}"));
                }
            }
            (spec_of(&found).map_err(|error| Stop::failed(error.to_string()))?, facts::code(&found))
        }
    };
    let Some(path) = &args.path else {
        write_out(text.as_bytes())?;
        return Ok(code);
    };
    write(path, &text, args.force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Stop::failed(format!("cannot write {}: {error}", path.display())),
    })?;
    let (name, done) = (path.display(), format!("{} is written", path.display()));
    let line = format!("{name}: written; change it to your cluster, then `selvedge check {name}`\n");
    write_out(line.as_bytes()).map_err(|stop| stop.after(&done))?;
    Ok(code)
}

fn exists(path: &Path) -> Stop {
    Stop::failed(format!("{} exists, and is never overwritten without --force: name another file", path.display()))
}

/// The facts that the spec is to be made of, if any are asked for.
fn found(args: &Init) -> Result<Option<FactsByHost>, Stop> {
    if let Some(path) = &args.from_facts {
        return facts::read_any(path).map(Some);
    }
    if !args.node.is_empty() {
        return facts::of_lists(&args.node, &args.by.ssh()).map(Some);
    }
    if !args.from_host {
        return Ok(None);
    }
    let facts = facts::of(&Target::Here, None, &args.by.ssh())?;
    let host = this("give it a host name, or put `selvedge facts` into a file below a name: {\"NAME\": ...}")?;
    Ok(Some(FactsByHost::from([(host, Answer::Facts(Box::new(facts)))])))
}

/// Whole or not at all; a file that is there only with `force`.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    if !force {
        return OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    // A spec is read by whoever may look at the cluster, as one that an editor writes.
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
