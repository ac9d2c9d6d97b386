//! Has a program read its changed files again, and waits until it has acted on them.
//!
//! Never restarts a network. A program that does not run has nothing to read
//! again: it will when it starts.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};
use zbus::{Message, MessageStream, OwnedObjectPath, OwnedVariant};

use super::bus::{Bus, NETWORKD, Service, refused};
use super::{Live, early, network_manager, program, systemd};
use crate::machine::MachineError;
use crate::state::ConfigSystem;

/// How long links may take to be configured again. One without carrier never gets there.
const LINKS_DEADLINE: Duration = Duration::from_secs(5);

/// How long networkd must be silent, with no link on its way, to count as done: it
/// answers before it has looked at each link.
const SILENCE: Duration = Duration::from_millis(300);

const LINK_INTERFACE: &str = "org.freedesktop.network1.Link";
const STATE: &str = "AdministrativeState";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Has `system` read its files.
pub(super) fn perform(live: &mut Live, system: &ConfigSystem) -> Result<(), MachineError> {
    match system {
        ConfigSystem::Udev if !Path::new("/run/udev/control").exists() => Ok(()),
        ConfigSystem::Udev => program::run("udevadm", &["control", "--reload"]).map(drop),
        // Writes files under /run that networkd or NetworkManager read; `netplan apply` would restart links.
        ConfigSystem::Netplan => {
            program::run("netplan", &["generate"])?;
            // networkd's reload is a step of the plan; which of the two netplan wrote for is known only now.
            if early::has_bus() { network_manager::reload(live.bus()?) } else { Ok(()) }
        }
        ConfigSystem::Systemd | ConfigSystem::Networkd | ConfigSystem::Unit(_) if !systemd::is_running() => Ok(()),
        ConfigSystem::Systemd if !early::has_bus() => early::reload(),
        // It runs before D-Bus does, and nothing else tells it to read.
        ConfigSystem::Networkd if !early::has_bus() && !early::is_active("systemd-networkd.service") => Ok(()),
        // Without the bus it does not run yet, and reads its files when it starts.
        ConfigSystem::NetworkManager if !early::has_bus() => Ok(()),
        ConfigSystem::Unit(name) if !early::has_bus() => early::restart(name),
        ConfigSystem::Systemd => systemd::reload(live.bus()?),
        ConfigSystem::Networkd => networkd(live.bus()?),
        ConfigSystem::NetworkManager => network_manager::reload(live.bus()?),
        ConfigSystem::Unit(name) => systemd::restart(live.bus()?, name),
    }
}

/// Does what can make links appear, and waits until networkd is done with those: it configures a new link by itself,
/// and would drop what is put on it before that.
///
/// Best effort: what matters of it is read back.
pub(super) fn and_await_links(
    live: &mut Live,
    act: impl FnOnce(&mut Live) -> Result<(), MachineError>,
) -> Result<(), MachineError> {
    if !systemd::is_running() || !early::has_bus() {
        return act(live);
    }
    let on_their_way = |live: &mut Live| {
        let bus = live.bus().ok()?;
        bus.runtime.block_on(async {
            let runs = bus.is_running(NETWORKD).await.is_ok_and(|runs| runs);
            if runs { links_on_their_way(bus).await.ok() } else { None }
        })
    };
    let before = on_their_way(live);
    act(live)?;
    if let (Some(before), Ok(bus)) = (before, live.bus()) {
        let settled = bus.runtime.block_on(async {
            let mut changes = bus.signals(NETWORKD, PROPERTIES, "PropertiesChanged").await?;
            let waiting = links_on_their_way(bus).await?.difference(&before).cloned().collect();
            settle(NETWORKD, waiting, &mut changes, new_state).await
        });
        drop(settled);
    }
    Ok(())
}

fn networkd(bus: &Bus) -> Result<(), MachineError> {
    bus.runtime.block_on(async {
        if !bus.is_running(NETWORKD).await? {
            return Ok(());
        }
        let before = links_on_their_way(bus).await?;
        let mut changes = bus.signals(NETWORKD, PROPERTIES, "PropertiesChanged").await?;
        bus.call(NETWORKD, "Reload", &()).await?;
        // A link that was stuck before, without carrier most likely, is not waited for.
        let waiting = links_on_their_way(bus).await?.difference(&before).cloned().collect();
        settle(NETWORKD, waiting, &mut changes, new_state).await
    })
}

/// Waits until no link is on its way any more.
pub(super) async fn settle(
    service: Service<'_>,
    mut waiting: BTreeSet<String>,
    changes: &mut MessageStream,
    news: fn(&Message) -> Option<(String, bool)>,
) -> Result<(), MachineError> {
    let deadline = Instant::now() + LINKS_DEADLINE;
    loop {
        let until = if waiting.is_empty() { deadline.min(Instant::now() + SILENCE) } else { deadline };
        match timeout_at(until, changes.next()).await {
            // Silence, or no time left.
            Err(_) | Ok(None) => return Ok(()),
            Ok(Some(Ok(signal))) => match news(&signal) {
                Some((link, true)) => drop(waiting.insert(link)),
                Some((link, false)) => drop(waiting.remove(&link)),
                None => {}
            },
            Ok(Some(Err(error))) => return Err(refused(service.shown, "say what it does", error)),
        }
    }
}

/// The link that a signal is about, and whether it is on its way now.
fn new_state(signal: &Message) -> Option<(String, bool)> {
    let body = signal.body();
    let (_, mut changed, _): (String, HashMap<String, OwnedVariant>, Vec<String>) = body.deserialize().ok()?;
    let state: String = changed.remove(STATE)?.try_into().ok()?;
    Some((signal.header().path()?.to_string(), is_on_its_way(&state)))
}

async fn links_on_their_way(bus: &Bus) -> Result<BTreeSet<String>, MachineError> {
    let answer = bus.call(NETWORKD, "ListLinks", &()).await?;
    let body = answer.body();
    let links: Vec<(i32, String, OwnedObjectPath)> =
        body.deserialize().map_err(|error| refused(NETWORKD.shown, "ListLinks", error))?;
    let mut on_their_way = BTreeSet::new();
    for (_, _, path) in links {
        let state: Option<String> = bus.property(NETWORKD, path.as_str(), LINK_INTERFACE, STATE).await;
        if state.is_some_and(|state| is_on_its_way(&state)) {
            on_their_way.insert(path.to_string());
        }
    }
    Ok(on_their_way)
}

fn is_on_its_way(state: &str) -> bool {
    matches!(state, "pending" | "initialized" | "configuring")
}
