//! systemd reads the recovery unit without a word.

use std::fs;

use crate::Consumer;
use crate::programs::run;
use crate::tree::Tree;

const UNIT: &str = "/etc/systemd/system/selvedge-recover.service";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "systemd",
    needs: &["systemd-analyze"],
    folder: UNIT,
    judge,
    mutants: &[
        ("a misspelt key", "ConditionPathExists", "ConditionPathExist"),
        ("a value of the wrong kind", "Type=oneshot", "Type=onesot"),
        ("a program without its path", "ExecStart=/usr/bin/", "ExecStart=bin/"),
    ],
};

fn judge(tree: &Tree) -> Result<(), String> {
    // The program need not be installed where this runs.
    let tree = tree.edited(UNIT, "/usr/bin/selvedge ", "/bin/true ").unwrap_or_else(|_| tree.clone());
    let (_root, path) = tree.written();
    let unit = path.join(UNIT.trim_start_matches('/'));
    assert!(fs::read_to_string(&unit).is_ok());
    let (ok, out, said) = run("systemd-analyze", &["verify", "--man=no", unit.to_str().unwrap()])?;
    if ok && out.is_empty() && said.is_empty() { Ok(()) } else { Err(format!("systemd: {out}{said}")) }
}
