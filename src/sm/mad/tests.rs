use proptest::prelude::*;

use super::*;

/// Bits that each type carries: decoding and encoding keeps exactly these.
fn kept(block: &Block, mask: &[(usize, usize, u8)]) -> Block {
    let mut out = [0; 64];
    for (from, to, bits) in mask {
        for at in *from..=*to {
            out[at] = block[at] & bits;
        }
    }
    out
}

const SM_INFO: &[(usize, usize, u8)] = &[(0, 20, 0xff)];
const NODE_INFO: &[(usize, usize, u8)] = &[(0, 39, 0xff)];
const PORT_INFO: &[(usize, usize, u8)] = &[
    (8, 23, 0xff),
    (28, 28, 0xff),
    (31, 31, 0xff),
    (32, 32, 0x0f),
    (33, 33, 0xf0),
    (34, 34, 0x07),
    (35, 36, 0xf0),
    (41, 41, 0x0f),
    (62, 62, 0xf0),
];

proptest! {
    #[test]
    fn every_bit_survives_both_ways(bytes in proptest::collection::vec(any::<u8>(), 64)) {
        let block: Block = bytes.try_into().unwrap();
        prop_assert_eq!(SmInfo::decode(&block).encode(), kept(&block, SM_INFO));
        prop_assert_eq!(NodeInfo::decode(&block).encode(), kept(&block, NODE_INFO));
        prop_assert_eq!(PortInfo::decode(&block).encode(), kept(&block, PORT_INFO));
        prop_assert_eq!(SmInfo::decode(&SmInfo::decode(&block).encode()), SmInfo::decode(&block));
        prop_assert!(!NodeDescription::decode(&block).as_str().contains(|c: char| c.is_control()));
    }
}

/// 64 bytes as `smpdump` prints them.
fn dump(text: &str) -> Block {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let bytes: Vec<u8> = (0..64).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

const ZEROS: &str = "0000 0000 0000 0000 0000 0000 0000 0000";

/// As opensm 3.3.23 answered `smpdump -D 0,1,1 0x20`; `sminfo` said of the same:
/// guid 0x2c90000a00001, activity count 104, priority 14, state 3 SMINFO_MASTER.
#[test]
fn sm_info_reads_as_sminfo_reads_it() {
    let block = dump(&format!(
        "0002 c900 00a0 0001 0000 0000 0000 0001 0000 0068 e300 0000 0000 0000 0000 0000 {ZEROS} {ZEROS}"
    ));
    let info = SmInfo::decode(&block);
    assert_eq!(info.guid.to_string(), "0x0002c90000a00001");
    assert_eq!((info.act_count, info.priority.get(), info.state), (104, 14, SmState::Master));
    assert_eq!(info.key, SmKey::new(1));
    assert_eq!(info.encode(), block);
}

#[test]
fn a_key_is_never_printed() {
    let text = format!("{:?}", SmKey::new(0x5ec2_e700_1234_5678));
    assert_eq!(text, "SmKey(hidden)");
}

/// From the same fabric, with what `smpquery nodeinfo` said.
#[test]
fn node_info_reads_as_smpquery_reads_it() {
    let block = dump(&format!(
        "0101 0101 0002 c900 00a2 0000 0002 c900 00a2 0000 0002 c900 00a2 0001 0040 0000 \
         0000 00a1 0100 0000 0000 0000 0000 0000 {ZEROS}"
    ));
    let info = NodeInfo::decode(&block);
    assert_eq!((info.node_type, info.ports, info.local_port), (NodeType::Ca, 1, 1));
    assert_eq!(info.node_guid.to_string(), "0x0002c90000a20000");
    assert_eq!(info.port_guid.to_string(), "0x0002c90000a20001");
    assert_eq!((info.partition_cap, info.revision, info.vendor_id), (64, 0xa1, 0));
    assert_eq!(info.encode(), block);
}

/// From the same fabric, with what `smpquery portinfo` said: Lid 1, SMLid 1,
/// IsSM, 4X, Active, LinkUp, 2.5 Gbps, NeighborMTU 2048, MtuCap 2048.
#[test]
fn port_info_reads_as_smpquery_reads_it() {
    let block = dump(
        "0000 0000 0000 0000 fe80 0000 0000 0000 0001 0001 0050 c04a 0000 0ff9 0102 1f02 \
         7452 0011 4040 0008 0804 e040 0000 0000 0000 201f 0000 0000 0000 0000 0030 0000",
    );
    let info = PortInfo::decode(&block);
    assert_eq!((info.lid, info.master_sm_lid, info.lmc, info.local_port), (1, 1, 0, 1));
    assert!(info.is_sm());
    assert_eq!((info.state, info.physical_state), (PortState::Active, PhysicalState::LinkUp));
    assert_eq!((info.link_width_active, info.link_speed_active, info.link_speed_ext_active), (2, 1, 0));
    assert_eq!((info.neighbor_mtu, info.mtu_cap), (Mtu::B2048, Mtu::B2048));
}

#[test]
fn a_description_is_text_that_names_a_host() {
    let mut block = [0; 64];
    block[..13].copy_from_slice(b"node02 mlx5_0");
    let description = NodeDescription::decode(&block);
    assert_eq!((description.as_str(), description.host()), ("node02 mlx5_0", Some("node02")));
    block[6] = 0x1b;
    assert_eq!(NodeDescription::decode(&block).as_str(), "node02?mlx5_0");
}
