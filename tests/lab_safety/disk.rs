//! Disks that are full or read-only, and journals that were damaged.

use crate::lab_support::ok;
use crate::{NODE, assert_same, expect, prepared, sh, snapshot};

pub(crate) fn full_and_read_only() {
    prepared(NODE);
    sh("by_hand; mkdir -p /var/lib/selvedge");
    let before = snapshot();
    // No room for the first record; for some of them; none for a file.
    for size in ["4k", "8k"] {
        expect(
            &format!(
                "mount -t tmpfs -o size={size} tmpfs /var/lib/selvedge
                 selvedge apply /root/light.toml; code=$?
                 find /var/lib/selvedge -name '*.open' >&2
                 umount /var/lib/selvedge; exit $code"
            ),
            1,
            "No space left",
        );
        assert_same(&format!("a journal of {size}"), &before, &snapshot());
    }
    expect(
        "mount -t tmpfs -o size=4k tmpfs /etc/modules-load.d
         head -c 4096 /dev/zero >/etc/modules-load.d/filler
         selvedge apply /root/light.toml; code=$?
         ls -A /etc/modules-load.d >&2
         umount /etc/modules-load.d; exit $code",
        1,
        "cannot write /etc/modules-load.d/selvedge.conf: No space left",
    );
    assert_same("no room for a file", &before, &snapshot());
    expect(
        "mount --bind /etc /etc; mount -o remount,bind,ro /etc
         selvedge apply /root/light.toml; code=$?
         umount /etc; exit $code",
        1,
        "Read-only file system",
    );
    assert_same("read-only /etc", &before, &snapshot());
}

pub(crate) fn damaged_journals() {
    prepared(NODE);
    sh("by_hand");
    let before = snapshot();
    ok(NODE, "selvedge apply /root/light.toml");
    let journal = "/var/lib/selvedge/journal/00000001.done";
    ok(NODE, &format!("cp -a {journal} /root/journal; sed -i '3s/.*/\\xff not a record/' {journal}"));
    for command in ["apply /root/light.toml", "rollback", "recover"] {
        expect(&format!("selvedge {command}"), 1, "line 3 is not a journal record");
        expect(&format!("selvedge {command}"), 1, "move the file away");
    }
    ok(NODE, &format!("sed '1s/\"format\":1/\"format\":7/' /root/journal >{journal}"));
    expect("selvedge rollback", 1, "in journal format 7");
    // A power cut in the middle of a record: the last line does not count.
    ok(NODE, &format!("head -c -40 /root/journal >{}; rm {journal}", journal.replace("done", "open")));
    expect("selvedge recover", 0, "undone");
    assert_same("a last line that was cut off", &before, &snapshot());
}
