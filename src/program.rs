//! How the system's own programs are started: a list of arguments, never a shell.

use std::process::{Command, Stdio};

/// Where a system keeps its programs. cron and some services leave `sbin` out.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A program of the system, found in PATH and then where systems keep them, with nothing on its standard input.
/// Its messages end up in ours: it speaks one language.
#[must_use]
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path(std::env::var("PATH").ok().as_deref())).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

fn search_path(inherited: Option<&str>) -> String {
    let inherited: Vec<&str> = inherited.unwrap_or_default().split(':').filter(|folder| !folder.is_empty()).collect();
    let missing = FOLDERS.into_iter().filter(|folder| !inherited.contains(folder));
    inherited.iter().copied().chain(missing).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_folders_are_always_searched() {
        assert_eq!(search_path(None), FOLDERS.join(":"));
        assert_eq!(search_path(Some("")), FOLDERS.join(":"));
        let cron = "/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin";
        assert_eq!(search_path(Some("/usr/bin:/bin")), cron);
        assert_eq!(search_path(Some(cron)), cron);
    }
}
