use proptest::prelude::*;

use super::*;

fn list(text: &str) -> HostList {
    text.parse().unwrap()
}

fn names(text: &str) -> Vec<String> {
    list(text).iter().map(String::from).collect()
}

fn fault(text: &str) -> (usize, NameListFault) {
    let e = text.parse::<HostList>().unwrap_err();
    (e.at, e.kind)
}

#[test]
fn lists_expand_in_the_order_of_clustershell_and_slurm() {
    assert_eq!(names("node[01-02]"), ["node01", "node02"]);
    assert_eq!(names("a1,b[2-3]"), ["a1", "b2", "b3"]);
    assert_eq!(names("gpu[001-002,200]"), ["gpu001", "gpu002", "gpu200"]);
    assert_eq!(names("r[1-2]-n[01-02]"), ["r1-n01", "r1-n02", "r2-n01", "r2-n02"]);
    assert_eq!(names("n[0-10/5]"), ["n0", "n5", "n10"]);
    assert_eq!(names("n[1-10/5]"), ["n1", "n6"]);
    assert_eq!(names("n[98-101]"), ["n98", "n99", "n100", "n101"]);
    assert_eq!(names("n[08-10].example"), ["n08.example", "n09.example", "n10.example"]);
    assert_eq!(names("n[0-1][0-1]"), ["n00", "n01", "n10", "n11"]);
    assert_eq!(names("n[099-100]"), ["n099", "n100"]);
    assert_eq!(names("n[99,100]"), ["n99", "n100"]);
    assert_eq!(names("n[01-02]5"), ["n015", "n025"]);
    assert_eq!(names("n[9,09]"), ["n9", "n09"]);
}

#[test]
fn a_padded_range_may_outgrow_its_padding() {
    let hosts = list("n[01-100]");
    assert_eq!(hosts.get(0).unwrap().as_str(), "n01");
    assert_eq!(hosts.get(99).unwrap().as_str(), "n100");
    assert_eq!(hosts.position_of("n1"), None);
    assert_eq!(hosts.position_of("n001"), None);
}

#[test]
fn each_fault_has_its_own_word_and_place() {
    use NameListFault::*;
    assert_eq!(fault(""), (0, Missing));
    assert_eq!(fault("a,"), (2, Missing));
    assert_eq!(fault("a,,b"), (2, Missing));
    assert_eq!(fault("a[1-2"), (1, Unclosed));
    assert_eq!(fault("a]"), (1, Unopened));
    assert_eq!(fault("a[]"), (2, EmptyRange));
    assert_eq!(fault("a[1,]"), (4, EmptyRange));
    assert_eq!(fault("a[1-]"), (2, EmptyRange));
    assert_eq!(fault("a[1-4/]"), (2, EmptyRange));
    assert_eq!(fault("b,a[1,x]"), (6, NotANumber("x".to_owned())));
    assert_eq!(fault("a[+1]"), (2, NotANumber("+1".to_owned())));
    assert_eq!(fault("a[1[2]]"), (6, Unopened));
    assert_eq!(fault("a[9-1]"), (2, Backwards { start: 9, end: 1 }));
    assert_eq!(fault("a[1-9/0]"), (2, ZeroStep));
    assert_eq!(fault("a[001-10]"), (2, Padding { start: "001".to_owned(), end: "10".to_owned() }));
    assert_eq!(fault("a[1-010]"), (2, Padding { start: "1".to_owned(), end: "010".to_owned() }));
    assert_eq!(fault("a[1-10][1-10]"), (1, Ambiguous));
    assert_eq!(fault("a[1-9999999999999999999]"), (2, TooManyDigits { most: 18 }));
    assert_eq!(fault("a[1-3,2]"), (0, Duplicate("a2".to_owned())));
    assert_eq!(fault("a[1-3],b,a3"), (9, Duplicate("a3".to_owned())));
    assert!(matches!(fault("x,-a[1-2]"), (2, BadName(_))));
    assert!(matches!(fault("x, y"), (2, BadName(_))));
    assert!(matches!(fault(&format!("a{}[9-10]", "x".repeat(61))), (0, BadName(_))));
}

#[test]
fn a_trillion_hosts_are_counted_and_not_expanded() {
    let count = 1_000_000_000_000;
    assert_eq!(fault("n[1-1000000000000]"), (0, NameListFault::TooMany { count, most: MOST_NAMES }));
    let many = format!("n{}", "[0-9]".repeat(45));
    assert_eq!(fault(&many), (0, NameListFault::TooMany { count: u128::MAX, most: MOST_NAMES }));
    assert_eq!(list("n[1-1000000]").count(), 1_000_000);
}

#[test]
fn a_list_prints_as_it_was_written() {
    assert_eq!(list("n[01-02],x").to_string(), "n[01-02],x");
}

#[test]
fn devices_fold_the_same_way() {
    let devices: DeviceList = "mlx5_[0-7]".parse().unwrap();
    assert_eq!(devices.count(), 8);
    assert_eq!(devices.get(7).unwrap().as_str(), "mlx5_7");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*|[an0-9,/\\[\\]-]{0,24}") {
        if let Ok(list) = text.parse::<HostList>() {
            prop_assert!(list.count() > 0);
        }
    }

    #[test]
    fn the_position_of_the_nth_name_is_n(text in "[ab][0-9]{0,2}(\\[[0-9]{1,2}(-[0-9]{1,2})?(/[1-3])?(,[0-9]{1,3})?\\]){0,2}(,[ab][0-9]{0,2})?") {
        if let Ok(list) = text.parse::<HostList>() {
            prop_assert_eq!(list.iter().count(), list.count());
            for (index, name) in list.iter().enumerate() {
                prop_assert_eq!(list.position(&name), Some(index), "{} in {}", name, text);
            }
        }
    }
}
