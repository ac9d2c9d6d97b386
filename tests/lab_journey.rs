//! The main job on two nodes of the lab, from an unconfigured host to a verified
//! network and back, with iproute2, sysfs, systemd and infiniband-diags as judges.

mod lab_support;

use std::process::ExitCode;

fn main() -> ExitCode {
    lab_support::run(vec![])
}
