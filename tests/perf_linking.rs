//! The binary starts on a node without rdma-core: no library of it is linked.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::Path;
use std::process::Command;

/// The shared libraries that the loader must find before `main`.
fn needed(binary: &Path) -> Vec<String> {
    let output = Command::new("readelf").args(["-d", "--wide"]).arg(binary).output().unwrap();
    assert!(output.status.success(), "readelf {}: {}", binary.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| line.contains("(NEEDED)")).map(str::to_owned).collect()
}

#[test]
fn no_verbs_library_is_linked() {
    // Calls into the verbs, so that this very binary would need the library if ours does.
    let request = &b"{\"open\":{\"device\":\"mlx5_77\"}}\n"[..];
    let mut reply = Vec::new();
    selvedge::perf::worker::serve(request, &mut reply).unwrap();
    assert!(String::from_utf8_lossy(&reply).contains("error"));

    for binary in [std::env::current_exe().unwrap(), env!("CARGO_BIN_EXE_selvedge").into()] {
        let needed = needed(&binary);
        assert!(needed.iter().any(|line| line.contains("libc.so")), "{needed:?}");
        let rdma = ["ibverbs", "rdmacm", "ibumad", "libnl"];
        assert!(!needed.iter().any(|line| rdma.iter().any(|name| line.contains(name))), "{needed:?}");
    }
}
