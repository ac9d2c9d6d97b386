//! systemd reads the drop-ins of units that are there.

use std::fs;
use std::path::Path;

use crate::Consumer;
use crate::programs::run;
use crate::tree::Tree;

const FOLDER: &str = "/etc/systemd/system/";
const SLURMD: &str = "/etc/systemd/system/slurmd.service.d/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "systemd with drop-ins",
    needs: &["systemd-analyze"],
    folder: SLURMD,
    judge,
    mutants: &[
        ("a misspelt limit", "LimitMEMLOCK=", "LimitMEMLOK="),
        ("a limit that is none", "=infinity", "=infinite"),
        ("a wrong section", "[Service]", "[Servise]"),
    ],
};

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, path) = tree.written();
    for (drop_in, _) in tree.under(FOLDER).filter(|(drop_in, _)| drop_in.contains(".service.d/")) {
        let folder = Path::new(drop_in).parent().and_then(Path::to_str).and_then(|folder| folder.strip_suffix(".d"));
        let unit = path.join(folder.unwrap().trim_start_matches('/'));
        fs::write(&unit, "[Service]\nType=oneshot\nExecStart=/bin/true\n").unwrap();
        let (ok, out, said) = run("systemd-analyze", &["verify", "--man=no", unit.to_str().unwrap()])?;
        if !ok || !out.is_empty() || !said.is_empty() {
            return Err(format!("systemd: {out}{said}"));
        }
    }
    Ok(())
}
