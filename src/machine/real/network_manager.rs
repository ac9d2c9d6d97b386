//! Has NetworkManager read its profiles and settings, and waits until no device is on its way.
//!
//! A device of ours that another profile has is given ours: NetworkManager
//! makes one of its own for each Ethernet link, and would ask for an address by
//! DHCP there. One that has ours takes it again as it is now, since it would
//! otherwise go on with what it read when it was activated.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use zbus::{Message, OwnedObjectPath, OwnedVariant, Variant};

use super::bus::{Bus, NETWORK_MANAGER, PROFILES, Service, refused};
use super::reload::settle;
use crate::machine::MachineError;
use crate::render::{ifcfg, keyfile, netplan};

const DEVICE_INTERFACE: &str = "org.freedesktop.NetworkManager.Device";
const ACTIVE_INTERFACE: &str = "org.freedesktop.NetworkManager.Connection.Active";
const PROFILE_INTERFACE: &str = "org.freedesktop.NetworkManager.Settings.Connection";

/// The lowest `NMDeviceState` in which a profile can be activated: disconnected.
const ACTIVATABLE: u32 = 30;

/// `NM_MANAGER_RELOAD_FLAG_CONF`: NetworkManager.conf and conf.d, not DNS.
const CONF: u32 = 1;

/// Reads settings first: one of them lets a profile be activated without carrier.
pub(super) fn reload(bus: &Bus) -> Result<(), MachineError> {
    bus.runtime.block_on(async {
        if !bus.is_running(NETWORK_MANAGER).await? {
            return Ok(());
        }
        let before = on_their_way(bus).await?;
        let mut changes = bus.signals(NETWORK_MANAGER, DEVICE_INTERFACE, "StateChanged").await?;
        bus.call(NETWORK_MANAGER, "Reload", &(CONF,)).await?;
        bus.call(PROFILES, "ReloadConnections", &()).await?;
        activate(bus).await?;
        let waiting = on_their_way(bus).await?.difference(&before).cloned().collect();
        settle(NETWORK_MANAGER, waiting, &mut changes, new_state).await
    })
}

/// Gives each device that another profile has the one that we wrote for it.
async fn activate(bus: &Bus) -> Result<(), MachineError> {
    let devices = paths(bus, NETWORK_MANAGER, "GetDevices").await?;
    let by_netplan = fs::read_to_string(netplan::PATH).map(|text| netplan::links_of(&text)).unwrap_or_default();
    for profile in paths(bus, PROFILES, "ListConnections").await? {
        let file: Option<String> = bus.property(PROFILES, profile.as_str(), PROFILE_INTERFACE, "Filename").await;
        let Some(file) = file else { continue };
        let Some(link) = our_link(bus, &profile, &file, &by_netplan).await else { continue };
        for device in &devices {
            let name: Option<String> = device_property(bus, device, "Interface").await;
            let state: Option<u32> = device_property(bus, device, "State").await;
            if name.as_deref() != Some(link) || state.is_none_or(|state| state < ACTIVATABLE) {
                continue;
            }
            let used = match device_property::<OwnedObjectPath>(bus, device, "ActiveConnection").await {
                Some(active) => bus.property(NETWORK_MANAGER, active.as_str(), ACTIVE_INTERFACE, "Connection").await,
                None => None,
            };
            let has_ours = used.as_ref() == Some(&profile);
            // It refuses where that takes an activation, as for another IPoIB mode.
            if !(has_ours && reapply(bus, device).await.is_ok()) {
                let any = OwnedObjectPath::default();
                bus.call(NETWORK_MANAGER, "ActivateConnection", &(&profile, device, any)).await?;
            }
        }
    }
    Ok(())
}

/// The link that a profile is for, if it is one of ours: a keyfile has our name, an ifcfg file has the link's, as
/// everybody's has, and netplan's has the link's as our YAML has it.
async fn our_link<'a>(bus: &Bus, profile: &OwnedObjectPath, file: &'a str, by_netplan: &[String]) -> Option<&'a str> {
    if let Some(link) = keyfile::link_of(file) {
        return Some(link);
    }
    if let Some(link) = netplan::link_of_profile(file) {
        return by_netplan.iter().any(|one| one == link).then_some(link);
    }
    let link = ifcfg::link_of(file)?;
    (id(bus, profile).await? == keyfile::id(link)).then_some(link)
}

/// What a profile is called.
async fn id(bus: &Bus, profile: &OwnedObjectPath) -> Option<String> {
    let service = Service { path: profile.as_str(), interface: PROFILE_INTERFACE, ..PROFILES };
    let answer = bus.call(service, "GetSettings", &()).await.ok()?;
    let mut settings: HashMap<String, HashMap<String, OwnedVariant>> = answer.body().deserialize().ok()?;
    settings.get_mut("connection")?.remove("id")?.try_into().ok()
}

/// Has a device take its profile again without going down; nothing happens where nothing differs.
async fn reapply(bus: &Bus, device: &OwnedObjectPath) -> Result<(), MachineError> {
    let device = Service { path: device.as_str(), interface: DEVICE_INTERFACE, ..NETWORK_MANAGER };
    // The profile as it is kept, whatever its version, and no flags.
    let as_kept: HashMap<&str, HashMap<&str, Variant<'_>>> = HashMap::new();
    bus.call(device, "Reapply", &(as_kept, 0u64, 0u32)).await.map(drop)
}

async fn on_their_way(bus: &Bus) -> Result<BTreeSet<String>, MachineError> {
    let mut devices = BTreeSet::new();
    for device in paths(bus, NETWORK_MANAGER, "GetDevices").await? {
        if device_property(bus, &device, "State").await.is_some_and(is_on_its_way) {
            devices.insert(device.to_string());
        }
    }
    Ok(devices)
}

async fn paths(bus: &Bus, service: Service<'_>, method: &str) -> Result<Vec<OwnedObjectPath>, MachineError> {
    let answer = bus.call(service, method, &()).await?;
    answer.body().deserialize().map_err(|error| refused(service.shown, method, error))
}

async fn device_property<T>(bus: &Bus, device: &OwnedObjectPath, property: &str) -> Option<T>
where
    T: TryFrom<zbus::OwnedVariant>,
{
    bus.property(NETWORK_MANAGER, device.as_str(), DEVICE_INTERFACE, property).await
}

/// The device that a signal is about, and whether it is on its way now.
fn new_state(signal: &Message) -> Option<(String, bool)> {
    let body = signal.body();
    let (state, _, _): (u32, u32, u32) = body.deserialize().ok()?;
    Some((signal.header().path()?.to_string(), is_on_its_way(state)))
}

/// `NMDeviceState`: from prepare (40) to secondaries (90), and deactivating (110).
fn is_on_its_way(state: u32) -> bool {
    matches!(state, 40..=90 | 110)
}
