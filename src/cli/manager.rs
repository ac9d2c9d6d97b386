//! sm status: the subnet managers as the fabric itself has them.

use std::collections::BTreeMap;

use super::args::{Sm, SmCommand, SmStatus};
use super::host::{load, not_in_the_spec, read_spec, this};
use super::{Outcome, Stop, exit, print};
use crate::name::{DeviceName, Label};
use crate::node::Session;
use crate::rdma::Transport;
use crate::sm::report::StatusReport;
use crate::spec::Spec;

pub(super) fn run(args: &Sm) -> Outcome {
    let SmCommand::Status(args) = &args.command;
    status(args)
}

fn status(args: &SmStatus) -> Outcome {
    let spec = load(&read_spec(&args.spec.path)?)?;
    let fabrics = fabrics(&spec, args.fabric.as_ref())?;
    let mut reports = Vec::new();
    for fabric in fabrics {
        let (device, port) = match &args.device {
            Some(text) => parse_device(text)?,
            None => port_here(&spec, &fabric)?,
        };
        let report = crate::sm::ask(&spec, &fabric, &device, port, &BTreeMap::new())
            .map_err(|error| Stop::failed(exit::causes(&error).join(": ")))?;
        reports.push(report);
    }
    print(args.report.format, &reports, || reports.iter().map(StatusReport::to_text).collect::<Vec<_>>().join("\n"))?;
    Ok(reports.iter().map(StatusReport::exit_code).max().unwrap_or(exit::OK))
}

/// The port of this host by the spec.
fn port_here(spec: &Spec, fabric: &Label) -> Result<(DeviceName, u8), Stop> {
    const OTHERWISE: &str = "run this on a host of the spec, or name a port of this one with --device";
    let host = this(OTHERWISE)?;
    Session::live().port_on(spec, &host, fabric).map_err(|error| not_in_the_spec(error, OTHERWISE))
}

fn fabrics(spec: &Spec, asked: Option<&Label>) -> Result<Vec<Label>, Stop> {
    let infiniband = spec.fabrics.iter().filter(|(_, fabric)| fabric.transport == Transport::Infiniband);
    let names: Vec<Label> = infiniband.map(|(name, _)| name.clone()).collect();
    match asked {
        None if names.is_empty() => {
            Err(Stop::failed("the spec has no InfiniBand fabric, so there is no subnet manager to ask"))
        }
        None => Ok(names),
        Some(asked) if names.contains(asked) => Ok(vec![asked.clone()]),
        Some(asked) => Err(Stop::failed(format!("the spec has no InfiniBand fabric `{asked}`"))),
    }
}

fn parse_device(text: &str) -> Result<(DeviceName, u8), Stop> {
    let (device, port) = text.split_once(':').unwrap_or((text, "1"));
    let wrong = || Stop::failed(format!("--device {text}: give DEVICE or DEVICE:PORT, such as mlx5_0:1"));
    Ok((device.parse().map_err(|_| wrong())?, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?))
}
