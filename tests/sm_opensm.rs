//! The configuration that we write and the verdict that we give, against the
//! real opensm on a simulated fabric, with infiniband-diags as the judge.
//!
//! Needs Debian's opensm, ibsim-utils and infiniband-diags. Where they are
//! missing the tests are left out by name; with SELVEDGE_LAB=1 they fail.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "sm/fabric.rs"]
mod fabric;
#[path = "sm/keys.rs"]
mod keys;
#[path = "sm/managed.rs"]
mod managed;
#[path = "sm/probe.rs"]
mod probe;
#[path = "sm/wire.rs"]
mod wire;

use libtest_mimic::{Arguments, Trial};

fn main() {
    probe::run_if_probe();
    let tests: [(&str, fn()); 12] = [
        ("every_rendered_key_and_value_is_opensms_own", keys::every_rendered_key_and_value_is_opensms_own),
        ("a_misspelt_key_is_caught", keys::a_misspelt_key_is_caught),
        ("systemd_takes_the_unit", keys::systemd_takes_the_unit),
        ("attributes_read_as_smpquery_reads_them", wire::attributes_read_as_smpquery_reads_them),
        ("primary_and_standby_are_seen_as_sminfo_sees_them", managed::primary_and_standby_are_seen_as_sminfo_sees_them),
        ("the_broadcast_group_has_the_mtu_of_the_fabric", managed::the_broadcast_group_has_the_mtu_of_the_fabric),
        ("the_log_survives_rotation_signals", managed::the_log_survives_rotation_signals),
        ("a_killed_primary_is_replaced_in_time", managed::a_killed_primary_is_replaced_in_time),
        ("no_master_is_found_by_name", managed::no_master_is_found_by_name),
        ("two_masters_are_found_by_name", managed::two_masters_are_found_by_name),
        ("a_manager_outside_the_spec_is_found_by_name", managed::a_manager_outside_the_spec_is_found_by_name),
        ("a_wrong_guid_ends_opensm_with_status_0", managed::a_wrong_guid_ends_opensm_with_status_0),
    ];
    let missing = fabric::missing();
    let must = std::env::var_os("SELVEDGE_LAB").is_some_and(|v| v == "1");
    let trials = tests.into_iter().map(|(name, test)| {
        let missing = missing.clone();
        let left_out = !missing.is_empty() && !must;
        let trial = Trial::test(name, move || {
            if missing.is_empty() {
                test();
                Ok(())
            } else {
                Err(format!("SELVEDGE_LAB=1, and these packages are missing: {}", missing.join(" ")).into())
            }
        });
        trial.with_ignored_flag(left_out)
    });
    let trials = trials.collect();
    if !missing.is_empty() && !must {
        eprintln!("left out, for want of {}: the tests marked as ignored", missing.join(" "));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
