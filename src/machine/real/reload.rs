//! Has a program read its changed files again, and waits until it has acted on them.
//!
//! Never restarts a network. A program that does not run has nothing to read
//! again: it will when it starts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};
use zbus::{MessageStream, OwnedObjectPath};

use super::bus::{Bus, NETWORKD, refused};
use super::{Live, program, systemd};
use crate::machine::MachineError;
use crate::state::ConfigSystem;

/// How long links may take to be configured again. One without carrier never gets there.
const LINKS_DEADLINE: Duration = Duration::from_secs(5);

/// How long networkd must be silent, with no link on its way, to count as done: it
/// answers before it has looked at each link.
const SILENCE: Duration = Duration::from_millis(300);

const LINK_INTERFACE: &str = "org.freedesktop.network1.Link";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Has `system` read its files.
pub(super) fn perform(live: &mut Live, system: &ConfigSystem) -> Result<(), MachineError> {
    match system {
        ConfigSystem::Udev if !Path::new("/run/udev/control").exists() => Ok(()),
        ConfigSystem::Udev => program::run("udevadm", &["control", "--reload"]).map(drop),
        // Writes files under /run that networkd or NetworkManager read; `netplan apply` would restart links.
        ConfigSystem::Netplan => program::run("netplan", &["generate"]).map(drop),
        ConfigSystem::Systemd | ConfigSystem::Networkd | ConfigSystem::Unit(_) if !systemd::is_running() => Ok(()),
        ConfigSystem::Systemd => systemd::reload(live.bus()?),
        ConfigSystem::Networkd => networkd(live.bus()?),
        ConfigSystem::Unit(name) => systemd::restart(live.bus()?, name),
    }
}

fn networkd(bus: &Bus) -> Result<(), MachineError> {
    bus.runtime.block_on(async {
        if !bus.is_running(NETWORKD).await? {
            return Ok(());
        }
        let mut changes = bus.signals(NETWORKD, PROPERTIES, "PropertiesChanged").await?;
        bus.call(NETWORKD, "Reload", &()).await?;
        settle(bus, &mut changes).await
    })
}

/// Waits until no link is on its way any more.
async fn settle(bus: &Bus, changes: &mut MessageStream) -> Result<(), MachineError> {
    let deadline = Instant::now() + LINKS_DEADLINE;
    let mut states = link_states(bus).await?;
    loop {
        let on_its_way = states.values().any(|state| is_on_its_way(state));
        let until = if on_its_way { deadline } else { deadline.min(Instant::now() + SILENCE) };
        match timeout_at(until, changes.next()).await {
            // Silence, or no time left.
            Err(_) | Ok(None) => return Ok(()),
            Ok(Some(Ok(signal))) => {
                if let Some(path) = signal.header().path()
                    && let Some(state) = link_state(bus, path.as_str()).await
                {
                    states.insert(path.to_string(), state);
                }
            }
            Ok(Some(Err(error))) => return Err(refused(NETWORKD.shown, "say what it does", error)),
        }
    }
}

async fn link_states(bus: &Bus) -> Result<BTreeMap<String, String>, MachineError> {
    let answer = bus.call(NETWORKD, "ListLinks", &()).await?;
    let body = answer.body();
    let links: Vec<(i32, String, OwnedObjectPath)> =
        body.deserialize().map_err(|error| refused(NETWORKD.shown, "ListLinks", error))?;
    let mut states = BTreeMap::new();
    for (_, _, path) in links {
        if let Some(state) = link_state(bus, path.as_str()).await {
            states.insert(path.to_string(), state);
        }
    }
    Ok(states)
}

async fn link_state(bus: &Bus, path: &str) -> Option<String> {
    bus.property(NETWORKD, path, LINK_INTERFACE, "AdministrativeState").await
}

fn is_on_its_way(state: &str) -> bool {
    matches!(state, "pending" | "initialized" | "configuring")
}
