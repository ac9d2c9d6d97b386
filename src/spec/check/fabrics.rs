//! Fabrics: speed and MTU of their transport, subnet managers, thresholds that the link can reach.
//!
//! Whether a manager's host exists is looked up in `hosts`.

use super::Check;
use crate::name::Label;
use crate::rdma::{Speed, Transport};
use crate::spec::draft::{FabricDraft, ManagerDraft};
use crate::spec::fault::{Code, Fault, Located};
use crate::spec::model::MinBandwidth;

pub(super) fn check(c: &mut Check<'_>) {
    for (name, fabric) in &c.draft.fabrics.all {
        if let Some(Located { value: transport, span }) = &fabric.transport {
            speed_of_transport(c, fabric, *transport);
            match transport {
                Transport::Infiniband => expect_managers(c, name, fabric),
                Transport::Roce => refuse_infiniband_keys(c, name, fabric, *span),
            }
        }
        if let Some(manager) = &fabric.manager {
            refuse_manager_twice(c, manager);
        }
        threshold(c, name, fabric);
    }
}

fn speed_of_transport(c: &mut Check<'_>, fabric: &FabricDraft, transport: Transport) {
    let Some(speed) = &fabric.speed else { return };
    let (matches, help) = match (transport, speed.value) {
        (Transport::Infiniband, Speed::Ib(_)) | (Transport::Roce, Speed::Ethernet(_)) => (true, ""),
        (Transport::Infiniband, Speed::Ethernet(_)) => {
            (false, "InfiniBand speeds are SDR DDR QDR FDR EDR HDR NDR XDR; HDR is 200 Gb/s, NDR is 400 Gb/s")
        }
        (Transport::Roce, Speed::Ib(_)) => (false, "RoCE speeds are 10G 25G 40G 50G 100G 200G 400G 800G"),
    };
    if matches {
        return;
    }
    let mut fault =
        Fault::new(Code::SpeedOfOtherTransport, speed.span, format!("{} is not a speed of {transport}", speed.value))
            .label("speed of the other transport")
            .help(help);
    if let Some(transport) = &fabric.transport {
        fault = fault.also(transport.span, "the transport");
    }
    c.faults.push(fault);
}

fn refuse_infiniband_keys(c: &mut Check<'_>, name: &Label, fabric: &FabricDraft, transport: crate::spec::fault::Span) {
    if let Some(manager) = &fabric.manager {
        c.faults.push(
            Fault::new(
                Code::ManagerOnRoce,
                manager.at,
                format!("fabric `{name}` runs on RoCE, which has no subnet manager"),
            )
            .label("only for InfiniBand")
            .also(transport, "the transport")
            .help("remove this table"),
        );
    }
    for partition in fabric.partitions.all.values() {
        c.faults.push(
            Fault::new(
                Code::PartitionOnRoce,
                partition.at,
                format!("fabric `{name}` runs on RoCE, which has no partitions"),
            )
            .label("only for InfiniBand")
            .also(transport, "the transport")
            .help("remove this table: networks of RoCE are kept apart by `vlan` in [networks.NAME]"),
        );
    }
    if let (true, Some(mtu)) = (fabric.mtu_given, &fabric.mtu) {
        c.faults.push(
            Fault::new(
                Code::IbMtuOnRoce,
                mtu.span,
                format!("fabric `{name}` runs on RoCE, which has no IB multicast MTU"),
            )
            .label("only for InfiniBand")
            .also(transport, "the transport")
            .help("remove this line; the MTU of the interfaces is `mtu` in [networks.NAME]"),
        );
    }
}

fn expect_managers(c: &mut Check<'_>, name: &Label, fabric: &FabricDraft) {
    let fault = match &fabric.manager {
        None => Fault::new(Code::NoManager, fabric.at, format!("fabric `{name}` has no subnet manager in this spec"))
            .label("no subnet manager")
            .help(format!(
                "without one no port becomes active: add [fabrics.{name}.subnet-manager], unless a switch or another system runs it"
            )),
        Some(ManagerDraft { at, standby: Some(standby), .. }) if standby.is_empty() => {
            Fault::new(Code::NoStandby, *at, format!("the subnet manager of fabric `{name}` has no standby"))
                .label("no standby")
                .help("when its host fails, no port that comes up becomes active: add `standby = [\"HOST\"]`")
        }
        Some(_) => return,
    };
    c.faults.push(fault);
}

fn refuse_manager_twice(c: &mut Check<'_>, manager: &ManagerDraft) {
    let standby = manager.standby.as_deref().unwrap_or_default();
    let mut seen = std::collections::BTreeMap::new();
    for (host, role) in
        manager.primary.iter().map(|h| (h, "the primary")).chain(standby.iter().map(|h| (h, "a standby")))
    {
        let Some((first, first_role)) = seen.insert(&host.value, (host.span, role)) else { continue };
        c.faults.push(
            Fault::new(Code::DuplicateManager, host.span, format!("`{}` is {first_role} already", host.value))
                .label("the second time")
                .also(first, "the first time")
                .help("a standby is another host than the primary, and named once"),
        );
    }
}

fn threshold(c: &mut Check<'_>, name: &Label, fabric: &FabricDraft) {
    let (Some(speed), Some(threshold)) = (&fabric.speed, &c.draft.verify.min_bandwidth) else { return };
    let MinBandwidth::BytesPerSecond(wanted) = threshold.value else { return };
    let most = speed.value.data_gbps() * 1e9 / 8.0;
    if wanted <= most {
        return;
    }
    let (wanted, most_gb) = (wanted / 1e9, most / 1e9);
    c.faults.push(
        Fault::new(
            Code::ThresholdBeyondLink,
            threshold.span,
            format!("fabric `{name}` can't reach {wanted} GB/s: {} is {most_gb} GB/s", speed.value),
        )
        .label("beyond the link")
        .also(speed.span, "its speed")
        .help("a percentage, as in \"92%\", is right for each fabric"),
    );
}
