//! The locked-memory limit of the services that start jobs.
//!
//! systemd ignores limits.conf, so the limit of the running process is the evidence.

use std::fs;
use std::path::Path;

use super::model::Memlock;

/// Jobs inherit their limit from these.
const JOB_STARTERS: [&str; 3] = ["slurmd", "sshd", "containerd"];

/// Of each job starter that runs, the lowest limit among its processes.
#[must_use]
pub fn of_job_starters(root: &Path) -> Vec<Memlock> {
    let mut found: Vec<Memlock> = Vec::new();
    for entry in fs::read_dir(root.join("proc")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        let Some(service) = read("comm").map(|comm| comm.trim().to_owned()) else { continue };
        if !JOB_STARTERS.contains(&service.as_str()) {
            continue;
        }
        let Some(bytes) = read("limits").and_then(|limits| soft_limit(&limits)) else { continue };
        match found.iter_mut().find(|known| known.service == service) {
            Some(known) => known.bytes = [known.bytes, bytes].into_iter().flatten().min(),
            None => found.push(Memlock { service, bytes }),
        }
    }
    found
}

/// The soft limit in `/proc/PID/limits`: inner `None` is unlimited, outer `None` not found.
fn soft_limit(limits: &str) -> Option<Option<u64>> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(None),
        bytes => bytes.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_as_the_kernel_prints_them() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max locked memory         8388608              8388608              bytes\n";
        assert_eq!(soft_limit(limits), Some(Some(8_388_608)));
        assert_eq!(soft_limit(&limits.replace("8388608", "unlimited")), Some(None));
        assert_eq!(soft_limit(""), None);
    }
}
