//! modprobe reads the options, and lists them as it would pass them on.

use crate::Consumer;
use crate::programs::run;
use crate::tree::Tree;

const FOLDER: &str = "/etc/modprobe.d/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "modprobe",
    needs: &["modprobe"],
    folder: FOLDER,
    judge,
    mutants: &[("a misspelt command", "options ib_ipoib", "optoins ib_ipoib")],
};

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, path) = tree.written();
    let folder = path.join(FOLDER.trim_start_matches('/'));
    let (ok, listed, said) = run("modprobe", &["-C", folder.to_str().unwrap(), "--showconfig"])?;
    if !ok || !said.is_empty() {
        return Err(format!("modprobe: {said}"));
    }
    let lines =
        tree.under(FOLDER).flat_map(|(_, text)| text.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines.into_iter().find(|line| !listed.lines().any(|listed| listed == *line)) {
        Some(line) => Err(format!("modprobe does not list `{line}`")),
        None => Ok(()),
    }
}
